"""Bases of the kernels with length scales."""

from abc import abstractmethod
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Discriminator, Field, Tag

from app.core.errors import InvalidInput
from app.core.kernels.base import Matrix, Positive, SpectralKernel, check_entries

LengthScale = Annotated[
    Annotated[Positive, Tag("number")] | Annotated[tuple[Positive, ...], Field(fail_fast=True), Tag("list")],
    Discriminator(lambda value: "list" if isinstance(value, list | tuple) else "number"),
]
"""One number for every coordinate, or a list with one per coordinate (automatic relevance determination)."""

LENGTH_SCALE = "σ_j, in the unit of coordinate j of the vectors: one number for all, or a list of one per coordinate."


class ScaledKernel(SpectralKernel):
    """A kernel of δ_j/σ_j."""

    length_scale: LengthScale = Field(description=LENGTH_SCALE)

    def scales(self, input_dim: int) -> Matrix:
        """The length scales σ_j, shape (d,)."""
        return np.broadcast_to(np.asarray(self.length_scale, dtype=np.float64), (input_dim,))

    def check(self, input_dim: int) -> None:
        """One length scale, or as many as there are coordinates."""
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
            deviations = standard / np.asarray(self.length_scale, dtype=np.float64)
        return np.broadcast_to(deviations, (input_dim,))

    def scaled_rows(self, rows: Matrix) -> Matrix:
        """Rows divided by σ_j."""
        with np.errstate(over="ignore"):  # refused by name below: two infinities have no distance
            scaled = rows / self.scales(rows.shape[1])
        if not np.isfinite(scaled).all():
            raise InvalidInput("an entry divided by its length_scale leaves the range of float64")
        return scaled


class ProductKernel(ScaledKernel):
    """A product of one-dimensional kernels, whose frequencies are independent with scale 1/σ_j."""

    standard_deviation: ClassVar[float | None]
    """Standard deviation of one frequency at σ = 1; None where it is infinite."""

    @abstractmethod
    def standard_quantile(self, uniforms: Matrix) -> Matrix:
        """Quantile function of one frequency at σ = 1, elementwise."""

    @abstractmethod
    def standard_characteristic(self, lags: Matrix) -> Matrix:
        """φ, the characteristic function of one frequency at σ = 1, elementwise: the one-dimensional kernel.

        All that the box discrepancy needs of a kernel. It is integrated on panels from 0 to 1 and on to each power of
        two, on which it must be smooth; a kink at 0 does no harm.
        """

    @abstractmethod
    def standard_gram(self, x: Matrix, y: Matrix) -> Matrix:
        """Exact kernel block at σ = 1."""

    def frequencies(self, uniforms: Matrix) -> Matrix:
        """Quantile transform, then division by σ_j."""
        return self.scaled_frequencies(self.standard_quantile(uniforms))

    def frequency_deviations(self, input_dim: int) -> Matrix | None:
        """The standard deviation at σ = 1, divided by σ_j."""
        return None if self.standard_deviation is None else self.scaled_deviations(self.standard_deviation, input_dim)

    def gram(self, x: Matrix, y: Matrix) -> Matrix:
        """Exact kernel block of the rows divided by σ."""
        return self.standard_gram(self.scaled_rows(x), self.scaled_rows(y))
