"""The greatest error of a map's kernel over a ball of differences."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from typing_extensions import TypedDict

from app.core.arrays import row_blocks
from app.core.diagnostics.base import Diagnostic, Finding, GivenRows, Seed, Takes
from app.core.diagnostics.bounds import greatest_error_bound
from app.core.drawing import Curve, Drawing, Panel
from app.core.errors import InvalidInput
from app.core.kernels.base import Positive
from app.core.kernels.correlation_rbf import CorrelationRbf
from app.core.maps import FeatureMap
from app.core.maps.results import Gives, Spectrum
from app.core.papers import GQ
from app.core.progress import Progress, packed, unpacked
from app.core.spec import Form
from app.core.threads import for_each

Matrix = NDArray[np.float64]

# Phases, or entries of points, held at a time.
_PHASES_PER_BLOCK = 1 << 20
# Of these, those that one thread computes at a time.
_PHASES_PER_PART = 1 << 17


class DiameterError(TypedDict):
    """Of |k(δ) − k̂(δ)| over the δ drawn from one ball |δ| ≤ M."""

    diameter: Annotated[float, Field(description="M.")]
    max: Annotated[float, Field(description="The greatest.")]
    rms: Annotated[float, Field(description="The root of the mean square.")]
    bound: Annotated[float | None, Field(description="Of the greatest over the whole ball; null where none is proved.")]


class MaxErrors(TypedDict):
    """Greatest errors of the kernel over balls of differences."""

    form: Annotated[str, Field(description="`complex` where the imaginary part was measured too, else `cos_sin`.")]
    samples: Annotated[int, Field(description="How many δ.")]
    diameters: Annotated[list[DiameterError], Field(description="In the order of the request.")]


class MaxError(Diagnostic):
    """Greatest and RMS error |k(δ) − k̂(δ)| over balls |δ| ≤ M, with the bound of the paper where one holds."""

    kind = "max-error"
    takes = Takes.nothing
    answer = MaxErrors
    draws = True
    source = f"{GQ}, theorems 2 and 3, figure 1"
    choose_when = "For quadrature rules, which are exact to many digits up to some diameter and useless beyond."

    diameters: Annotated[tuple[Positive, ...], Field(min_length=1, max_length=100, description="M, in the rows' unit.")]
    samples: Annotated[int, Field(ge=1, le=1_000_000, description="Points of each ball.")] = 10_000
    seed: Seed = 0

    def check(self, feature_map: FeatureMap, rows: GivenRows) -> None:
        """Refuse a map without frequencies."""
        del rows
        feature_map.check_gives(Gives.frequencies)

    def memory_bytes(self, feature_map: FeatureMap, rows: GivenRows) -> int:
        """Memory of the set in float64, and of phases and points of a block with what they give."""
        del rows
        s, d = feature_map.n_frequencies, feature_map.spec.input_dim
        return 2 * 8 * s * d + 8 * 8 * max(_PHASES_PER_BLOCK, s, d)

    def run(
        self, feature_map: FeatureMap, rows: GivenRows, progress: Progress | None = None, threads: int = 1
    ) -> Finding[MaxErrors]:
        """Errors of the map's kernel over balls, after figure 1 of the quadrature paper.

        δ is uniform in the ball |δ|₂ ≤ M, in the unit of the vectors; the points of the smaller balls are those of the
        larger ones, shrunk. In high dimension nearly all lie near the surface. The greatest error over finitely many
        points is less than that over the ball. Two rows of a region of diameter M differ by no more than M.

        k̂(δ) = Σ ξ_l cos(w_l·δ) is computed from the frozen arrays in float64. The form `complex` has the error's
        imaginary part Σ ξ_l sin(w_l·δ) too. The form `phase` has noise that is no function of δ, and is not seen here.
        For a normalised map both kernels are divided by their value at 0. For kernel correlation_rbf, δ is the
        difference of two rows of unit length, so that diameters end at 2.

        Raises:
            InvalidInput: a diameter above 2 for kernel correlation_rbf, or one so large that phases leave float64.
        """
        del rows
        spectrum = feature_map.spectrum()
        self._check_diameters(spectrum)
        is_complex = feature_map.spec.form is Form.complex
        errors = _Errors(spectrum, is_complex, threads)
        largest, squares = self._sums(errors, progress or Progress())
        found = zip(self.diameters, largest.tolist(), np.sqrt(squares / self.samples).tolist(), strict=True)
        answer = MaxErrors(
            form=(Form.complex if is_complex else Form.cos_sin).value,
            samples=self.samples,
            diameters=[
                DiameterError(diameter=diameter, max=most, rms=rms, bound=greatest_error_bound(feature_map, diameter))
                for diameter, most, rms in found
            ],
        )
        return Finding(answer, drawing(answer))

    def _check_diameters(self, spectrum: Spectrum) -> None:
        for i, diameter in enumerate(self.diameters):
            if isinstance(spectrum.kernel, CorrelationRbf) and diameter > 2:
                raise InvalidInput(
                    f"diameter is {diameter:.6g}; rows of unit length, which this kernel compares, differ by at most 2",
                    f"/diameters/{i}",
                )
        reach = float(np.abs(spectrum.frequencies).sum(axis=1).max())
        if max(self.diameters) * max(reach, 1.0) > np.finfo(np.float64).max / 4:
            raise InvalidInput(f"a diameter of {max(self.diameters):.3g} makes phases that leave float64", "/diameters")

    def _sums(self, errors: "_Errors", progress: Progress) -> tuple[Matrix, Matrix]:
        """Of each diameter, the greatest error and the sum of the squares of all errors."""
        state = unpacked(progress.restored())
        squares, largest = state.get("found", np.zeros((2, len(self.diameters))))
        restored = int(state.get("done", 0))
        # A step is a block of points of one ball.
        done, of = 0, self.samples * len(self.diameters)
        s, d = errors.spectrum.frequencies.shape
        for lags in _unit_ball(self.samples, d, s, self.seed):
            if done + len(lags) * len(self.diameters) <= restored:
                done += len(lags) * len(self.diameters)
                continue
            projected = errors.projected(lags)
            for i, diameter in enumerate(self.diameters):
                done += len(lags)
                if done <= restored:
                    continue
                error = errors.at(diameter, lags, projected)
                squares[i] += error @ error
                largest[i] = max(largest[i], error.max())
                progress.report(done, of)
                progress.checkpoint(partial(packed, found=np.array([squares, largest]), done=np.array(done)))
        return largest, squares


class _Errors:
    """Errors |k(δ) − k̂(δ)| of the kernel of a set, some rows of δ on each thread."""

    def __init__(self, spectrum: Spectrum, is_complex: bool, threads: int) -> None:
        self.spectrum = spectrum
        self._is_complex = is_complex
        self._threads = threads

    def projected(self, lags: Matrix) -> Matrix:
        """w_l·δ of every frequency, (n, s)."""
        projected = np.empty((len(lags), len(self.spectrum.weights)))

        def project(part: slice) -> None:
            np.matmul(lags[part], self.spectrum.frequencies.T, out=projected[part])

        self._share_out(project, len(lags))
        return projected

    def at(self, diameter: float, lags: Matrix, projected: Matrix) -> Matrix:
        """Errors at `diameter` times the lags, (n,)."""
        error = np.empty(len(lags))
        origin = np.zeros((1, lags.shape[1]))

        def measure(part: slice) -> None:
            phases = diameter * projected[part]
            exact = self.spectrum.kernel.gram(diameter * lags[part], origin)[:, 0] / self.spectrum.scale
            error[part] = np.abs(np.cos(phases) @ self.spectrum.weights - exact)
            if self._is_complex:
                error[part] = np.hypot(error[part], np.sin(phases) @ self.spectrum.weights)

        self._share_out(measure, len(lags))
        return error

    def _share_out(self, work: Callable[[slice], None], n: int) -> None:
        for_each(work, row_blocks(n, _PHASES_PER_PART // len(self.spectrum.weights)), self._threads)


def _unit_ball(n: int, d: int, n_frequencies: int, seed: int) -> Iterator[Matrix]:
    """Points uniform in the ball of radius 1, (n, d), the same for any number of frequencies, some at a time."""
    rng = np.random.Generator(np.random.PCG64(seed))
    for drawn in row_blocks(n, _PHASES_PER_BLOCK // d):
        points = rng.standard_normal((drawn.stop - drawn.start, d))
        points *= rng.random((len(points), 1)) ** (1 / d) / np.linalg.norm(points, axis=1, keepdims=True)
        for block in row_blocks(len(points), _PHASES_PER_BLOCK // n_frequencies):
            yield points[block]


def drawing(answer: MaxErrors) -> Drawing:
    """Greatest and RMS error against the diameter, and the bound where there is one."""
    found = sorted(answer["diameters"], key=lambda one: one["diameter"])
    curves = []
    members: tuple[tuple[Literal["max", "rms", "bound"], str], ...] = (
        ("max", "greatest"),
        ("rms", "root mean square"),
        ("bound", "bound"),
    )
    for member, label in members:
        points = [(one["diameter"], error) for one in found if (error := one[member]) is not None]
        if points:
            x, y = zip(*points, strict=True)
            curves.append(Curve(x, y, label, dashed=member == "bound"))
    panel = Panel(
        curves,
        x_label="diameter M",
        y_label="|k(δ) − estimate| over |δ| ≤ M",
        title=f"{answer['samples']} points, form {answer['form']}",
        x_scale="log",
        # Errors that are all 0 have no logarithm.
        y_scale="log" if any(one["max"] > 0 for one in found) else "linear",
    )
    return Drawing([[panel]])
