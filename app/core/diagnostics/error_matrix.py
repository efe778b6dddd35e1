"""The matrix of the errors of a Gram matrix, tile by tile, and its figures."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import partial
from math import prod
from typing import NamedTuple

import numpy as np
import scipy
from pydantic import with_config
from typing_extensions import TypedDict

from app.core.arrays import Array, Matrix, Rows, dense, row_blocks
from app.core.compiled import jit
from app.core.diagnostics.base import Pairs, rms_by_kernel
from app.core.drawing import Density, density
from app.core.errors import InvalidInput
from app.core.maps import FeatureMap, Gives
from app.core.maps.terms import Form
from app.core.progress import Pause, Progress, begin_anew, no_pause, pack_arrays, unpack_arrays
from app.core.samplers.normal_law import NORMAL_LAW

HEAVY = 10
"""If the effective rows of an error are fewer, a handful of rows make most of it."""
_COVERED = 0.95


class RowVariation(NamedTuple):
    """Contribution of the sample of rows to the uncertainty of an error that is measured on them."""

    deviation: float
    """Standard deviation of the logarithm of the error, over samples of the same number of rows."""
    effective_rows: float
    """Number of rows of equal influence that would vary as much; small if few rows make most of the error."""

    def interval(self, error: float, of_maps: tuple[float, float] = (0.0, 1.0)) -> tuple[float, float]:
        """Return the interval in which the error on as many new rows lies in 95 % of cases, by Student's t.

        The error on the new rows varies as much as the one on these. `of_maps` is the variance of the error's logarithm
        over maps, if the map is a new one too, and its degrees of freedom. The two parts have a quantile each (Cochran
        1964), so that the interval covers somewhat more where both matter.
        """
        parts = np.array([2 * self.deviation**2, of_maps[0]])
        quantiles = scipy.special.stdtrit([max(2.0, self.effective_rows - 1), of_maps[1]], (1 + _COVERED) / 2)
        factor = float(np.exp(np.sqrt((np.square(quantiles) * parts).sum())))
        return error / factor, error * factor


def row_variation(errors: Matrix, kernel: Matrix) -> RowVariation:
    """Return the variation of √(Σ E²/Σ K²), from the sums of E² and of K² in each row of a Gram matrix, both (n,).

    By the influence of each row on a ratio of two means over pairs (the infinitesimal jackknife; Efron 1982).
    """
    if not errors.any() or not kernel.any():
        return RowVariation(0.0, float(len(errors)))
    influence = errors / errors.sum() - kernel / kernel.sum()
    squares = np.square(influence)
    total = float(squares.sum())
    if not total:
        return RowVariation(0.0, float(len(errors)))
    n = len(errors)
    return RowVariation(float(np.sqrt(n / (n - 1) * total)), total**2 / float(np.square(squares).sum()))


# Largest absolute rounding error of a correction: that of features in float32.
_MOST_ROUNDING = 1e-7
# Multiplications per second in the product for the covariance, on one thread.
_PRODUCTS_PER_SECOND = 1 << 34


class Estimator(StrEnum):
    """Estimate of the kernel of two rows: the map's, as it is or corrected by one or two moments of its frequencies."""

    map = "map"
    cv1 = "cv1"
    cv2 = "cv2"


