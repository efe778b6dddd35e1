"""The rational quadratic kernel."""

from typing import Annotated, Literal

import numpy as np
import scipy
from pydantic import Field
from scipy.special import expit, gammainc, gammaincc, gammainccinv, gammaincinv, gammaln, logit

from app.core.arrays import Matrix, row_blocks
from app.core.kernels.base import ScaledKernel
from app.core.quantiles import NORMAL, quantiles

# Factor of rows whose squared distance leaves the range of float64; as a power of two it rounds nothing.
_SMALLER = 2.0**-540
# Numbers of such rows, or values of their kernel, that are computed again at a time.
_FAR_NUMBERS = 1 << 16
# For quantiles of a frequency's length: quadrature nodes (at least, and per unit of the range) and spline nodes. With
# these numbers, errors are below 1e-9.
_QUADRATURE_NODES, _QUADRATURE_NODES_PER_UNIT, _SPLINE_NODES = 160, 8, 1024
# Logit of the largest uniform, rounded up; uniforms are multiples of 2^-53.
_FARTHEST_LOGIT = 37.0
# Smaller values count as 0. For a smaller shape of a gamma law, all quantiles that uniforms reach are smaller.
_LEAST, _LEAST_SHAPE = 1e-290, 1e-19


class RationalQuadratic(ScaledKernel):
    """(1 + r²/(2α))^(−α) in r = ‖δ/σ‖: a mixture of Gaussian kernels of all length scales; Gaussian for α → ∞.

    Frequencies are normal with a random variance from a gamma law of shape α and mean 1, *one* for all coordinates of
    a frequency. Independent variances would give another kernel.

    Choose when:
        Use it for smooth functions that vary over several length scales at once: at r = 5 the kernel is .07 for alpha 1
        and .37 for alpha 1/4, while gaussian is 4e-6. Every point sampler and structured_orthogonal support it; the
        grids and orthogonal do not. All moments of its frequencies are finite, so moment_matching accepts every alpha,
        but reduces the error only for large alpha.
    """

    source = "Rasmussen and Williams (2006), Gaussian processes for machine learning, section 4.2.1, (4.19)"

    kind: Literal["rational_quadratic"]
    alpha: Annotated[float, Field(gt=0, le=1e6)]
    """α: the kernel decays like r^(−2α) for large r; α → ∞ is the Gaussian kernel."""

    def uniforms_per_frequency(self, input_dim: int) -> int:
        """Return one more than the number of coordinates, for the variance."""
        return input_dim + 1

    def frequencies(self, uniforms: Matrix) -> Matrix:
        """Return Φ⁻¹(t_j)/σ_j · √τ, τ the gamma quantile of the last uniform; for tiny α most are 0, as in the law."""
        frequencies = quantiles(NORMAL, uniforms[:, :-1])
        frequencies *= np.sqrt(gammaincinv(self.alpha, uniforms[:, -1]) / self.alpha)[:, None]
        return self.scaled_frequencies(frequencies)

    def frequency_deviations(self, input_dim: int) -> Matrix:
        """Return 1/σ_j for every α, because the mean of τ is 1; the fourth moment is 3(1 + 1/α)/σ_j⁴."""
        return self.scaled_deviations(1.0, input_dim)

    def is_heavy_tailed(self) -> bool:
        """Return whether α is at most ½: the fourth moment is 1 + 1/α times a normal law's."""
        return self.alpha <= 0.5

    def radial_quantile(self, uniforms: Matrix, dim: int) -> Matrix:
        """Return quantiles of √(τχ²), χ² with dim degrees of freedom, from a spline of a law of products of gammas."""
        if not uniforms.size:
            return np.empty(uniforms.shape)
        with np.errstate(under="ignore"):  # for tiny α most are 0
            squares = np.exp(_log_product_quantile(uniforms, *sorted((self.alpha, dim / 2))) - np.log(self.alpha / 2))
        return np.asarray(np.sqrt(squares), np.float64)

    def gram(self, x: Matrix, y: Matrix) -> Matrix:
        """Compute exp(−α log(1 + r²/(2α))) from differences; it is above 0 even where r² overflows."""
        gram = self.distances(x, y, "sqeuclidean")
        with np.errstate(over="ignore"):  # infinite values are computed again below
            gram /= 2 * self.alpha
        np.log1p(gram, out=gram)
        far, (m, d) = np.flatnonzero(np.isinf(gram.max(axis=1, initial=0))), y.shape
        for some in row_blocks(len(far), _FAR_NUMBERS // max(m, d)):
            rows, smaller = far[some], _SMALLER * x[far[some]]
            for columns in row_blocks(m, _FAR_NUMBERS // d):
                squares = self.distances(smaller, _SMALLER * y[columns], "sqeuclidean")
                with np.errstate(divide="ignore"):  # far squares of 0 imply α < 1e-300: the kernel is 1 everywhere
                    logs = np.log(squares) - 2 * np.log(_SMALLER) - np.log(2) - np.log(self.alpha)
                near = gram[rows, columns]
                gram[rows, columns] = np.where(np.isinf(near), np.maximum(logs, 0), near)
        gram *= -self.alpha
        return np.exp(gram, out=gram)


def _log_product_quantile(uniforms: Matrix, small: float, large: float) -> Matrix:
    """Return quantiles of the logarithm of a product of two gamma variables of shapes `small` and `large`.

    The distribution function is that of the smaller shape, averaged over the law of the larger, whose logarithm varies
    so little that the trapezoidal rule has no error but rounding. A spline of degree 7 inverts it in the logit, where
    the quantiles are smooth.
    """
    if small < _LEAST_SHAPE:
        return np.full(uniforms.shape, -np.inf)
    first, last = np.log(gammaincinv(large, 1e-32)), np.log(gammainccinv(large, 1e-32))
    at = np.linspace(first, last, max(_QUADRATURE_NODES, int(_QUADRATURE_NODES_PER_UNIT * (last - first))))
    weights = np.exp(large * at - np.exp(at) - gammaln(large))
    weights /= weights.sum()
    # Sums of both factors' quantiles at one level spread wider than the product's quantiles, which lie between them.
    levels = np.linspace(max(-_FARTHEST_LOGIT, float(logit(gammainc(small, _LEAST)))), _FARTHEST_LOGIT, _SPLINE_NODES)
    logs = _log_quantiles(small, levels) + _log_quantiles(large, levels)
    factors = np.exp(logs[:, None] - at)
    logits = np.log(gammainc(small, factors) @ weights) - np.log(gammaincc(small, factors) @ weights)
    wanted = logit(uniforms)
    found: Matrix = scipy.interpolate.make_interp_spline(logits, logs, k=7)(wanted)
    found[wanted < logits[0]] = -np.inf
    return found


def _log_quantiles(shape: float, logits: Matrix) -> Matrix:
    """Return logarithms of gamma quantiles; above ½ from the distance of the level to 1, which is more exact."""
    low, high = gammaincinv(shape, expit(logits)), gammainccinv(shape, expit(-logits))
    return np.log(np.where(logits < 0, low, high))
