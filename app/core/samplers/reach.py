"""How far from 0 a rule is worth more than random frequencies."""

from bisect import bisect_left
from collections.abc import Callable

import numpy as np

from app.core.kernels.base import Matrix

_DIRECTIONS = 16
# Radii in units of σ. A rule may be right again by chance far out, so its first failure is looked for step by step.
_RADII = np.concatenate([[0.0], np.geomspace(0.05, 10, 24)])
_STEPS_BETWEEN = 20


def directions(input_dim: int) -> Matrix:
    """Unit vectors, (16, d), to look along: always the same, so that a rule always has the same reach."""
    rows = np.random.default_rng(0).standard_normal((_DIRECTIONS, input_dim))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def reach(estimate: Callable[[float], Matrix], n_frequencies: int) -> float | None:
    """The radius |δ|/σ from which on a rule errs by more than as many Monte Carlo frequencies; None beyond 10.

    Args:
        estimate: the rule's value of the standard Gaussian kernel at a radius, along each direction.
        n_frequencies: of the rule.
    """

    def fails(radius: float) -> bool:
        exact = np.exp(-(radius**2) / 2)
        error = np.sqrt(np.mean((estimate(radius) - exact) ** 2))
        return bool(error > (1 - exact**2) / np.sqrt(2 * n_frequencies))

    first = next((i for i in range(1, len(_RADII)) if fails(_RADII[i])), None)
    if first is None:
        return None
    between = np.linspace(_RADII[first - 1], _RADII[first], _STEPS_BETWEEN + 1)[1:].tolist()
    return float(between[min(bisect_left(between, True, key=fails), _STEPS_BETWEEN - 1)])


def reach_warnings(radius: float | None) -> tuple[str, ...]:
    """The warning about a reach, none if it is unlimited."""
    if radius is None:
        return ()
    return (f"better than monte_carlo of the same size only where |δ|/σ is below about {radius:.2f}",)


def reach_of(frequencies: Matrix, weights: Matrix) -> float | None:
    """The reach of standard frequencies (n, d) with weights (n,)."""
    projected = frequencies @ directions(frequencies.shape[1]).T
    return reach(lambda radius: weights @ np.cos(radius * projected), len(weights))
