"""The Matérn kernel."""

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field
from scipy.special import betainccinv, betaincinv, gammaincinv, gammaln, kve

from app.core.arrays import Matrix
from app.core.errors import InvalidInput
from app.core.kernels.base import ScaledKernel
from app.core.quantiles import NORMAL, quantiles

# Above it, the uniform expansion of the Bessel function for large orders is as good as the function, which overflows.
_LARGE_NU = 100.0


class Matern(ScaledKernel):
    """Matérn kernel of smoothness ν in r = ‖δ/σ‖; its sample functions are ⌈ν⌉ − 1 times differentiable.

    Frequencies follow one multivariate t law with 2ν degrees of freedom: a normal vector over the root of *one*
    chi-square per frequency. Independent t coordinates would be another kernel.
    """

    source = "Rasmussen and Williams (2006), Gaussian processes for machine learning, section 4.2.1"
    choose_when = (
        "Between rough (nu = 1/2 is exp(−r)) and smooth (gaussian), in Gaussian processes most often with nu 3/2 "
        "or 5/2. Any point sampler serves; moment_matching from nu > 2 on, the grids and orthogonal never."
    )

    operations_per_value = 4096

    kind: Literal["matern"]
    nu: Annotated[float, Field(gt=0, le=1e6, description="ν; ½ is exp(−r), ∞ the Gaussian kernel.")]

    def uniforms_per_frequency(self, input_dim: int) -> int:
        """One more than coordinates, for the chi-square."""
        return input_dim + 1

    def frequencies(self, uniforms: Matrix) -> Matrix:
        """Φ⁻¹(t_j)/σ_j · √(2ν/q), q the chi-square quantile of the last uniform."""
        frequencies = quantiles(NORMAL, uniforms[:, :-1])
        # q/(2ν) by the incomplete gamma function of shape ν.
        mixing = gammaincinv(self.nu, uniforms[:, -1]) / self.nu
        with np.errstate(over="ignore", divide="ignore"):  # infinite frequencies are refused by name
            frequencies /= np.sqrt(mixing)[:, None]
        return self.scaled_frequencies(frequencies)

    def profile(self) -> "Matern":
        """Of ‖δ/σ‖."""
        return Matern(kind="matern", nu=self.nu, length_scale=1.0)

    def radial_quantile(self, uniforms: Matrix, dim: int) -> Matrix:
        """Quantiles of √(dim·F) with dim and 2ν degrees of freedom: one law for normal vector and chi-square together.

        F is 2ν/dim times B/(1 − B) with B of the law Beta(dim/2, ν); near 1, 1 − B has its own inverse.
        """
        with np.errstate(divide="ignore"):  # infinite lengths are refused by name
            odds = betaincinv(dim / 2, self.nu, uniforms) / betainccinv(self.nu, dim / 2, uniforms)
        return np.asarray(np.sqrt(2 * self.nu * odds), np.float64)

    def out_of_range(self, dtype: str) -> InvalidInput:
        """The refusal of frequencies that leave a dtype; it names nu or length_scale, whichever does more."""
        # The chi-square quantile of the smallest uniform, 2^-53, multiplies a frequency by some 2^(53/(2ν)).
        if 53 / (2 * self.nu) > -np.log2(np.min(self.length_scale)):
            return InvalidInput(f"nu is so small that frequencies leave the range of {dtype}", "/kernel/nu")
        return super().out_of_range(dtype)

    def is_heavy_tailed(self) -> bool:
        """Whether ν is at most 5/2: the fourth moment is (ν − 1)/(ν − 2) times a normal one's, and infinite up to 2."""
        return self.nu <= 2.5

    def frequency_deviations(self, input_dim: int) -> Matrix | None:
        """√(ν/(ν − 1))/σ_j; none for ν ≤ 1."""
        if self.nu <= 1:
            return None
        return self.scaled_deviations(float(np.sqrt(self.nu / (self.nu - 1))), input_dim)

    def gram(self, x: Matrix, y: Matrix) -> Matrix:
        """2^(1−ν)/Γ(ν) z^ν K_ν(z), z = √(2ν) r."""
        gram = self.distances(x, y, "euclidean")
        gram *= np.sqrt(2 * self.nu)
        for row in gram:  # a row at a time: the Bessel function needs several temporaries
            row[:] = _correlation(row, self.nu)
        return gram


def _correlation(z: Matrix, nu: float) -> Matrix:
    if nu >= _LARGE_NU:
        return np.exp(_log_of_large_order(z / nu, nu)).clip(max=1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # 0 and far values are settled at the end
        log_bessel: Matrix = np.log(kve(nu, z)) - z
        correlation: Matrix = np.exp((1 - nu) * np.log(2) - gammaln(nu) + nu * np.log(z) + log_bessel)
    # Where K_ν overflows, z is so small that one term of its series is exact; at z = 0 it is the limit.
    near = ~np.isfinite(log_bessel) & (z < 1) | (z == 0)
    correlation[near] = 1 - z[near] ** 2 / (4 * (nu - 1)) if nu > 1 else 1
    correlation[~np.isfinite(correlation)] = 0
    return correlation.clip(max=1)


def _log_of_large_order(x: Matrix, nu: float) -> Matrix:
    """The logarithm of the kernel at z = νx for large ν: absolute error below ν^−4, and 0 at 0.

    The uniform expansion of K_ν (DLMF 10.41.4, four terms) over its limit at 0, in which the terms of the size ν log ν
    have cancelled: ν(log(1 + t/2) − t) − log(1 + t)/2 + …, where 1 + t = √(1 + x²).
    """
    square = np.minimum(x, 1e100) ** 2  # beyond, the kernel is 0
    t = square / (1 + np.sqrt(1 + square))
    p = 1 / (1 + t)
    log_kernel: Matrix = nu * (np.log1p(t / 2) - t) - np.log1p(t) / 2
    log_kernel += np.log1p(_large_order_terms(p, nu)) - np.log1p(_large_order_terms(np.float64(1), nu))
    return log_kernel


def _large_order_terms(p: Any, nu: float) -> Any:
    """The terms of the expansion after the first, 1."""
    return (
        -(3 * p - 5 * p**3) / (24 * nu)
        + (81 * p**2 - 462 * p**4 + 385 * p**6) / (1152 * nu**2)
        - (30375 * p**3 - 369603 * p**5 + 765765 * p**7 - 425425 * p**9) / (414720 * nu**3)
    )
