"""The distances by which rows are clustered: how far a centre is from being as good as a row itself."""

from abc import ABC, abstractmethod
from typing import Literal

import numpy as np
import scipy

from app.core.arrays import Matrix, Rows, dense
from app.core.kernels.base import AnyKernel
from app.core.kernels.scaled import ScaledKernel
from app.core.maps.landmarks.selection.basis import ROUNDING
from app.core.maps.landmarks.selection.values import operations_per_row, own_values, values

# What is computed in one part, a tenth of a second or less: differences of entries, kernel values, multiplications.
_DIFFERENCES_PER_PART, _VALUES_PER_PART, _OPERATIONS_PER_PART = 1 << 24, 1 << 17, 1 << 26
# Farther is as far: sums of distances stay in the range of float64.
_FARTHEST = 1e290


class Distances(ABC):
    """Distances of some rows to centres; the sum over all rows is what clusters make small."""

    @abstractmethod
    def to(self, part: slice, centres: Rows) -> Matrix:
        """Distances of some of the n rows to these centres, (k, d), as (rows of the part, k)."""

    @abstractmethod
    def per_part(self, k: int) -> int:
        """How many rows are compared with k centres between two pauses."""


class ScaledDistances(Distances):
    """Σ (δ_j/σ_j)², or Σ |δ_j|/σ_j for kernels of that metric; 1e290 where it is more."""

    def __init__(self, kernel: ScaledKernel, rows: Rows) -> None:
        self._kernel, self._rows = kernel, kernel.scaled_rows(dense(rows))

    def to(self, part: slice, centres: Rows) -> Matrix:
        """By differences, so that equal rows have distance 0."""
        scaled = self._kernel.scaled_rows(dense(centres))
        metric: Literal["cityblock", "sqeuclidean"] = (
            "cityblock" if self._kernel.metric == "cityblock" else "sqeuclidean"
        )
        found: Matrix = scipy.spatial.distance.cdist(self._rows[part], scaled, metric)
        return np.minimum(found, _FARTHEST, out=found)

    def per_part(self, k: int) -> int:
        """As many as have so many differences."""
        return max(1, _DIFFERENCES_PER_PART // (k * int(self._rows.shape[1])))


class KernelDistances(Distances):
    """k(x, x) + k(c, c) − 2 k(x, c), the squared distance in the kernel's own space; 0 where it is rounding."""

    def __init__(self, kernel: AnyKernel, rows: Rows) -> None:
        self._kernel, self._rows = kernel, rows

    def to(self, part: slice, centres: Rows) -> Matrix:
        """By kernel values."""
        rows = self._rows[part]
        sizes = own_values(self._kernel, rows)[:, None] + own_values(self._kernel, centres)
        found = sizes - 2 * values(self._kernel, rows, centres)
        found[found <= ROUNDING * sizes] = 0
        return found

    def per_part(self, k: int) -> int:
        """As many as have so many kernel values."""
        operations = operations_per_row(self._kernel, self._rows, self._rows[:1])
        return max(1, min(_VALUES_PER_PART // k, _OPERATIONS_PER_PART // max(1, operations * k)))


def distances_of(kernel: AnyKernel, rows: Rows) -> Distances:
    """Those of scaled rows, where the kernel is one of them and the rows are dense; else those by kernel values."""
    if isinstance(kernel, ScaledKernel) and isinstance(rows, np.ndarray):
        return ScaledDistances(kernel, rows)
    return KernelDistances(kernel, rows)
