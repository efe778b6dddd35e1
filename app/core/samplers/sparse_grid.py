"""Smolyak's sparse grid."""

import itertools
from math import comb, prod
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field

from app.core.arrays import Matrix
from app.core.errors import InvalidInput
from app.core.kernels.base import AnyKernel, SpectralKernel
from app.core.model import GQ
from app.core.samplers.base import FrequencySampler, FrequencySet, Rng
from app.core.samplers.normal_law import NORMAL_LAW, gauss_hermite, normal_deviations, reach_of, reach_warnings

_MOST_POINTS, _MOST_LEVEL = 1 << 17, 12
# Projections of a node on sixteen directions.
_BYTES_PER_NODE = 400


class SparseGrid(FrequencySampler):
    """Smolyak's combination of Gauss–Hermite rules of 2l + 1 points, l ≤ level.

    Exact for polynomials to total degree 2·level + 1; `warnings` says up to which distance this is useful. Weights have
    both signs, so features carry a `signature`.

    Choose when:
        Use it only for rows within about one σ of each other. Its largest error in 25 dimensions, level 2 (1351
        points), for |δ|/σ up to 0.1, 1, 2, 4 is 1.7e-8, .015, .65, 13.5; that of monte_carlo is 9.5e-4, .061, .092,
        .10.
    """

    source = f"{GQ}, section 3.4"
    limits = (f"at most {_MOST_POINTS} points", NORMAL_LAW)

    kind: Literal["sparse_grid"]
    level: Annotated[int, Field(ge=0, le=_MOST_LEVEL)]
    """Maximum sum of the levels of all coordinates."""

    @classmethod
    def suggest(cls, kernel: AnyKernel, input_dim: int, most: int, dataset: str | None) -> tuple[Self, ...]:
        """Return the grids of every level, from 1 on, that have at most `most` points."""
        levels = (cls(kind="sparse_grid", level=level) for level in range(1, _MOST_LEVEL + 1))
        return tuple(itertools.takewhile(lambda grid: grid.count(None, input_dim) <= most, levels))

    def weighs_alike(self) -> bool:
        """Return False: the weights are those of the quadrature rule."""
        return False

    def count(self, s: int | None, input_dim: int) -> int:
        """Return the number of distinct nodes: Π 2l_i for each choice of levels l_i on k coordinates off the origin."""
        return sum(
            comb(input_dim, k) * sum(prod(2 * level for level in levels) for levels in self._levels(k, input_dim))
            for k in range(min(self.level, input_dim) + 1)
        )

    def check(self, kernel: SpectralKernel, s: int, input_dim: int) -> None:
        """Refuse laws that are not normal, and more points than fit in memory."""
        normal_deviations(kernel, input_dim, self.kind)
        count = self.count(None, input_dim)
        if count > _MOST_POINTS:
            lower = (self.model_copy(update={"level": level}) for level in reversed(range(self.level)))
            works = next(grid.level for grid in lower if grid.count(None, input_dim) <= _MOST_POINTS)
            take = f"take level {works}" if works else "sampler monte_carlo works"
            raise InvalidInput(f"expected up to {_MOST_POINTS} points, got {count}: {take}", "/sampler/level")

    def drawing_bytes(self, s: int, input_dim: int) -> int:
        """Return the memory of the nodes, and of their projections on the directions along which reach is measured."""
        return super().drawing_bytes(s, input_dim) + _BYTES_PER_NODE * s

    def frequency_set(self, kernel: SpectralKernel, s: int, input_dim: int, rng: Rng) -> FrequencySet:
        """Return the merged nodes; nothing is random."""
        frequencies, weights = self._merge(input_dim)
        negative = int((weights < 0).sum())
        warnings = reach_warnings(reach_of(frequencies, weights)) if self.level else ()
        if negative:
            size = np.abs(weights).sum()
            warnings = (f"{negative} of {len(weights)} weights are negative and |weights| sum to {size:.4g}", *warnings)
        return FrequencySet(frequencies * normal_deviations(kernel, input_dim, self.kind), weights, warnings)

    def _levels(self, k: int, d: int) -> list[tuple[int, ...]]:
        """Return all choices of levels for k of the d coordinates, each at least 1, together at most `level`."""
        # The partial sums of the levels are any k of the numbers 1 … `level`.
        sums = itertools.combinations(range(1, self.level + 1), k)
        levels = [tuple(b - a for a, b in itertools.pairwise((0, *ends))) for ends in sums]
        # Where no coordinate is 0 and d or more levels are left over, the finer rules cancel the node.
        return levels if k < d else [chosen for chosen in levels if self.level - sum(chosen) < d]

    def _merge(self, d: int) -> tuple[Matrix, Matrix]:
        """Merge the rules into distinct nodes (n, d) with weights (n,).

        The rules share only the node 0, so a node is identified by its coordinates off 0 and their levels. Written
        with differences Δ_l of successive rules, Smolyak's rule is the sum of all ⊗ Δ_{l_i} with Σ l_i ≤ level. A node
        off 0 is in Δ_l with its weight and in Δ_{l+1} with minus its weight. The d − k coordinates at 0 contribute a
        coefficient of the power series (Σ_l Δ_l(0) z^l)^(d−k).
        """
        frequencies, weights = [], []
        for k in range(min(self.level, d) + 1):
            at_zero = np.cumsum(self._zero_series(d - k))
            for levels in self._levels(k, d):
                free = self.level - sum(levels)
                shared = sum((-1) ** b * comb(k, b) * at_zero[free - b] for b in range(min(k, free) + 1))
                rules = [_off_zero(level) for level in levels]
                values = np.array(list(itertools.product(*(nodes for nodes, _ in rules))))
                products = np.array([prod(chosen) for chosen in itertools.product(*(weight for _, weight in rules))])
                for chosen in itertools.combinations(range(d), k):
                    nodes = np.zeros((len(products), d))
                    nodes[:, list(chosen)] = values
                    frequencies.append(nodes)
                    weights.append(products * shared)
        return np.concatenate(frequencies), np.concatenate(weights)

    def _zero_series(self, n: int) -> Matrix:
        """Compute coefficients 0 … level of (Σ_l Δ_l(0) z^l)^n, where Δ_l(0) = w_l(0) − w_{l−1}(0)."""
        at_zero = np.array([gauss_hermite(2 * level + 1)[1][level] for level in range(self.level + 1)])
        differences = np.diff(at_zero, prepend=0.0)
        times = np.array([np.pad(differences, (k, 0))[: self.level + 1] for k in range(self.level + 1)]).T
        series: Matrix = np.eye(1, self.level + 1)[0]
        if not self.level:  # it is 1, also of millions of dimensions
            return series
        for _ in range(n):  # no product of a library, whose rounding depends on the processor
            series = (times * series).sum(axis=1)
        return series


def _off_zero(level: int) -> tuple[Matrix, Matrix]:
    """Return nodes and weights of the rule of 2·level + 1 points, without the node 0."""
    nodes, weights = gauss_hermite(2 * level + 1)
    return np.delete(nodes, level), np.delete(weights, level)
