"""The rational quadratic kernel."""

from typing import Annotated, Literal

import numpy as np
import scipy
from pydantic import Field
from scipy.special import expit, gammainc, gammaincc, gammainccinv, gammaincinv, gammaln, logit

from app.core.arrays import Matrix
from app.core.kernels.base import ScaledKernel
from app.core.quantiles import NORMAL, quantiles

# Rows whose distance squared leaves the range of float64 are compared times this power of two, which rounds nothing.
_SMALLER = 2.0**-540
# Nodes of the quadrature, at least and in a unit, and of the spline that give lengths of frequencies: with them, errors
# are below 1e-9.
_QUADRATURE_NODES, _QUADRATURE_NODES_PER_UNIT, _SPLINE_NODES = 160, 8, 1024
# Uniforms are multiples of 2^-53, of which this is the logit of the largest, rounded up.
_FARTHEST_LOGIT = 37.0
# What is smaller counts as 0, and the shape of a gamma law of which all that uniforms reach is smaller.
_LEAST, _LEAST_SHAPE = 1e-290, 1e-19


class RationalQuadratic(ScaledKernel):
    """(1 + r²/(2α))^(−α) in r = ‖δ/σ‖: Gaussian kernels of all length scales, mixed; for α → ∞ the Gaussian kernel.

    Frequencies are normal with a variance that follows a gamma law of shape α and mean 1, *one* for all coordinates of
    a frequency. Independent variances would be another kernel.
    """

    source = "Rasmussen and Williams (2006), Gaussian processes for machine learning, section 4.2.1, (4.19)"
    choose_when = (
        "Smooth functions that vary over several length scales at once: at r = 5 it is .07 for alpha 1 and .37 for "
        "alpha 1/4, where gaussian is 4e-6. Its frequencies have all moments, so that moment_matching takes it for "
        "every alpha, but gains only for large ones; all point samplers and structured_orthogonal serve it, the grids "
        "and orthogonal never."
    )

    kind: Literal["rational_quadratic"]
    alpha: Annotated[
        float, Field(gt=0, le=1e6, description="α; the kernel falls like r^(−2α), and ∞ is the Gaussian kernel.")
    ]

    def uniforms_per_frequency(self, input_dim: int) -> int:
        """One more than coordinates, for the variance."""
        return input_dim + 1

    def frequencies(self, uniforms: Matrix) -> Matrix:
        """Φ⁻¹(t_j)/σ_j · √τ, τ the gamma quantile of the last uniform; for tiny α most are 0, as in the law."""
        frequencies = quantiles(NORMAL, uniforms[:, :-1])
        frequencies *= np.sqrt(gammaincinv(self.alpha, uniforms[:, -1]) / self.alpha)[:, None]
        return self.scaled_frequencies(frequencies)

    def frequency_deviations(self, input_dim: int) -> Matrix:
        """1/σ_j for every α, the mean of τ being 1; the fourth moment is 3(1 + 1/α)/σ_j⁴."""
        return self.scaled_deviations(1.0, input_dim)

    def is_heavy_tailed(self) -> bool:
        """Whether α is at most ½: the fourth moment is 1 + 1/α times a normal one's."""
        return self.alpha <= 0.5

    def radial_quantile(self, uniforms: Matrix, dim: int) -> Matrix:
        """Quantiles of √(τχ²) with dim degrees of freedom, from a spline through the law of a product of gammas."""
        if not uniforms.size:
            return np.empty(uniforms.shape)
        with np.errstate(under="ignore"):  # for tiny α most are 0
            squares = np.exp(_log_product_quantile(uniforms, *sorted((self.alpha, dim / 2))) - np.log(self.alpha / 2))
        return np.asarray(np.sqrt(squares), np.float64)

    def gram(self, x: Matrix, y: Matrix) -> Matrix:
        """exp(−α log(1 + r²/(2α))), r² from differences; it falls so slowly that even infinite r² have a value."""
        gram = self.distances(x, y, "sqeuclidean")
        with np.errstate(over="ignore"):  # settled below
            gram /= 2 * self.alpha
        np.log1p(gram, out=gram)
        for i in np.flatnonzero(np.isinf(gram.max(axis=1, initial=0))):
            far = np.isinf(gram[i])
            squares = self.distances(_SMALLER * x[i : i + 1], _SMALLER * y[far], "sqeuclidean")[0]
            with np.errstate(divide="ignore"):  # so near that α < 1e-300, where the kernel is 1 everywhere
                logs = np.log(squares) - 2 * np.log(_SMALLER) - np.log(2) - np.log(self.alpha)
            gram[i, far] = np.maximum(logs, 0)
        gram *= -self.alpha
        return np.exp(gram, out=gram)


def _log_product_quantile(uniforms: Matrix, small: float, large: float) -> Matrix:
    """Quantiles of the logarithm of a product of two gamma variables of these shapes.

    The distribution function is the mean of that of the smaller shape over the law of the larger, whose logarithm is
    spread little: there the trapezoidal rule has no error but rounding. It is inverted by a spline of degree 7 in the
    logit, of which the quantiles are a smooth function.
    """
    if small < _LEAST_SHAPE:
        return np.full(uniforms.shape, -np.inf)
    first, last = np.log(gammaincinv(large, 1e-32)), np.log(gammainccinv(large, 1e-32))
    at = np.linspace(first, last, max(_QUADRATURE_NODES, int(_QUADRATURE_NODES_PER_UNIT * (last - first))))
    weights = np.exp(large * at - np.exp(at) - gammaln(large))
    weights /= weights.sum()
    # Both factors at one quantile: farther apart than the product, so that its quantiles lie between.
    levels = np.linspace(max(-_FARTHEST_LOGIT, float(logit(gammainc(small, _LEAST)))), _FARTHEST_LOGIT, _SPLINE_NODES)
    logs = _log_quantiles(small, levels) + _log_quantiles(large, levels)
    factors = np.exp(logs[:, None] - at)
    logits = np.log(gammainc(small, factors) @ weights) - np.log(gammaincc(small, factors) @ weights)
    wanted = logit(uniforms)
    found: Matrix = scipy.interpolate.make_interp_spline(logits, logs, k=7)(wanted)
    found[wanted < logits[0]] = -np.inf
    return found


def _log_quantiles(shape: float, logits: Matrix) -> Matrix:
    """Logarithms of the quantiles of a gamma law; near 1 from the distance to 1, which is more exact."""
    low, high = gammaincinv(shape, expit(logits)), gammainccinv(shape, expit(-logits))
    return np.log(np.where(logits < 0, low, high))
