"""The product Cauchy kernel."""

from typing import Literal

import numpy as np

from app.core.arrays import Matrix
from app.core.compiled import jit
from app.core.kernels.base import ProductKernel, divided_by_powers
from app.core.model import RFF
from app.core.quantiles import LAPLACE, quantiles


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

    def gram(self, x: Matrix, y: Matrix) -> Matrix:
        """Compute the product over the coordinates."""
        rest, x, y = divided_by_powers(x, y, self.scales(x.shape[1]))
        gram = np.ones((len(x), len(y)))
        _multiply_factors(np.ascontiguousarray(x), np.ascontiguousarray(y.T), rest, gram)
        return np.reciprocal(gram, out=gram)


@jit
def _multiply_factors(x: Matrix, columns: Matrix, scales: Matrix, out: Matrix) -> None:
    """Multiply entry (i, k) of `out`, (n, m), by 1 + ((x_ij − y_kj)/scale_j)² for each coordinate j of y, (d, m)."""
    for i in range(out.shape[0]):
        row = out[i]
        for j in range(len(columns)):
            # Slices of one row show the compiler that their entries are contiguous.
            of_x, scale, of_y = x[i, j], scales[j], columns[j]
            for k in range(len(row)):
                lag = (of_x - of_y[k]) / scale
                row[k] *= lag * lag + 1
