"""The matrix of the errors of a Gram matrix, tile by tile, and what is told of it."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field
from typing_extensions import TypedDict

from app.core.arrays import Array, Matrix, Rows, dense, row_blocks
from app.core.diagnostics.control_variates import ControlVariates, Estimator
from app.core.diagnostics.hermitian_tiles import HermitianTiles, tile_places
from app.core.diagnostics.random_pairs import Whole, rms_by_kernel
from app.core.drawing import Density, density
from app.core.errors import InvalidInput
from app.core.maps import FeatureMap, Gives
from app.core.progress import Pause, Progress, no_pause, unpacked

# Odd, so that errors about 0, such as the diagonal's, are not shared out by chance between two bins.
BINS = 61
# Rows of a tile whose errors are counted at a time.
_ROWS_PER_PART = 256


class Figures(TypedDict):
    """Sizes of E = K̂ − K, the matrix of a Gram matrix's errors; all its n² entries count."""

    relative_frobenius: Annotated[
        float,
        Field(
            description="‖E‖_F/‖K‖_F. The `report` of a learned map has it as `gram_error`, of some rows of its "
            "dataset, and recommendations as `error_mean`."
        ),
    ]
    relative_spectral: Annotated[float, Field(description="‖E‖₂/‖K‖₂.")]
    max_abs: Annotated[float, Field(description="max |E_ij|.")]
    mean_square: Annotated[float, Field(description="The mean of |E_ij|².")]
    bias: Annotated[float, Field(description="The mean of E_ij, which is real, as E is Hermitian.")]


class Tile(NamedTuple):
    """A tile of a Gram matrix."""

    rows: slice
    columns: slice
    x: Rows
    """The vectors of its rows."""
    y: Rows
    """The vectors of its columns; on the diagonal the same object as `x`, so that a map does its work once."""


Estimate = Callable[[Tile, Matrix, Pause], Array]
"""Gives the estimate of a tile, from the tile and its exact kernel; its third argument is called between steps."""


class Sketch(TypedDict):
    """What to draw: a histogram of E_ij over all entries, and the errors of some pairs i > j by their exact kernel.

    In the form complex, the histogram is of |E_ij|, and the errors of the pairs are those of the real part.
    """

    edges: list[float]
    counts: list[int]
    kernel: list[float]
    """The middles of stretches of the exact kernel that have pairs."""
    rms: list[float]
    """The root of the mean square error of the pairs of each stretch."""


def estimates_of(
    feature_map: FeatureMap, estimators: Sequence[Estimator], vectors: Rows, before_long_call: Pause = no_pause
) -> dict[str, Estimate]:
    """How to estimate the tiles of the Gram matrix of the vectors, by the name of the estimator.

    InvalidInput for control variates that have no meaning for this map.
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
    """The errors E = K̂ − K of a Gram matrix, of which one triangle is held; `estimate` gives tiles of K̂.

    Of the pairs i > j exact and estimated kernels are noted for a picture. `progress` is told how many tiles are done;
    its states hold the tiles of matrices that are not too large.
    """

    def __init__(
        self, feature_map: FeatureMap, vectors: Rows, estimate: Estimate, pairs: tuple[Whole, Whole], progress: Progress
    ) -> None:
        self._n, self._progress = vectors.shape[0], progress
        self._is_complex = feature_map.gram_dtype.kind == "c"
        state = unpacked(progress.restored())
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
        """Sizes of the errors; the relative ones are over these norms of the exact matrix K."""
        entries, tiles = self._n**2, self._tiles
        return Figures(
            relative_frobenius=float(np.sqrt(tiles.squares)) / frobenius,
            relative_spectral=tiles.spectral_norm(self._pause) / spectral,
            max_abs=tiles.largest,
            mean_square=tiles.squares / entries,
            bias=tiles.sum / entries,
        )

    def sketch(self) -> Sketch:
        """The histogram of the errors, and those of the sampled pairs by their kernel."""
        least, largest = 0.0 if self._is_complex else -1.0, self._tiles.largest
        counts, edges = np.zeros(BINS, np.int64), np.linspace(least, 1.0, BINS + 1)
        for mirrored, tile in self._tiles:
            for part in row_blocks(len(tile), _ROWS_PER_PART):
                # As parts of the largest: the bins of tiny errors themselves may be narrower than numbers lie.
                values = (np.abs(tile[part]) if self._is_complex else tile[part]) / np.float64(largest or 1.0)
                # Rounding to float32 takes the largest out of the range.
                found, _ = np.histogram(np.clip(values, least, 1.0), BINS, (least, 1.0))
                counts += (2 if mirrored else 1) * found
                self._pause()
        exact, estimate = self._scatter
        kernel, rms = rms_by_kernel(exact, estimate - exact)
        return Sketch(edges=(largest * edges).tolist(), counts=counts.tolist(), kernel=kernel, rms=rms)

    def density(self, of: int) -> Density:
        """The errors of the sampled pairs against their exact kernel, one density of `of` in a drawing."""
        exact, estimate = self._scatter
        return density(exact, estimate - exact, "pairs", of=of)

    def _pause(self) -> None:
        self._progress.checkpoint(lambda: self._tiles.state(scatter=self._scatter))


def exact_norms(feature_map: FeatureMap, vectors: Rows, progress: Progress) -> tuple[float, float]:
    """Frobenius and spectral norm of the exact matrix K; tells `progress` how many tiles are done."""
    tiles = HermitianTiles(vectors.shape[0], False, unpacked(progress.restored()))
    pause = partial(progress.checkpoint, tiles.state)
    for tile in _tiles_to_set(tiles, vectors, progress, pause):
        tiles.add(feature_map.exact_gram(tile.x, tile.y, pause), pause)
    return float(np.sqrt(tiles.squares)), tiles.spectral_norm(pause)


def _tiles_to_set(tiles: HermitianTiles, vectors: Rows, progress: Progress, pause: Pause) -> Iterator[Tile]:
    """The tiles that are missing, one after the other; tells of each and pauses when it is done."""
    of = len([*tile_places(vectors.shape[0])])
    for done, (rows, columns) in enumerate(tiles.missing, of - len(tiles.missing)):
        progress.report(done, of)
        x = vectors[rows]
        yield Tile(rows, columns, x, x if rows == columns else vectors[columns])
        progress.report(done + 1, of)
        pause()