class ControlVariates:
    """Control variates: equation (10) of the moment-matching paper with the optimal coefficients β₁ = β₂ = k(δ).

    With δ = x − y and a map's weights ξ,

        cv1 = k̂ + k(δ) i δ·μ̂,   cv2 = cv1 + ½ k(δ) δᵀ(Σ̂ − Σ_l ξ_l Σ)δ,   μ̂ = Σ ξ_l w_l,   Σ̂ = Σ ξ_l w_l w_lᵀ.

    The coefficients are optimal for frequencies N(0, Σ) drawn independently. They contain the exact kernel k(δ), so
    the estimates serve for comparison and cannot be features. In the real forms cov(cos w·δ, w·δ) = 0: the optimal β₁
    is 0. Weights of a rule, of either sign, enter the sample moments; a set that has the moments already, such as a
    moment-matched set or a grid, is not changed.

    Where k(δ) is 0, as for distant rows, the correction is 0, however large the moments are.

    `before_long_call` is called if finding the moments may take more than a second.

    Raises:
        InvalidInput: the kernel is not that of one normal law, features are normalised and so not a mean over
            frequencies, or the moments leave the range of float64.
    """

    def __init__(self, feature_map: FeatureMap, before_long_call: Pause = no_pause) -> None:
        spec = feature_map.spec
        if spec.normalize:
            raise InvalidInput("control variates need a map without normalize", "/estimators")
        frequencies, weights, kernel, _ = feature_map.spectrum()
        deviations = kernel.normal_deviations(spec.input_dim)
        if deviations is None:
            raise InvalidInput(
                f"control variates need {NORMAL_LAW} on all coordinates, got kernel {spec.kernel.kind}", "/estimators"
            )
        self._is_complex = spec.form is Form.complex
        if frequencies.size * frequencies.shape[1] > _PRODUCTS_PER_SECOND:
            before_long_call()
        with np.errstate(over="ignore", invalid="ignore"):  # refused below
            self._mean: Matrix = weights @ frequencies
            # Columns, but not rows, of Σ̂ − Σ_l ξ_l Σ are in units near σ_j: squares of huge and tiny σ_j leave float64.
            self._units: Matrix = np.ldexp(1.0, np.frexp(deviations)[1])
            scaled = frequencies.T * weights
            scaled /= self._units[:, None]
            self._excess: Matrix = (scaled @ frequencies).T
            self._excess[np.diag_indices_from(self._excess)] -= weights.sum() * deviations * (deviations / self._units)
            # In units, a bound of its norm that does not square its entries.
            self._size = len(self._excess) * float((np.abs(self._excess).max(axis=1) / self._units).max())
        if not (np.isfinite(self._mean).all() and np.isfinite(self._size)):
            raise InvalidInput("the moments of the frequencies leave the range of float64", "/estimators")

    def estimate(
        self, estimator: Estimator, x: Matrix, y: Matrix, exact: Matrix, approximate: Array, pause: Pause = no_pause
    ) -> Array:
        """Return the estimates of a Gram block, (n, m), float64 or complex128.

        Rows x, (n, d), and y, (m, d), are prepared as the kernel takes them; `exact` is their kernel, (n, m), and
        `approximate` are the inner products of their features. Raises InvalidInput if a product of rows and moments
        leaves the range of float64.
        """
        if estimator is Estimator.map:
            return approximate
        with np.errstate(over="ignore", invalid="ignore"):  # refused below
            if self._is_complex:
                approximate = approximate + 1j * _correct(exact, np.subtract.outer(x @ self._mean, y @ self._mean))
                pause()
            if estimator is Estimator.cv2:
                quadratic = self._quadratic(x, y, exact, pause)
                pause()
                approximate = approximate + _correct(exact, quadratic) / 2
                pause()
        return approximate

    def _quadratic(self, x: Matrix, y: Matrix, exact: Matrix, pause: Pause) -> Matrix:
        """Compute δᵀ(Σ̂ − Σ_l ξ_l Σ)δ, (n, m); values are meaningless where the kernel is 0.

        The form is multiplied out, or computed from the differences where long rows would make this inaccurate.
        """
        x_excess = self._times_excess(x)
        ends = np.einsum("ij,ij->i", x_excess, x), np.einsum("ij,ij->i", self._times_excess(y), y)
        quadratic: Matrix = np.add.outer(*ends)
        pause()
        quadratic -= 2 * (x_excess @ y.T)
        pause()
        terms = np.add.outer(*(self._size * np.square(rows * self._units).sum(axis=1) for rows in (x, y)))
        # Written so that values that are not finite count as off too.
        is_off = ~(np.finfo(np.float64).eps * terms * exact <= _MOST_ROUNDING) & (exact > 0)
        for i in np.flatnonzero(is_off.any(axis=1)):
            differences = y[is_off[i]].astype(np.float64) - x[i]
            quadratic[i, is_off[i]] = np.einsum("ij,ij->i", self._times_excess(differences), differences)
            pause()
        return quadratic

    def _times_excess(self, rows: Matrix) -> Matrix:
        """Return rows (n, d) times Σ̂ − Σ_l ξ_l Σ."""
        product: Matrix = rows @ self._excess
        product *= self._units
        return product


