"""Errors of a map's kernel for differences δ: of frequencies, where they hang on δ alone, or around rows."""

from typing import NamedTuple, Protocol

import numpy as np

from app.core.arrays import Matrix, Rows, dense, largest
from app.core.errors import InvalidInput
from app.core.maps import FeatureMap
from app.core.progress import Pause


class BallErrors(Protocol):
    """Errors at differences that are drawn once and taken at several lengths."""

    @property
    def form(self) -> str | None:
        """`complex` where the imaginary part is measured too, else `cos_sin`; None where there are no frequencies."""

    def check(self, diameter: float) -> None:
        """Raise InvalidInput if differences of this length leave the range of numbers."""

    def at(self, diameter: float, first: int, lags: Matrix, pause: Pause) -> Matrix:
        """Errors at `diameter` times the lags, (n,), the first of which is number `first` of all."""


class SetErrors(NamedTuple):
    """Errors |k(δ) − k̂(δ)| of a map of frequencies, between rows δ and the origin, as its dtype has them."""

    feature_map: FeatureMap
    form: str

    def check(self, diameter: float) -> None:
        """Refuse phases that leave the map's dtype."""
        largest = np.full((1, self.feature_map.spec.input_dim), diameter)
        try:
            self.feature_map.lag_errors(largest)
        except InvalidInput as error:
            raise InvalidInput(f"a diameter of {diameter:.3g}: {error.detail}", "/diameters") from None

    def at(self, diameter: float, first: int, lags: Matrix, pause: Pause) -> Matrix:
        """Errors of the map's inner products, the imaginary part included where they have one."""
        return self.feature_map.lag_errors(diameter * lags, pause)


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

    def at(self, diameter: float, first: int, lags: Matrix, pause: Pause) -> Matrix:
        """Errors of inner products of features, which the map makes of the rows rounded to its dtype."""
        anchors = dense(self.anchors[np.arange(first, first + len(lags)) % self.anchors.shape[0]])
        half = diameter / 2 * lags
        x, y = (self.feature_map.kernel.in_domain(anchors + side) for side in (-half, half))
        error: Matrix = np.abs(self.feature_map.estimated_pairs(x, y, pause) - self.feature_map.exact_pairs(x, y))
        return error
