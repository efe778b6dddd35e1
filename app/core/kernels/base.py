"""What a shift-invariant kernel must tell the samplers, and what kernels with length scales share."""

from abc import abstractmethod
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Discriminator, Field, Tag

from app.core.errors import InvalidInput
from app.core.model import Frozen

Positive = Annotated[float, Field(gt=0)]
LengthScale = Annotated[
    Annotated[Positive, Tag("number")] | Annotated[tuple[Positive, ...], Field(fail_fast=True), Tag("list")],
    Discriminator(lambda value: "list" if isinstance(value, list | tuple) else "number"),
]
"""One number for every coordinate, or a list with one per coordinate (automatic relevance determination)."""

Matrix = NDArray[np.float64]


class ShiftInvariantKernel(Frozen):
    """A kernel k(x - z) with k(0) = 1 and its spectral law p: k(δ) = ∫ p(w) cos(w·δ) dw (Bochner's theorem)."""

    @abstractmethod
    def check(self, input_dim: int) -> None:
        """Raise InvalidInput if the kernel does not fit vectors of `input_dim` entries."""

    @abstractmethod
    def frequencies(self, uniforms: Matrix) -> Matrix:
        """Map uniforms in the open unit cube, shape (s, d), to frequencies of the spectral law, shape (s, d)."""

    @abstractmethod
    def frequency_deviations(self, input_dim: int) -> Matrix | None:
        """Standard deviations of the frequencies' coordinates, shape (d,); None where the law has none."""

    @abstractmethod
    def gram(self, x: Matrix, y: Matrix) -> Matrix:
        """Exact kernel block: rows (n, d) and (m, d) to (n, m), without an n×m×d temporary."""


class ProductKernel(ShiftInvariantKernel):
    """A product of one-dimensional kernels of δ_j/σ_j, whose frequencies are independent with scale 1/σ_j."""

    length_scale: LengthScale

    @abstractmethod
    def standard_quantile(self, uniforms: Matrix) -> Matrix:
        """Quantile function of one frequency at σ = 1, elementwise."""

    @abstractmethod
    def standard_variance(self) -> float | None:
        """Variance of one frequency at σ = 1; None where it is infinite."""

    @abstractmethod
    def standard_gram(self, x: Matrix, y: Matrix) -> Matrix:
        """Exact kernel block at σ = 1."""

    def scales(self, input_dim: int) -> Matrix:
        """The length scales σ_j, shape (d,)."""
        return np.broadcast_to(np.asarray(self.length_scale, dtype=np.float64), (input_dim,))

    def check(self, input_dim: int) -> None:
        """One length scale, or as many as there are coordinates."""
        if isinstance(self.length_scale, tuple) and len(self.length_scale) != input_dim:
            raise InvalidInput(
                f"length_scale has {len(self.length_scale)} entries; input_dim {input_dim} wants as many, or one",
                "/kernel/length_scale",
            )

    def frequencies(self, uniforms: Matrix) -> Matrix:
        """Quantile transform, then division by σ_j."""
        frequencies = self.standard_quantile(uniforms)
        with np.errstate(over="ignore"):  # refused by name below
            frequencies /= self.scales(uniforms.shape[1])
        if not np.isfinite(frequencies).all():
            raise InvalidInput(
                "length_scale is so small that frequencies leave the range of float64", "/kernel/length_scale"
            )
        return frequencies

    def frequency_deviations(self, input_dim: int) -> Matrix | None:
        """Standard deviation at σ = 1, divided by σ_j; no squares, which would leave the range of float64 first."""
        variance = self.standard_variance()
        with np.errstate(over="ignore"):  # a deviation of infinity has infinite frequencies, refused above
            return None if variance is None else np.sqrt(variance) / self.scales(input_dim)

    def gram(self, x: Matrix, y: Matrix) -> Matrix:
        """Exact kernel block of the rows divided by σ."""
        return self.standard_gram(self._scaled(x), self._scaled(y))

    def _scaled(self, rows: Matrix) -> Matrix:
        with np.errstate(over="ignore"):  # refused by name below: two infinities have no distance
            scaled = rows / self.scales(rows.shape[1])
        if not np.isfinite(scaled).all():
            raise InvalidInput("an entry divided by its length_scale leaves the range of float64")
        return scaled
