"""The largest error of a map's kernel over a ball of differences."""

from collections.abc import Iterator
from functools import partial
from math import e
from typing import Annotated, Literal, NamedTuple

import numpy as np
from pydantic import Field, with_config
from typing_extensions import TypedDict

from app.core.arrays import Matrix, Rows, dense, largest, row_blocks
from app.core.diagnostics.base import Diagnostic, Finding, GivenRows, Seed, Takes
from app.core.drawing import Curve, Drawing, Panel
from app.core.errors import InvalidInput
from app.core.kernels.base import Positive
from app.core.maps import FeatureMap, Gives
from app.core.maps.terms import Form
from app.core.model import GQ
from app.core.progress import Pause, Progress, pack_arrays, unpack_arrays
from app.core.samplers.dense_grid import DenseGrid
from app.core.samplers.polynomially_exact import PolynomiallyExact
from app.core.samplers.sparse_grid import SparseGrid


class SetErrors(NamedTuple):
    """Errors |k(δ) − k̂(δ)| of a map with frequencies, between rows δ and the origin, in the map's dtype."""

    feature_map: FeatureMap
    form: str | None
    """`complex` if the imaginary part is measured too, else `cos_sin`."""

    def check(self, diameter: float) -> None:
        """Refuse a diameter whose phases leave the range of the map's dtype."""
        largest = np.full((1, self.feature_map.spec.input_dim), diameter)
        try:
            self.feature_map.lag_errors(largest)
        except InvalidInput as error:
            raise InvalidInput(f"a diameter of {diameter:.3g}: {error.detail}", "/diameters") from None

    def at(self, diameter: float, first: int, lags: Matrix, pause: Pause) -> Matrix:
        """Return errors of the map's inner products, including the imaginary part if there is one."""
        return self.feature_map.lag_errors(diameter * lags, pause)


class ErrorsAround(NamedTuple):
    """Errors |k(x − δ/2, x + δ/2) − k̂(x − δ/2, x + δ/2)|, with each x in turn one of the anchor rows.

    The anchor itself is in no pair: if features are kernel values with it, its own kernels have no error.
    """

    feature_map: FeatureMap
    anchors: Rows
    form: None = None

    def check(self, diameter: float) -> None:
        """Refuse a diameter whose rows leave the range of the map's dtype."""
        dtype = self.feature_map.spec.numpy_dtype
        if diameter + largest(self.anchors) > float(np.finfo(dtype).max) / 4:
            raise InvalidInput(f"a diameter of {diameter:.3g} makes rows that leave {dtype}", "/diameters")

    def at(self, diameter: float, first: int, lags: Matrix, pause: Pause) -> Matrix:
        """Return errors of inner products of features, which the map computes from rows rounded to its dtype."""
        anchors = dense(self.anchors[np.arange(first, first + len(lags)) % self.anchors.shape[0]])
        half = diameter / 2 * lags
        x, y = (self.feature_map.kernel.in_domain(anchors + side) for side in (-half, half))
        error: Matrix = np.abs(self.feature_map.estimated_pairs(x, y, pause) - self.feature_map.exact_pairs(x, y))
        return error


# Phases, features, or entries of points, held at a time.
_PHASES_PER_BLOCK = 1 << 20


@with_config(use_attribute_docstrings=True)
class DiameterError(TypedDict):
    """Sizes of the error over the δ drawn from one ball |δ| ≤ M."""

    diameter: float
    """M, the largest |δ|."""
    max: float
    """Largest error."""
    rms: float
    """Root mean square error."""
    bound: float | None
    """Bound of the error over the whole ball, in exact arithmetic: float32 adds some 1e-7. Null if none is proved."""


@with_config(use_attribute_docstrings=True)
class MaxErrors(TypedDict):
    """Largest errors of the kernel over balls of differences."""

    form: str | None
    """`complex` if the imaginary part was measured too, else `cos_sin`; null if errors were measured around rows.
    """
    samples: int
    """Number of δ in each ball."""
    diameters: list[DiameterError]
    """Errors for each diameter, in the order of the request."""


