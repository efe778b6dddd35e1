"""What collisions of codes say about kernels."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.core.hashing.encodings import Codes

Numbers = NDArray[np.float64]


class Estimate(NamedTuple):
    """Estimates of a kernel, pair by pair, and their standard errors."""

    value: Numbers
    standard_error: Numbers


def collision_rate(x: Codes, y: Codes) -> Numbers:
    """Share of hashes whose codes agree, row i of x with row i of y: (n, s) or (n, s, 2) to (n,)."""
    equal = x == y
    rate: Numbers = (equal if equal.ndim == 2 else equal.all(axis=2)).mean(axis=1)
    return rate


def kernel_estimate(rate: Numbers, s: int, chance: float) -> Estimate:
    """The min-max kernel from the rate at which codes agree.

    Codes of b bits also agree by chance, at the rate g + (1 − g)c with c = 2^−b, which is turned around. The estimate
    is unbiased, and may therefore be below 0. The rate is a mean of s independent collisions (GMM paper, (12)).

    Args:
        rate: shares of hashes that agree, shape (n,).
        s: number of hashes.
        chance: c; 0 for codes that tell all samples apart.
    """
    return Estimate((rate - chance) / (1 - chance), np.sqrt(rate * (1 - rate) / s) / (1 - chance))


def rbf_estimate(kernel: Estimate, gamma: float) -> Estimate:
    """The kernel e^(−γ(1 − ρ)) from estimates X of the min-max kernel of power 1 (GMM paper, theorem 4).

    It is e^(−2γ((1 − X)/(1 + X))²), because (1 − g)/(1 + g) comes near √((1 − ρ)/2) on rows of many coordinates. Its
    standard error is that of X times 8γ(1 − X)/(1 + X)³ times the estimate, which for X of standard error √(g(1 − g)/s)
    is the root of the paper's variance (26). The bias is of order 1/s.
    """
    x = np.clip(kernel.value, 0, 1)
    ratio = (1 - x) / (1 + x)
    # In an order that overflows for no finite γ.
    value = np.square(np.exp(-gamma * ratio * ratio))
    return Estimate(value, 8 * ratio / (1 + x) ** 2 * (gamma * value) * kernel.standard_error)
