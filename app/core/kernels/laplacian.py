"""The Laplacian kernel in its L1 form."""

from typing import Literal

import numpy as np

from app.core.arrays import Matrix
from app.core.kernels.base import ProductKernel
from app.core.model import QMC, RFF
from app.core.quantiles import CAUCHY, quantiles


class Laplacian(ProductKernel):
    """exp(−Σ |δ_j|/σ_j); the coordinates of a frequency are independent Cauchy(0, 1/σ_j).

    Choose when:
        Use it for rough functions, with sobol or halton as sampler. Its frequencies have no finite variance, so
        moment_matching, orthogonal and the grids do not support it.
    """

    source = f"{RFF}, section 3; {QMC}, section 4"
    standard_deviation = None
    metric = "cityblock"

    kind: Literal["laplacian"]

    def profile(self) -> "Laplacian":
        """Return the kernel as a function of ‖δ/σ‖₁."""
        return Laplacian(kind="laplacian", length_scale=1.0)

    def standard_characteristic(self, lags: Matrix) -> Matrix:
        """Return exp(−|β|)."""
        return np.asarray(np.exp(-np.abs(lags)), np.float64)

    def standard_quantile(self, uniforms: Matrix) -> Matrix:
        """Return tan(π(t − ½))."""
        return quantiles(CAUCHY, uniforms)

    def gram(self, x: Matrix, y: Matrix) -> Matrix:
        """Compute exp(−‖δ/σ‖₁)."""
        gram = self.distances(x, y, "cityblock")
        np.negative(gram, out=gram)
        return np.exp(gram, out=gram)