class MaxError(Diagnostic):
    """Largest and RMS error |k(δ) − k̂(δ)| over balls |δ| ≤ M, with the bound of the paper where one holds.

    For a map that was made from rows and has no frequencies, the error is |k(x, y) − z(x)·z(y)| for rows x and y that
    differ by δ, with each row that the map keeps, in turn, midway between them. If the kernel needs entries of 0 or
    more, x and y are taken without signs.

    Choose when:
        Use it for quadrature rules, which are exact to many digits up to some diameter and useless beyond it.
    """

    kind = "max-error"
    takes = Takes.nothing
    needs = frozenset({Gives.frequencies, Gives.anchors})
    answer = MaxErrors
    draws = True
    source = f"{GQ}, theorems 2 and 3, figure 1"

    diameters: Annotated[tuple[Positive, ...], Field(min_length=1, max_length=100, fail_fast=True)]
    """Largest |δ| of each ball, M, in the unit of the rows."""
    samples: Annotated[int, Field(ge=1, le=1_000_000)] = 10_000
    """Number of δ drawn from each ball."""
    seed: Seed = 0

    def check(self, feature_map: FeatureMap, rows: GivenRows) -> None:
        """Refuse a map that has neither frequencies nor rows that it was made from."""
        if feature_map.anchors() is None:
            feature_map.check_gives(Gives.frequencies)

    def memory_bytes(self, feature_map: FeatureMap, rows: GivenRows) -> int:
        """Return the bytes of the frequency set in float64, and of one block of points with its features and errors."""
        s, d = feature_map.n_frequencies, feature_map.spec.input_dim
        return 2 * 8 * s * d + 8 * 8 * max(_PHASES_PER_BLOCK, s, d)

    def run(self, feature_map: FeatureMap, rows: GivenRows, progress: Progress, threads: int) -> Finding[MaxErrors]:
        """Measure errors of the map's kernel over balls, after figure 1 of the quadrature paper.

        δ is uniform in the ball |δ|₂ ≤ M, in the unit of the vectors; the points of the smaller balls are those of the
        larger ones, shrunk. In high dimension nearly all points lie near the surface.

        k̂(δ) = Σ ξ_l cos(w_l·δ) is the inner product of the features of rows δ and 0, as clients get it: in the map's
        dtype. In the form `complex`, the error includes the imaginary part Σ ξ_l sin(w_l·δ). The form `phase` has noise
        that is no function of δ, and is measured as `cos_sin`. For a normalised map, both kernels are divided by their
        value at 0. Rows far from the origin lose digits of δ by rounding; `gram` measures this loss, not this method.

        If the map has `anchors`, k̂ is the inner product of its features for rows that differ by δ, an anchor midway.

        Raises:
            InvalidInput: a diameter above 2 for kernel correlation_rbf, or one so large that phases leave float64.
        """
        self._check_diameters(feature_map)
        anchors = feature_map.anchors()
        form = Form.complex if feature_map.spec.form is Form.complex else Form.cos_sin
        errors = SetErrors(feature_map, form.value) if anchors is None else ErrorsAround(feature_map, anchors)
        errors.check(max(self.diameters))
        sizes = feature_map.spec.input_dim, feature_map.n_frequencies
        largest, squares = self._sums(errors, *sizes, progress)
        found = zip(self.diameters, largest.tolist(), (largest * np.sqrt(squares / self.samples)).tolist(), strict=True)
        answer = MaxErrors(
            form=errors.form,
            samples=self.samples,
            diameters=[
                DiameterError(diameter=diameter, max=most, rms=rms, bound=greatest_error_bound(feature_map, diameter))
                for diameter, most, rms in found
            ],
        )
        return Finding(answer, drawing(answer))

    def _check_diameters(self, feature_map: FeatureMap) -> None:
        for i, diameter in enumerate(self.diameters):
            if feature_map.kernel.compares_unit_rows and diameter > 2:
                raise InvalidInput(
                    f"expected a diameter up to 2, as rows have unit length, got {diameter:.6g}", f"/diameters/{i}"
                )

    def _sums(self, errors: SetErrors | ErrorsAround, d: int, s: int, progress: Progress) -> tuple[Matrix, Matrix]:
        """Return the largest error, and the sum of the squares of all errors as parts of it, for each diameter."""
        state = unpack_arrays(progress.restore())
        squares, largest = found = state.get("found", np.zeros((2, len(self.diameters))))
        # A step is a block of points of one ball.
        done, restored, of = 0, int(state.get("done", 0)), self.samples * len(self.diameters)
        for lags in _unit_ball(self.samples, d, s, self.seed):
            first = done // len(self.diameters)
            for i, diameter in enumerate(self.diameters):
                keep = partial(pack_arrays, found=found, done=np.array(done))
                done += len(lags)
                if done <= restored:
                    continue
                error = errors.at(diameter, first, lags, partial(progress.checkpoint, keep))
                if most := max(largest[i], error.max()):
                    squares[i] = squares[i] * (largest[i] / most) ** 2 + np.square(error / most).sum()
                    largest[i] = most
                progress.report(done, of)
                progress.checkpoint(partial(pack_arrays, found=found, done=np.array(done)))
        return largest, squares


