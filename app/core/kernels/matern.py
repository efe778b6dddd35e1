"""The Matérn kernel."""

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field
from scipy.special import betainccinv, betaincinv, gammaincinv, gammaln, kve

from app.core.arrays import Matrix, row_blocks
from app.core.errors import InvalidInput
from app.core.kernels.base import ScaledKernel
from app.core.quantiles import NORMAL, quantiles

# From this ν on, the Bessel function, which overflows, is replaced by its uniform expansion, which is as accurate.
_LARGE_NU = 100.0
# Values that are computed at a time, because the Bessel function needs several temporaries.
_VALUES_AT_ONCE = 1 << 14


class Matern(ScaledKernel):
    """Matérn kernel of smoothness ν in r = ‖δ/σ‖; its sample functions are ⌈ν⌉ − 1 times differentiable.

    Frequencies follow one multivariate t law with 2ν degrees of freedom: a normal vector divided by the root of *one*
    chi-square variable per frequency. Independent t coordinates would give another kernel.

    Choose when:
        Use it for functions between rough (nu = 1/2 is exp(−r)) and smooth (gaussian); Gaussian processes most often
        use nu 3/2 or 5/2. Every point sampler supports it, moment_matching for nu > 1, with a bias up to nu 5/2; the
        grids and orthogonal do not.
    """

    source = "Rasmussen and Williams (2006), Gaussian processes for machine learning, section 4.2.1"

    operations_per_value = 4096

    kind: Literal["matern"]
    nu: Annotated[float, Field(gt=0, le=1e6)]
    """Smoothness ν: ½ is the kernel exp(−r), and ν → ∞ the Gaussian kernel."""

    def uniforms_per_frequency(self, input_dim: int) -> int:
        """Return one more than the number of coordinates, for the chi-square variable."""
        return input_dim + 1

    def frequencies(self, uniforms: Matrix) -> Matrix:
        """Return Φ⁻¹(t_j)/σ_j · √(2ν/q), q the chi-square quantile of the last uniform."""
        frequencies = quantiles(NORMAL, uniforms[:, :-1])
        # q/(2ν), from the incomplete gamma function of shape ν.
        mixing = gammaincinv(self.nu, uniforms[:, -1]) / self.nu
        with np.errstate(over="ignore", divide="ignore"):  # infinite frequencies are refused below
            frequencies /= np.sqrt(mixing)[:, None]
        return self.scaled_frequencies(frequencies)

    def profile(self) -> "Matern":
        """Return the kernel as a function of ‖δ/σ‖."""
        return Matern(kind="matern", nu=self.nu, length_scale=1.0)

    def radial_quantile(self, uniforms: Matrix, dim: int) -> Matrix:
        """Return quantiles of √(dim·F), F with dim and 2ν degrees of freedom: normal vector and chi-square in one.

        F is 2ν/dim times B/(1 − B) with B from Beta(dim/2, ν); 1 − B has its own inverse, exact for B near 1.
        """
        with np.errstate(divide="ignore"):  # infinite lengths are refused when they are divided by σ_j
            odds = betaincinv(dim / 2, self.nu, uniforms) / betainccinv(self.nu, dim / 2, uniforms)
        return np.asarray(np.sqrt(2 * self.nu * odds), np.float64)

    def out_of_range(self, dtype: str) -> InvalidInput:
        """Return the error for frequencies outside a dtype's range; it names nu or length_scale, the main cause."""
        # The chi-square quantile of the smallest uniform, 2^-53, multiplies a frequency by about 2^(53/(2ν)).
        if 53 / (2 * self.nu) > -np.log2(np.min(self.length_scale)):
            return InvalidInput(f"nu is so small that frequencies leave the range of {dtype}", "/kernel/nu")
        return super().out_of_range(dtype)

    def is_heavy_tailed(self) -> bool:
        """Return whether ν ≤ 5/2: the fourth moment is (ν − 1)/(ν − 2) times a normal law's, infinite for ν ≤ 2."""
        return self.nu <= 2.5

    def frequency_deviations(self, input_dim: int) -> Matrix | None:
        """Return √(ν/(ν − 1))/σ_j; None for ν ≤ 1."""
        if self.nu <= 1:
            return None
        return self.scaled_deviations(float(np.sqrt(self.nu / (self.nu - 1))), input_dim)

    def gram(self, x: Matrix, y: Matrix) -> Matrix:
        """Compute 2^(1−ν)/Γ(ν) z^ν K_ν(z), z = √(2ν) r."""
        gram = self.distances(x, y, "euclidean")
        gram *= np.sqrt(2 * self.nu)
        values = gram.reshape(-1)
        for some in row_blocks(len(values), _VALUES_AT_ONCE):
            values[some] = _correlation(values[some], self.nu)
        return gram


def _correlation(z: Matrix, nu: float) -> Matrix:
    if nu >= _LARGE_NU:
        return np.exp(_log_of_large_order(z / nu, nu)).clip(max=1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # values at 0 and far away are set at the end
        log_bessel: Matrix = np.log(kve(nu, z)) - z
        correlation: Matrix = np.exp((1 - nu) * np.log(2) - gammaln(nu) + nu * np.log(z) + log_bessel)
    # Where K_ν overflows, z is so small that one term of the kernel's series is exact; at z = 0 it is the limit.
    near = ~np.isfinite(log_bessel) & (z < 1) | (z == 0)
    correlation[near] = 1 - z[near] ** 2 / (4 * (nu - 1)) if nu > 1 else 1
    correlation[~np.isfinite(correlation)] = 0
    return correlation.clip(max=1)


def _log_of_large_order(x: Matrix, nu: float) -> Matrix:
    """Return the logarithm of the kernel at z = νx for large ν, with an absolute error below ν^−4, and 0 at 0.

    It is the uniform expansion of K_ν (DLMF 10.41.4, four terms) divided by its limit at 0. Terms of the size ν log ν
    cancel: ν(log(1 + t/2) − t) − log(1 + t)/2 + …, where 1 + t = √(1 + x²).
    """
    square = np.minimum(x, 1e100) ** 2  # beyond, the kernel is 0
    t = square / (1 + np.sqrt(1 + square))
    p = 1 / (1 + t)
    log_kernel: Matrix = nu * (np.log1p(t / 2) - t) - np.log1p(t) / 2
    log_kernel += np.log1p(_large_order_terms(p, nu)) - np.log1p(_large_order_terms(np.float64(1), nu))
    return log_kernel


def _large_order_terms(p: Any, nu: float) -> Any:
    """Return the sum of the expansion's terms after the first, which is 1."""
    return (
        -(3 * p - 5 * p**3) / (24 * nu)
        + (81 * p**2 - 462 * p**4 + 385 * p**6) / (1152 * nu**2)
        - (30375 * p**3 - 369603 * p**5 + 765765 * p**7 - 425425 * p**9) / (414720 * nu**3)
    )