def _correct(exact: Matrix, control: Matrix) -> Matrix:
    """Return k(δ) times a control, 0 where the kernel is 0; InvalidInput if a product is not finite."""
    product = exact * np.where(exact == 0, 0.0, control)
    if not np.isfinite(product).all():
        raise InvalidInput("products of rows and moments leave the range of float64", "/estimators")
    return product


# Rows of a tile: four million entries, so that temporary arrays of a tile stay small.
TILE_ROWS = 2048
# Relative accuracy of the spectral norm: residual of the eigenpair over the eigenvalue, which bounds its error.
SPECTRAL_TOLERANCE = 1e-7
# Up to this many rows, all eigenvalues are computed as quickly as one.
_MOST_ROWS_DENSE = 64
# Tiles that take more are not kept in a state: writing them would take longer than computing them again.
MOST_KEPT_BYTES = 1 << 26


def tile_places(n: int) -> Iterator[tuple[slice, slice]]:
    """Yield rows and columns of the tiles of the lower triangle; tiles on the diagonal are whole squares."""
    for rows in row_blocks(n, TILE_ROWS):
        for columns in row_blocks(rows.stop, TILE_ROWS):
            yield rows, columns


class HermitianTiles:
    """Tiles of a Hermitian matrix, set in the order of `tile_places`, with sums over the matrix and its spectral norm.

    Entries are rounded to float32 (complex64), each to 6e-8 of itself: this takes half the memory, (n²/2)·4 bytes or
    twice that, and loses nothing beyond the tolerance of the norm. Sums are over the entries before rounding; sums and
    products are in float64. Given the arrays of an earlier `state`, the object continues from there.
    """

    def __init__(self, n: int, is_complex: bool, state: Mapping[str, Array] | None = None) -> None:
        self._n, self._places = n, [*tile_places(n)]
        self._stored = np.dtype(np.complex64 if is_complex else np.float32)
        self._summed = np.dtype(np.complex128 if is_complex else np.float64)
        self._tiles: list[tuple[slice, slice, Array]] = []
        self.squares = self.sum = self.largest = 0.0
        """Σ |E_ij|², Σ Re E_ij and max |E_ij|, of all n² entries once all tiles are set."""
        if state:
            self.squares, self.sum, self.largest = state["sums"].tolist()
            held = state["held"]
            while held.size:
                rows, columns = self.missing[0]
                shape = rows.stop - rows.start, columns.stop - columns.start
                self._tiles.append((rows, columns, held[: prod(shape)].reshape(shape)))
                held = held[prod(shape) :]

    def state(self, **others: Array) -> bytes:
        """Pack the sums, all tiles set and `others`; return an empty state, to start again, if tiles are too large."""
        if sum(tile.nbytes for _, _, tile in self._tiles) > MOST_KEPT_BYTES:
            return begin_anew()
        held = np.concatenate([np.empty(0, self._stored), *(tile.ravel() for _, _, tile in self._tiles)])
        return pack_arrays(sums=np.array([self.squares, self.sum, self.largest]), held=held, **others)

    @property
    def missing(self) -> list[tuple[slice, slice]]:
        """Places of the tiles that are not set yet."""
        return self._places[len(self._tiles) :]

    def add(self, tile: Array, pause: Pause = no_pause) -> None:
        """Set the tile at the first missing place, after the last pause; InvalidInput if it leaves float32."""
        rows, columns = self.missing[0]
        with np.errstate(over="ignore"):  # refused below
            stored = tile.astype(self._stored)
        if not np.isfinite(stored).all():
            raise InvalidInput("errors of these rows leave the range of float32", "/estimators")
        pause()
        twice = 1 if rows == columns else 2
        total, size = float(tile.real.sum()), np.abs(tile)
        pause()
        self._tiles.append((rows, columns, stored))
        self.sum += twice * total
        self.largest = max(self.largest, float(size.max()))
        self.squares += twice * float(np.vdot(size, size))

    def __iter__(self) -> Iterator[tuple[bool, Array]]:
        """Yield whether a tile also stands for its mirror image, and the tile."""
        return ((rows != columns, tile) for rows, columns, tile in self._tiles)

    def row_squares(self, pause: Pause = no_pause) -> Matrix:
        """Return Σ_j |E_ij|² of each row i, (n,); every tile must be set."""
        sums: Matrix = np.zeros(self._n)
        for rows, columns, tile in self._tiles:
            for part in row_blocks(len(tile), _ROWS_PER_PART):
                squares = np.square(np.abs(tile[part]), dtype=np.float64)
                sums[rows][part] += squares.sum(axis=1)
                if rows != columns:
                    sums[columns] += squares.sum(axis=0)
                pause()
        return sums

    def spectral_norm(self, pause: Pause = no_pause) -> float:
        """Return the largest |eigenvalue|, to `SPECTRAL_TOLERANCE` of itself, by Lanczos' method from a fixed start.

        It takes about 25 products with the whole matrix, and pauses within each.
        """
        scale = max(float(np.abs(tile).max()) for _, _, tile in self._tiles)
        if scale == 0:
            return 0.0
        if self._n <= _MOST_ROWS_DENSE:
            return float(np.linalg.norm(self._tiles[0][2].astype(self._summed), 2))
        # Scaled, so that the solver does not take small errors for zeros.
        operator = scipy.sparse.linalg.LinearOperator(
            (self._n, self._n), matvec=lambda v: self.product(v.ravel(), pause) / scale, dtype=self._summed
        )
        start = np.random.default_rng(0).standard_normal(self._n).astype(self._summed)
        rng = np.random.default_rng(0)
        largest = scipy.sparse.linalg.eigsh(
            operator, k=1, v0=start, tol=SPECTRAL_TOLERANCE, return_eigenvectors=False, rng=rng
        )
        return scale * float(abs(largest[0]))

    def product(self, vector: Array, pause: Pause = no_pause) -> Array:
        """Return the whole matrix times a vector, both (n,); every tile must be set."""
        vector = np.ascontiguousarray(vector, self._summed)
        product = np.zeros(self._n, self._summed)
        # A tile off the diagonal also adds its mirror image; that of a whole square is written here and dropped.
        dropped = np.empty(min(self._n, TILE_ROWS), self._summed)
        for rows, columns, tile in self._tiles:
            mirrored = dropped[: tile.shape[1]] if rows == columns else product[columns]
            _add_products(tile, vector[rows], vector[columns], product[rows], mirrored)
            pause()
        return product


