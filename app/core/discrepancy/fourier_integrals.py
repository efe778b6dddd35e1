"""The one-dimensional integrals behind the box discrepancy, for any kernel that tells its characteristic function.

With r = b/σ and z = bw, both without unit, and φ the characteristic function at σ = 1:

    A = ∫₀¹ φ(rt)² dt,    g = ∫₀¹ φ(rt) cos(zt) dt,    ∂g/∂z = −∫₀¹ t φ(rt) sin(zt) dt.

φ is expanded in Legendre polynomials on panels, and each polynomial is integrated against the oscillation exactly
(Bakhvalov and Vasil'eva 1968; DLMF 10.54.2: ∫ P_n(x) e^{izx} dx over [−1, 1] is 2 iⁿ j_n(z)). The error is that of
the expansion and thus the same for any z, where a fixed rule fails as soon as z passes its number of nodes, and
closed forms cancel or overflow in one corner or another. Measured: 1e-15 at most, absolute, for r from 1e-4 to 1e4
and z up to 1e10.
"""

import math
from functools import cache
from typing import NamedTuple

import numpy as np

from app.core.arrays import Matrix, Whole
from app.core.compiled import compiled
from app.core.kernels.scaled import ProductKernel

# Panels in units of σ: a kernel may have a kink at 0, and beyond varies on the scale of the larger of σ and the lag.
# What lies past the last edge adds less than 2^−62 to the integral of any φ that falls like 1/β² or faster.
_EDGES = np.concatenate([[0.0], np.exp2(np.arange(63))])
# The slowest expansion is the Gaussian's between 4σ and 8σ.
_MODES, _NODES = 32, 40
# Coefficients from here on down, as a part of the largest, are mostly rounding: left out.
_NEGLIGIBLE = 1e-14
# A recurrence from so far above the last order has forgotten its start.
_HEAD_START = 30
# Below it three terms of the series are exact, and the recurrence, which grows by 1/x a step, would overflow.
_SERIES_BELOW = 0.01


class Expansion(NamedTuple):
    """φ_j(r_j t) and t φ_j(r_j t) on the panels of [0, 1], for d coordinates, p panels and at most n polynomials."""

    centres: Matrix
    """Centres of the panels, (d, p)."""
    halves: Matrix
    """Half the lengths of the panels, (d, p)."""
    sizes: Whole
    """Polynomials that count, (d, p); 0 for a panel that adds nothing."""
    values: Matrix
    """Coefficients of φ, (d, p, n), times the length of the panel and the sign of iⁿ."""
    moments: Matrix
    """Coefficients of tφ, (d, p, n), times the length of the panel and the sign of iⁿ."""


def expansion(kernel: ProductKernel, ratios: Matrix) -> tuple[Expansion, Matrix]:
    """Expand the kernel's factors for the ratios r_j = b_j/σ_j ≥ 0, (d,); with it log A_j, (d,)."""
    with np.errstate(divide="ignore", over="ignore"):  # a small ratio has no panel but the first
        ends = np.minimum(_EDGES[1:] / ratios[:, None], 1)
    ends = ends[:, : int((ends < 1).sum(axis=1).max()) + 1]
    starts = np.concatenate([np.zeros((len(ratios), 1)), ends[:, :-1]], axis=1)
    centres, halves = (starts + ends) / 2, (ends - starts) / 2
    nodes, node_weights, modes = _legendre()
    t = centres[..., None] + halves[..., None] * nodes
    phi = kernel.standard_characteristic(ratios[:, None, None] * t)
    # Sums without the linear algebra library, whose order may change with its threads.
    energies = (halves * np.einsum("jpq,q->jp", phi**2, node_weights)).sum(axis=1)
    values, moments = (2 * halves[..., None] * np.einsum("jpq,nq->jpn", samples, modes) for samples in (phi, t * phi))
    sizes = np.maximum(_sizes(values), _sizes(moments))
    return Expansion(centres, halves, sizes, values, moments), np.log(energies)