def _unit_ball(n: int, d: int, n_frequencies: int, seed: int) -> Iterator[Matrix]:
    """Yield points uniform in the unit ball, (n, d), block by block, the same for any number of frequencies."""
    rng = np.random.Generator(np.random.PCG64(seed))
    for drawn in row_blocks(n, _PHASES_PER_BLOCK // d):
        points = rng.standard_normal((drawn.stop - drawn.start, d))
        points *= rng.random((len(points), 1)) ** (1 / d) / np.linalg.norm(points, axis=1, keepdims=True)
        for block in row_blocks(len(points), _PHASES_PER_BLOCK // n_frequencies):
            yield points[block]


def greatest_error_bound(feature_map: FeatureMap, diameter: float) -> float | None:
    """Return a bound of |k(δ) − k̂(δ)| for every |δ| ≤ `diameter`, in the unit of the vectors; None if none is proved.

    The spectrum is subgaussian with parameter b: for N(0, diag σ_j⁻²), b = 1/min σ_j. From the quadrature paper:

    - Theorem 2, for rules with non-negative weights exact to the even total degree R: 3(e b²M²/R)^(R/2). Sampler
      polynomially_exact has R = degree, one less if that is odd; dense_grid has R = 2L − 2, the largest even number up
      to its degree 2L − 1.
    - Theorem 3, for sparse grids of level A ≥ 24 e b²M²: 2^d (12 e b²M²/A)^A.

    The bounds hold in exact arithmetic; float32 adds about 1e-7, or 1e-7 times the sum of |weights| if weights have
    both signs. Kernel anova, a sum of kernels on its subsets, has no bound. A bound outside the range of float64 is
    not returned.
    """
    spec = feature_map.spec
    if not isinstance(spec.sampler, PolynomiallyExact | DenseGrid | SparseGrid):
        return None
    deviations = feature_map.spectrum().kernel.normal_deviations(spec.input_dim)
    if deviations is None:
        return None
    with np.errstate(over="ignore"):  # an infinite bound becomes None
        square = np.square(np.float64(diameter) * deviations.max())
        match spec.sampler:
            case PolynomiallyExact(degree=degree):
                bound = _theorem_2(square, degree - degree % 2)
            case DenseGrid(points_per_dim=points):
                bound = _theorem_2(square, 2 * points - 2)
            case SparseGrid(level=level) if level >= 24 * e * square and level:
                bound = 2.0**spec.input_dim * (12 * e * square / level) ** level
            case _:
                return None
    return float(bound) if np.isfinite(bound) else None


def _theorem_2(square: np.float64, degree: int) -> np.float64:
    """Return the bound of theorem 2, 3(e b²M²/R)^(R/2), for `square` b²M² and `degree` R; infinity for R = 0."""
    return 3 * (e * square / degree) ** (degree / 2) if degree else np.float64(np.inf)


def drawing(answer: MaxErrors) -> Drawing:
    """Plot largest and RMS error against the diameter, and the bound where there is one."""
    found = sorted(answer["diameters"], key=lambda one: one["diameter"])
    curves = []
    labels: dict[Literal["max", "rms", "bound"], str] = {"max": "greatest", "rms": "root mean square", "bound": "bound"}
    for colour, (member, label) in enumerate(labels.items()):
        # An error of 0 has no logarithm.
        points = [(one["diameter"], error) for one in found if (error := one[member])]
        if points:
            x, y = zip(*points, strict=True)
            bound = member == "bound"
            curves.append(Curve(x, y, label, None if bound else colour, "dashed" if bound else "joined"))
    panel = Panel(
        curves,
        x_label="diameter M, in the unit of the rows",
        y_label="error |k(δ) − estimate| over |δ| ≤ M",
        title=f"{answer['samples']:,} points of each ball"
        + (f", form {answer['form']}" if answer["form"] else "")
        + ("" if curves else ": no error"),
        x_scale="log",
        y_scale="log" if curves else "linear",
    )
    return Drawing([[panel]])
