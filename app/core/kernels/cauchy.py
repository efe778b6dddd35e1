"""The product Cauchy kernel."""

from collections.abc import Iterator
from typing import Literal

import numpy as np

from app.core.arrays import Matrix, Rows, row_blocks
from app.core.kernels.base import ProductKernel
from app.core.model import RFF
from app.core.quantiles import LAPLACE, quantiles

_ENTRIES_PER_BLOCK = 1 << 16
# Cost of a step over one coordinate, however few pairs it is for, in multiplications of a matrix product.
_PER_STEP = 60_000


class Cauchy(ProductKernel):
    """Π 1/(1 + δ_j²/σ_j²); the coordinates of a frequency are independent Laplace(0, 1/σ_j).

    Choose when:
        Use it for smooth functions with long-range correlations: it decays as a power of the distance, where gaussian
        decays exponentially. moment_matching supports it; the grids and orthogonal do not.
    """

    source = f"{RFF}, section 3"
    standard_deviation = 2**0.5
    operations_per_coordinate = 30

    kind: Literal["cauchy"]

    def standard_characteristic(self, lags: Matrix) -> Matrix:
        """Return 1/(1 + β²)."""
        return np.asarray(1 / (1 + lags**2), np.float64)

    def standard_quantile(self, uniforms: Matrix) -> Matrix:
        """Return Laplace quantiles: ±log of twice the distance of a uniform to the nearer end of [0, 1]."""
        return quantiles(LAPLACE, uniforms)

    def exact_operations(self, x: Rows, y: Rows) -> int:
        """Return the cost of the coordinates and of the kernel value of each pair of rows, and of the steps."""
        steps = x.shape[1] * sum(1 for _ in _blocks(x.shape[0], y.shape[0]))
        return super().exact_operations(x, y) + int(_PER_STEP * steps)

    def gram(self, x: Matrix, y: Matrix) -> Matrix:
        """Compute the product over the coordinates, in blocks of rows."""
        gram = np.ones((len(x), len(y)))
        with np.errstate(over="ignore"):  # an infinite denominator makes the kernel 0
            for block in _blocks(len(x), len(y)):
                for factor in self.lags(x[block], y):
                    factor *= factor
                    factor += 1
                    gram[block] *= factor
        return np.reciprocal(gram, out=gram)


def _blocks(n: int, m: int) -> Iterator[slice]:
    """Return an iterator over blocks of n rows that are compared with m others at a time."""
    return row_blocks(n, _ENTRIES_PER_BLOCK // max(1, m))