@jit
def _add_products(tile: Array, by_row: Array, by_column: Array, to_row: Array, to_column: Array) -> None:
    """Add tile·by_column and tileᴴ·by_row in one pass, four rows at a time: dependent sums are slow."""
    fours = tile.shape[0] - tile.shape[0] % 4
    for i in range(0, fours, 4):
        a, b, c, d = tile[i], tile[i + 1], tile[i + 2], tile[i + 3]
        w, x, y, z = by_row[i], by_row[i + 1], by_row[i + 2], by_row[i + 3]
        sum_a = sum_b = sum_c = sum_d = 0 * w
        for j in range(tile.shape[1]):
            v = by_column[j]
            sum_a += a[j] * v
            sum_b += b[j] * v
            sum_c += c[j] * v
            sum_d += d[j] * v
            to_column[j] += np.conj(a[j]) * w + np.conj(b[j]) * x + np.conj(c[j]) * y + np.conj(d[j]) * z
        to_row[i] += sum_a
        to_row[i + 1] += sum_b
        to_row[i + 2] += sum_c
        to_row[i + 3] += sum_d
    for i in range(fours, tile.shape[0]):
        for j in range(tile.shape[1]):
            to_row[i] += tile[i, j] * by_column[j]
            to_column[j] += np.conj(tile[i, j]) * by_row[i]


