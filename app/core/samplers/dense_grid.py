"""The full tensor grid."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from app.core.errors import InvalidInput
from app.core.kernels.base import SpectralKernel
from app.core.samplers.base import FrequencySampler, FrequencySet
from app.core.samplers.gauss_hermite import deviations_for_grid, gauss_hermite

_MOST_POINTS = 1 << 20


class DenseGrid(FrequencySampler):
    """Every combination of L Gauss–Hermite nodes (GQ paper, section 3.1): L^d points, for two or three dimensions.

    The error falls exponentially with L while the diameter of the data in units of σ stays moderate.
    """

    kind: Literal["dense_grid"]
    points_per_dim: Annotated[int, Field(ge=1, le=200, description="L, nodes of the one-dimensional rule.")]

    def count(self, s: int | None, input_dim: int) -> int:
        """L^d; of absurd powers only as many factors as pass every limit."""
        del s
        return int(self.points_per_dim ** min(input_dim, 64))

    def check(self, kernel: SpectralKernel, s: int, input_dim: int) -> None:
        """A normal law, and a count that can be held."""
        del s
        deviations_for_grid(kernel, input_dim, self.kind)
        if self.count(None, input_dim) > _MOST_POINTS:
            raise InvalidInput(
                f"dense_grid has {self.points_per_dim}^{input_dim} ≈ 1e{input_dim * np.log10(self.points_per_dim):.0f} "
                f"points; {_MOST_POINTS} is the most: sparse_grid or polynomially_exact need far fewer",
                "/sampler/points_per_dim",
            )

    def frequency_set(self, kernel: SpectralKernel, s: int, input_dim: int, rng: np.random.Generator) -> FrequencySet:
        """The grid, last coordinate fastest, with products of weights; nothing here is random."""
        del s, rng
        nodes, weights = gauss_hermite(self.points_per_dim)
        axes = np.meshgrid(*[nodes] * input_dim, indexing="ij")
        frequencies = np.stack([axis.ravel() for axis in axes], axis=1)
        products = weights
        for _ in range(input_dim - 1):
            products = np.multiply.outer(products, weights)
        return FrequencySet(frequencies * deviations_for_grid(kernel, input_dim, self.kind), products.ravel())
