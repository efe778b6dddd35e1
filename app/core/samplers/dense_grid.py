"""The full tensor grid."""

from functools import cache
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field

from app.core.errors import InvalidInput
from app.core.kernels.base import AnyKernel, SpectralKernel
from app.core.model import GQ
from app.core.samplers.base import FrequencySampler, FrequencySet, Rng
from app.core.samplers.normal_law import NORMAL_LAW, directions, gauss_hermite, normal_deviations, reach, reach_warnings

_MOST_POINTS, _MOST_NODES = 1 << 20, 200


class DenseGrid(FrequencySampler):
    """Every combination of L Gauss–Hermite nodes in each coordinate: L^d points.

    Choose when:
        Use it in two or three dimensions for moderate |δ|/σ: 11 nodes in two dimensions have an error of 6e-8 up to |δ|
        = 2σ. Do not use it in many dimensions: the error falls exponentially with the number of nodes per coordinate,
        but the number of points grows exponentially with the dimension.
    """

    source = f"{GQ}, section 3.3"
    limits = (f"at most {_MOST_POINTS} points, points_per_dim^input_dim", NORMAL_LAW)

    held_at_once = 3

    kind: Literal["dense_grid"]
    points_per_dim: Annotated[int, Field(ge=1, le=_MOST_NODES)]
    """L, number of nodes of the one-dimensional rule."""

    @classmethod
    def suggest(cls, kernel: AnyKernel, input_dim: int, most: int, dataset: str | None) -> tuple[Self, ...]:
        """Return the largest grid of at most `most` points, unless it has fewer than three nodes per coordinate."""
        nodes = next((nodes for nodes in range(_MOST_NODES, 2, -1) if nodes ** min(input_dim, 64) <= most), None)
        return () if nodes is None else (cls(kind="dense_grid", points_per_dim=nodes),)

    def weighs_alike(self) -> bool:
        """Return False: the weights are those of the quadrature rule."""
        return False

    def count(self, s: int | None, input_dim: int) -> int:
        """Return the number of points: L^d, or L^64 if d is larger, which exceeds every limit too."""
        return int(self.points_per_dim ** min(input_dim, 64))

    def check(self, kernel: SpectralKernel, s: int, input_dim: int) -> None:
        """Refuse laws that are not normal, and more points than fit in memory."""
        normal_deviations(kernel, input_dim, self.kind)
        if self.count(None, input_dim) > _MOST_POINTS:
            raise InvalidInput(
                f"expected up to {_MOST_POINTS} points, got {self.points_per_dim}^{input_dim}; sparse_grid needs fewer",
                "/sampler/points_per_dim",
            )

    def frequency_set(self, kernel: SpectralKernel, s: int, input_dim: int, rng: Rng) -> FrequencySet:
        """Return the grid, last coordinate fastest, with products of the node weights; nothing is random."""
        nodes, weights = gauss_hermite(self.points_per_dim)
        places = self.points_per_dim ** np.arange(input_dim)[::-1]
        chosen = np.arange(self.count(None, input_dim))[:, None] // places % self.points_per_dim
        frequencies = nodes[chosen] * normal_deviations(kernel, input_dim, self.kind)
        # A single point has no reach: its kernel is a constant, about which the map warns.
        warnings = reach_warnings(_reach(self.points_per_dim, input_dim)) if self.points_per_dim > 1 else ()
        return FrequencySet(frequencies, weights[chosen].prod(axis=1), warnings)


@cache
def _reach(points_per_dim: int, input_dim: int) -> float | None:
    """Compute the reach of the grid from a product over the coordinates, instead of a sum over a million points."""
    nodes, weights = gauss_hermite(points_per_dim)
    phases = directions(input_dim)[:, :, None] * nodes
    return reach(lambda radius: (np.cos(radius * phases) @ weights).prod(axis=1), points_per_dim**input_dim)