# Odd, so that errors near 0, such as the diagonal's, are in one bin, not divided by chance between two.
BINS = 61
# Rows of a tile whose errors are counted at a time.
_ROWS_PER_PART = 256


@with_config(use_attribute_docstrings=True)
class Figures(TypedDict):
    """Sizes of E = K̂ − K, the errors of a Gram matrix, over all its n² entries."""

    relative_frobenius: float
    """‖E‖_F/‖K‖_F. It is `gram_error` in the `report` of a learned map of form cos_sin or complex, for some rows of its
    dataset, and `error_mean` in recommendations.
    """
    relative_spectral: float
    """‖E‖₂/‖K‖₂."""
    max_abs: float
    """max |E_ij|."""
    mean_square: float
    """Mean of |E_ij|²."""
    bias: float
    """Mean of E_ij, which is real, as E is Hermitian."""


class Tile(NamedTuple):
    """A tile of a Gram matrix."""

    rows: slice
    columns: slice
    x: Rows
    """Vectors of the tile's rows."""
    y: Rows
    """Vectors of the tile's columns; on the diagonal the same object as `x`, so that a map transforms them once."""


Estimate = Callable[[Tile, Matrix, Pause], Array]
"""Function from a tile and its exact kernel to the estimate of the tile; it calls its third argument between steps."""


class Sketch(TypedDict):
    """Data of a figure: a histogram of E_ij over all entries, and errors of some pairs i > j by their exact kernel.

    In the form complex, the histogram is of |E_ij|, and the errors of the pairs are those of the real part.
    """

    edges: list[float]
    counts: list[int]
    kernel: list[float]
    """Midpoints of the intervals of the exact kernel that have pairs."""
    rms: list[float]
    """Root mean square error of the pairs in each interval."""


def estimates_of(
    feature_map: FeatureMap, estimators: Sequence[Estimator], vectors: Rows, before_long_call: Pause = no_pause
) -> dict[str, Estimate]:
    """Return functions that estimate tiles of the Gram matrix of the vectors, by the name of the estimator.

    Raises InvalidInput for control variates that are not defined for this map.
    """
    if not set(estimators) - {Estimator.map}:
        return {Estimator.map.value: lambda tile, _, pause: feature_map.gram(tile.x, tile.y, pause)}
    if Gives.frequencies not in feature_map.gives:
        kind = feature_map.spec.kernel.kind
        raise InvalidInput(f"control variates are moments of frequencies; kernel {kind} has none", "/estimators")
    controls = ControlVariates(feature_map, before_long_call)
    prepared = dense(feature_map.compared_exactly(vectors, "/vectors"))

    def by(estimator: Estimator, tile: Tile, exact: Matrix, pause: Pause) -> Array:
        approximate = feature_map.gram(tile.x, tile.y, pause)
        return controls.estimate(estimator, prepared[tile.rows], prepared[tile.columns], exact, approximate, pause)

    return {estimator.value: partial(by, estimator) for estimator in estimators}