def _sizes(coefficients: Matrix) -> Whole:
    magnitudes = np.abs(coefficients)
    counts = magnitudes > _NEGLIGIBLE * magnitudes.max(axis=(1, 2), keepdims=True)
    orders = np.arange(1, coefficients.shape[2] + 1)
    # Two at least: the recurrence starts from two.
    sizes: Whole = np.where(counts.any(axis=2), np.maximum((counts * orders).max(axis=2), 2), 0)
    return sizes


@cache
def _legendre() -> tuple[Matrix, Matrix, Matrix]:
    """Gauss–Legendre nodes and weights, (q,), and the functionals of the coefficients with the sign of iⁿ, (n, q)."""
    nodes, _ = np.polynomial.legendre.leggauss(_NODES)
    orders = np.arange(_NODES)[:, None]
    polynomials = np.polynomial.legendre.legvander(nodes, _NODES - 1).T
    # As Christoffel numbers, two digits better than those that came with the nodes.
    node_weights = 1 / ((orders + 0.5) * polynomials**2).sum(axis=0)
    signs = np.where(orders % 4 < 2, 1.0, -1.0)
    return nodes, node_weights, (signs * (orders + 0.5) * polynomials * node_weights)[:_MODES]


@compiled
def _spherical_bessel(x: float, j: Matrix) -> None:
    """Fill j with j_0(x), j_1(x), …, two at least; x ≥ 0."""
    n = j.shape[0]
    if x < _SERIES_BELOW:
        power = 1.0
        for k in range(n):
            j[k] = power * (1 - x * x / (4 * k + 6) * (1 - x * x / (8 * k + 20)))
            power *= x / (2 * k + 3)
    elif x > n:  # upwards, stable below the order x
        j[0] = math.sin(x) / x
        j[1] = (j[0] - math.cos(x)) / x
        for k in range(2, n):
            j[k] = (2 * k - 1) / x * j[k - 1] - j[k - 2]
    else:  # downwards from anything (Miller), scaled to the larger of the two lowest orders
        above, here = 0.0, 1e-150
        for k in range(n + _HEAD_START, -1, -1):
            if k < n:
                j[k] = here
            above, here = here, (2 * k + 1) / x * here - above
        zeroth = math.sin(x) / x
        first = (zeroth - math.cos(x)) / x
        scale = zeroth / j[0] if abs(zeroth) > abs(first) else first / j[1]
        for k in range(n):
            j[k] *= scale


@compiled
def integrate(panels: Expansion, z: Matrix, g: Matrix, slopes: Matrix) -> None:
    """g_j and ∂g_j/∂z of z = b_j w_j, (n, d), into `g` and `slopes`, (n, d). Releases the interpreter lock."""
    centres, halves, sizes, values, moments = panels
    bessel = np.empty(values.shape[2])
    for i in range(z.shape[0]):
        for j in range(z.shape[1]):
            size = abs(z[i, j])
            total, slope = 0.0, 0.0
            for p in range(centres.shape[1]):
                n = sizes[j, p]
                if n == 0:
                    continue
                _spherical_bessel(size * halves[j, p], bessel[:n])
                # Even orders make the real part, odd ones the imaginary.
                real, imaginary, moment_real, moment_imaginary = 0.0, 0.0, 0.0, 0.0
                for k in range(0, n, 2):
                    real += values[j, p, k] * bessel[k]
                    moment_real += moments[j, p, k] * bessel[k]
                for k in range(1, n, 2):
                    imaginary += values[j, p, k] * bessel[k]
                    moment_imaginary += moments[j, p, k] * bessel[k]
                cosine, sine = math.cos(size * centres[j, p]), math.sin(size * centres[j, p])
                total += cosine * real - sine * imaginary
                slope -= sine * moment_real + cosine * moment_imaginary
            g[i, j] = total
            slopes[i, j] = slope if z[i, j] >= 0 else -slope
