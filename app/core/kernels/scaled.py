"""Kernels with length scales, and those of them that are products over the coordinates."""

from abc import abstractmethod
from collections.abc import Iterator
from functools import partial
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from app.core.arrays import Matrix, Rows
from app.core.kernels.base import LENGTH_SCALE, LengthScale, SpectralKernel
from app.core.kernels.differences import Metric, distances, finite, lags
from app.core.kernels.rounding import OfLengthScales
from app.core.model import check_entries


class ScaledKernel(SpectralKernel):
    """A kernel of δ_j/σ_j."""

    length_scale: LengthScale = Field(description=LENGTH_SCALE)

    def scales(self, input_dim: int) -> Matrix:
        """The length scales σ_j, shape (d,)."""
        return np.broadcast_to(self.length_scales, (input_dim,))

    def radial_quantile(self, uniforms: Matrix, dim: int) -> Matrix | None:
        """Quantiles of a frequency's length in `dim` coordinates at σ = 1; None where directions are not uniform."""
        return None

    def check(self, input_dim: int) -> None:
        """Refuse a list of length scales that has not one for each coordinate."""
        check_entries(self.length_scale, input_dim, self.scale_field, f"/kernel/{self.scale_field}", ", or one")

    def scaled_frequencies(self, standard: Matrix) -> Matrix:
        """Frequencies at σ = 1, divided in place by σ_j."""
        with np.errstate(over="ignore"):  # refused by name below
            standard /= self.scales(standard.shape[1])
        if not np.isfinite(standard).all():
            raise self.out_of_range("float64")
        return standard

    def scaled_deviations(self, standard: float, input_dim: int) -> Matrix:
        """A standard deviation at σ = 1, divided by σ_j; no squares, which would leave the range of float64 first."""
        with np.errstate(over="ignore"):  # a deviation of infinity has infinite frequencies, refused above
            deviations = standard / self.length_scales
        return np.broadcast_to(deviations, (input_dim,))

    def scaled_rows(self, rows: Matrix) -> Matrix:
        """Rows divided by σ_j."""
        with np.errstate(over="ignore"):  # refused by name
            return finite(rows / self.scales(rows.shape[1]))

    def distances(self, x: Matrix, y: Matrix, metric: Metric) -> Matrix:
        """Distances of rows (n, d) and (m, d) divided by σ_j, (n, m), as good far from 0 as near it."""
        return distances(x, y, self.scales(x.shape[1]), metric)

    def lags(self, x: Matrix, y: Matrix) -> Iterator[Matrix]:
        """δ_j/σ_j of every row of x and of y, (n, m), coordinate by coordinate, as good far from 0 as near it."""
        return lags(x, y, self.scales(x.shape[1]))

    def rounding(self, dtype: np.dtype[np.floating]) -> OfLengthScales:
        """By the length scales, in the kernel's metric."""
        is_sum = self.metric == "cityblock"
        return OfLengthScales(dtype, self.length_scales, partial(_norms, order=1 if is_sum else 2), is_sum)

    @property
    def length_scales(self) -> Matrix:
        """σ, (), or σ_j, (d,)."""
        return np.asarray(self.length_scale, dtype=np.float64)


class ProductKernel(ScaledKernel):
    """A product of one-dimensional kernels, whose frequencies are independent with scale 1/σ_j."""

    standard_deviation: ClassVar[float | None]
    """Standard deviation of one frequency at σ = 1; None where it is infinite."""

    @abstractmethod
    def standard_quantile(self, uniforms: Matrix) -> Matrix:
        """Quantile function of one frequency at σ = 1, elementwise; it may write over the uniforms."""

    @abstractmethod
    def standard_characteristic(self, lags: Matrix) -> Matrix:
        """φ, the characteristic function of one frequency at σ = 1, elementwise: the one-dimensional kernel.

        All that the box discrepancy needs of a kernel. It is integrated on panels from 0 to 1 and on to each power of
        two, on which it must be smooth; a kink at 0 does no harm.
        """

    def frequencies(self, uniforms: Matrix) -> Matrix:
        """Quantile transform, then division by σ_j."""
        return self.scaled_frequencies(self.standard_quantile(uniforms))

    def frequency_deviations(self, input_dim: int) -> Matrix | None:
        """The standard deviation at σ = 1, divided by σ_j."""
        return None if self.standard_deviation is None else self.scaled_deviations(self.standard_deviation, input_dim)


def _norms(scaled: Rows, order: Literal[1, 2]) -> Matrix:
    """The norms of rows (n, d), (n,)."""
    if isinstance(scaled, np.ndarray):
        return np.asarray(np.linalg.norm(scaled, order, axis=1), np.float64)
    powers = (abs(scaled) ** order).sum(axis=1)
    return np.asarray(powers, np.float64) ** (1 / order)