class ErrorMatrix:
    """The errors E = K̂ − K of a Gram matrix, held as one triangle; `estimate` returns tiles of K̂.

    For `pairs` i > j, exact and estimated kernels are kept for a figure. The number of tiles done is reported to
    `progress`; its states hold the tiles unless the matrix is too large.
    """

    def __init__(
        self, feature_map: FeatureMap, vectors: Rows, estimate: Estimate, pairs: Pairs, progress: Progress
    ) -> None:
        self._n, self._progress = vectors.shape[0], progress
        self._is_complex = feature_map.gram_dtype.kind == "c"
        state = unpack_arrays(progress.restore())
        self._tiles = HermitianTiles(self._n, self._is_complex, state)
        self._scatter = state.get("scatter", np.zeros((2, len(pairs[0]))))
        for tile in _tiles_to_set(self._tiles, vectors, progress, self._pause):
            exact = feature_map.exact_gram(tile.x, tile.y, self._pause)
            estimated = estimate(tile, exact, self._pause)
            i, j = pairs[0] - tile.rows.start, pairs[1] - tile.columns.start
            inside = (i >= 0) & (i < len(exact)) & (j >= 0) & (j < exact.shape[1])
            self._scatter[:, inside] = exact[i[inside], j[inside]], estimated[i[inside], j[inside]].real
            errors = np.subtract(estimated, exact, out=None if self._is_complex else exact)
            self._pause()
            self._tiles.add(errors, self._pause)

    def figures(self, frobenius: float, spectral: float) -> Figures:
        """Return sizes of the errors; relative sizes are divided by these norms of the exact matrix K."""
        entries, tiles = self._n**2, self._tiles
        if not (frobenius and spectral):
            raise InvalidInput("the exact kernel of these rows is 0: an error has no relative size", "/vectors")
        return Figures(
            relative_frobenius=float(np.sqrt(tiles.squares)) / frobenius,
            relative_spectral=tiles.spectral_norm(self._pause) / spectral,
            max_abs=tiles.largest,
            mean_square=tiles.squares / entries,
            bias=tiles.sum / entries,
        )

    def interval(self, frobenius: float, of_rows: Sequence[float]) -> tuple[float, float]:
        """Return the 95 % interval of `relative_frobenius` on as many other rows; `of_rows` is Σ_j K_ij², (n,)."""
        variation = row_variation(self._tiles.row_squares(self._pause), np.array(of_rows))
        return variation.interval(float(np.sqrt(self._tiles.squares)) / frobenius)

    def sketch(self) -> Sketch:
        """Return the histogram of the errors, and errors of the sampled pairs by their kernel."""
        least, largest = 0.0 if self._is_complex else -1.0, self._tiles.largest
        counts, edges = np.zeros(BINS, np.int64), np.linspace(least, 1.0, BINS + 1)
        for mirrored, tile in self._tiles:
            for part in row_blocks(len(tile), _ROWS_PER_PART):
                # Relative to the largest: bins of tiny errors may be narrower than the spacing of floats.
                values = (np.abs(tile[part]) if self._is_complex else tile[part]) / np.float64(largest or 1.0)
                # Rounding to float32 may take the largest out of the range.
                found, _ = np.histogram(np.clip(values, least, 1.0), BINS, (least, 1.0))
                counts += (2 if mirrored else 1) * found
                self._pause()
        exact, estimate = self._scatter
        kernel, rms = rms_by_kernel(exact, estimate - exact)
        return Sketch(edges=(largest * edges).tolist(), counts=counts.tolist(), kernel=kernel, rms=rms)

    def density(self, of: int) -> Density:
        """Return the errors of the sampled pairs against their exact kernel, as one of `of` densities in a figure."""
        exact, estimate = self._scatter
        return density(exact, estimate - exact, "pairs", of=of)

    def _pause(self) -> None:
        self._progress.checkpoint(lambda: self._tiles.state(scatter=self._scatter))


def exact_norms(feature_map: FeatureMap, vectors: Rows, progress: Progress) -> tuple[float, float, list[float]]:
    """Return Frobenius and spectral norm of the exact matrix K, and Σ_j K_ij² of each row; report tiles done."""
    tiles = HermitianTiles(vectors.shape[0], False, unpack_arrays(progress.restore()))
    pause = partial(progress.checkpoint, tiles.state)
    for tile in _tiles_to_set(tiles, vectors, progress, pause):
        tiles.add(feature_map.exact_gram(tile.x, tile.y, pause), pause)
    return float(np.sqrt(tiles.squares)), tiles.spectral_norm(pause), tiles.row_squares(pause).tolist()


def _tiles_to_set(tiles: HermitianTiles, vectors: Rows, progress: Progress, pause: Pause) -> Iterator[Tile]:
    """Yield the missing tiles one after the other; report each, and pause when it is done."""
    of = len([*tile_places(vectors.shape[0])])
    for done, (rows, columns) in enumerate(tiles.missing, of - len(tiles.missing)):
        progress.report(done, of)
        x = vectors[rows]
        yield Tile(rows, columns, x, x if rows == columns else vectors[columns])
        progress.report(done + 1, of)
        pause()
