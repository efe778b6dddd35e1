"""Errors of a map's kernel for differences δ: of a set of frequencies, which knows δ alone, or around rows."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from app.core.arrays import Rows, dense, largest, row_blocks
from app.core.errors import InvalidInput
from app.core.kernels.base import Matrix
from app.core.maps import FeatureMap, Spectrum
from app.core.progress import Pause
from app.core.threads import for_each

# Of phases, those that one thread computes at a time.
_PHASES_PER_PART = 1 << 17


class BallErrors(Protocol):
    """Errors at differences that are drawn once and taken at several lengths."""

    @property
    def form(self) -> str | None:
        """`complex` where the imaginary part is measured too, else `cos_sin`; None where there are no frequencies."""

    def check(self, diameter: float) -> None:
        """Raise InvalidInput if differences of this length leave the range of numbers."""

    def begun(self, lags: Matrix) -> Matrix:
        """What `at` needs of some lags (n, d) and is the same for every diameter, such as phases at diameter 1."""

    def at(self, diameter: float, first: int, lags: Matrix, begun: Matrix, pause: Pause) -> Matrix:
        """Errors at `diameter` times the lags, (n,), the first of which is number `first` of all."""


class SetErrors(NamedTuple):
    """Errors |k(δ) − k̂(δ)| of the kernel of a set, some rows of δ on each thread."""

    spectrum: Spectrum
    form: str
    threads: int

    def check(self, diameter: float) -> None:
        """Refuse phases that leave float64."""
        reach = float(np.abs(self.spectrum.frequencies).sum(axis=1).max())
        if diameter * max(reach, 1.0) > np.finfo(np.float64).max / 4:
            raise InvalidInput(f"a diameter of {diameter:.3g} makes phases that leave float64", "/diameters")

    def begun(self, lags: Matrix) -> Matrix:
        """w_l·δ of every frequency, (n, s)."""
        projected = np.empty((len(lags), len(self.spectrum.weights)))

        def project(part: slice) -> None:
            np.matmul(lags[part], self.spectrum.frequencies.T, out=projected[part])

        self._share_out(project, len(lags))
        return projected

    def at(self, diameter: float, first: int, lags: Matrix, begun: Matrix, pause: Pause) -> Matrix:
        """Errors of cosines, and of sines where they are features too."""
        error = np.empty(len(lags))
        origin = np.zeros((1, lags.shape[1]))

        def measure(part: slice) -> None:
            phases = diameter * begun[part]
            exact = self.spectrum.kernel.gram(diameter * lags[part], origin)[:, 0] / self.spectrum.scale
            error[part] = np.abs(np.cos(phases) @ self.spectrum.weights - exact)
            if self.form == "complex":
                error[part] = np.hypot(error[part], np.sin(phases) @ self.spectrum.weights)

        self._share_out(measure, len(lags))
        return error

    def _share_out(self, work: Callable[[slice], None], n: int) -> None:
        for_each(work, row_blocks(n, _PHASES_PER_PART // len(self.spectrum.weights)), self.threads)


class ErrorsAround(NamedTuple):
    """Errors |k(x − δ/2, x + δ/2) − k̂(x − δ/2, x + δ/2)|, each x in turn one of some rows.

    The row itself is of no pair: where features are kernel values with it, its own kernels have no error.
    """

    feature_map: FeatureMap
    anchors: Rows
    form: None = None

    def check(self, diameter: float) -> None:
        """Refuse rows that leave the map's dtype."""
        dtype = self.feature_map.spec.numpy_dtype
        if diameter + largest(self.anchors) > float(np.finfo(dtype).max) / 4:
            raise InvalidInput(f"a diameter of {diameter:.3g} makes rows that leave {dtype}", "/diameters")

    def begun(self, lags: Matrix) -> Matrix:
        """Nothing."""
        return lags

    def at(self, diameter: float, first: int, lags: Matrix, begun: Matrix, pause: Pause) -> Matrix:
        """Errors of inner products of features, of rows as the map's dtype holds them."""
        anchors = dense(self.anchors[np.arange(first, first + len(lags)) % self.anchors.shape[0]])
        half, dtype = diameter / 2 * lags, self.feature_map.spec.numpy_dtype
        x, y = (self.feature_map.kernel.in_domain(anchors + side).astype(dtype) for side in (-half, half))
        error: Matrix = np.abs(self.feature_map.estimated_pairs(x, y, pause) - self.feature_map.exact_pairs(x, y))
        return error
