"""Common parts of rules for normally distributed frequencies: their kernels, their nodes, and their reach."""

from bisect import bisect_left
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.polynomial import hermite_e

from app.core.arrays import Matrix
from app.core.errors import InvalidInput
from app.core.kernels.base import SpectralKernel

NORMAL_LAW = "normally distributed frequencies (kernels gaussian, correlation_rbf, anova)"
"""Kernels that rules for the normal law support, as the catalogue words this limit."""

_DIRECTIONS = 16
# Radii in units of σ. Far out, a rule may be accurate again by chance, so its first failure is searched step by step.
_RADII = np.concatenate([[0.0], np.geomspace(0.05, 10, 24)])
_STEPS_BETWEEN = 20


def normal_deviations(kernel: SpectralKernel, input_dim: int, kind: str, law: str = NORMAL_LAW) -> Matrix:
    """Return the standard deviations of the frequencies, (d,); InvalidInput if their law is not normal."""
    deviations = kernel.normal_deviations(input_dim)
    if deviations is None:
        raise InvalidInput(f"{kind} is a rule for {law}; for this kernel sampler sobol works", "/sampler/kind")
    return deviations


@cache
def gauss_hermite(n_points: int) -> tuple[Matrix, Matrix]:
    """Return nodes and weights for the standard normal law, exact for polynomials to degree 2·n_points − 1.

    The nodes are made exactly symmetric, a middle node exactly 0, and the weights are made to sum to 1.
    """
    nodes, weights = hermite_e.hermegauss(n_points)
    nodes = (nodes - nodes[::-1]) / 2
    weights = weights + weights[::-1]
    weights /= weights.sum()
    nodes.flags.writeable = weights.flags.writeable = False
    return nodes, weights


def directions(input_dim: int) -> Matrix:
    """Return unit vectors, (16, d), along which reach is measured: always the same, so that a rule has one reach."""
    rows = np.random.default_rng(0).standard_normal((_DIRECTIONS, input_dim))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def reach(estimate: Callable[[float], Matrix], n_frequencies: int) -> float | None:
    """Return the radius |δ|/σ beyond which a rule is worse than as many Monte Carlo frequencies; None if above 10.

    `estimate` returns the rule's value of the standard Gaussian kernel at a radius, along each direction.
    """

    def fails(radius: float) -> bool:
        exact = np.exp(-(radius**2) / 2)
        return bool(np.sqrt(np.mean((estimate(radius) - exact) ** 2)) > (1 - exact**2) / np.sqrt(2 * n_frequencies))

    first = next((i for i in range(1, len(_RADII)) if fails(_RADII[i])), None)
    if first is None:
        return None
    between = np.linspace(_RADII[first - 1], _RADII[first], _STEPS_BETWEEN + 1)[1:].tolist()
    return float(between[min(bisect_left(between, True, key=fails), _STEPS_BETWEEN - 1)])


def reach_warnings(radius: float | None) -> tuple[str, ...]:
    """Return the warning about a limited reach; no warning if `radius` is None."""
    if radius is None:
        return ()
    return (f"better than monte_carlo of the same size only where |δ|/σ is below about {radius:.2f}",)


def reach_of(frequencies: Matrix, weights: Matrix) -> float | None:
    """Compute the reach of standard frequencies (n, d) with weights (n,)."""
    projected = frequencies @ directions(frequencies.shape[1]).T
    return reach(lambda radius: weights @ np.cos(radius * projected), len(weights))
