"""Estimates of kernels from collisions of codes, and intervals from how many of s hashes agree."""

from typing import NamedTuple

import numpy as np
from scipy.special import betainc, betaincinv

from app.core.arrays import Matrix, Whole
from app.core.hashing.encodings import Codes, Encoder, Samples

CONFIDENCE = 0.95
"""How often an interval is to hold the truth."""

_TAIL = (1 - CONFIDENCE) / 2
# Halvings of a bracket that is no wider than the step from one count to the next.
_HALVINGS = 30


def rate_intervals(counts: Whole, s: int) -> Matrix:
    """The mid-p interval of each count of s independent hashes that agree, (n,) to (n, 2).

    Its ends are the probabilities p with P(X > k) + P(X = k)/2 = 0.025, and with P(X < k) + P(X = k)/2 = 0.025, for X
    binomial and the count k; 0 for none and 1 for all (Lancaster, 1961, Significance tests in discrete distributions).
    It is never 0 wide. Clopper and Pearson's counts P(X = k) whole, and covers too often.
    """
    every, places = np.unique(np.concatenate([counts, s - counts]), return_inverse=True)
    lower = _lower_ends(every.astype(np.float64), s)[places]
    return np.stack([lower[: len(counts)], 1 - lower[len(counts) :]], axis=1)


def _lower_ends(counts: Matrix, s: int) -> Matrix:
    """The lower end for each of the counts, (n,)."""
    ends = np.zeros(len(counts))
    some = counts > 0
    k = counts[some]
    # P(X >= k) and P(X >= k + 1), of which the p-value is the mean, pass the tail at these.
    least, most = betaincinv(k, s - k + 1, _TAIL), np.ones(len(k))
    most[k < s] = betaincinv(k[k < s] + 1, s - k[k < s], _TAIL)
    for _ in range(_HALVINGS):
        middle = (least + most) / 2
        beyond = np.zeros(len(k))
        beyond[k < s] = betainc(k[k < s] + 1, s - k[k < s], middle[k < s])
        low = betainc(k, s - k + 1, middle) + beyond < 2 * _TAIL
        least, most = np.where(low, middle, least), np.where(low, most, middle)
    ends[some] = (least + most) / 2
    return ends


class Estimate(NamedTuple):
    """Estimates of a kernel, pair by pair, and their standard errors."""

    value: Matrix
    standard_error: Matrix


class Agreements(NamedTuple):
    """How many of their hashes n pairs of rows, x and y, agree in: in the code, and in the coordinate i*, each (n,).

    Beside them, how many codes of x and of y are odd, as `odd_codes` counts them.
    """

    codes: Whole
    zero_bit: Whole
    odd_x: Whole
    odd_y: Whole

    @classmethod
    def none(cls, n: int) -> "Agreements":
        """Whole of 0 for n pairs, before the first hash."""
        return cls(*(np.zeros(n, np.int64) for _ in cls._fields))

    def add(self, by: Encoder, x: Samples, y: Samples, first_hash: int) -> None:
        """Count the samples (n, hashes, 2) from `first_hash` on, written as `by` does."""
        x_codes, y_codes = by.encode(x, first_hash), by.encode(y, first_hash)
        np.add(self.codes, collisions(x_codes, y_codes), out=self.codes)
        np.add(self.zero_bit, collisions(x[..., 0], y[..., 0]), out=self.zero_bit)
        np.add(self.odd_x, odd_codes(by, x_codes), out=self.odd_x)
        np.add(self.odd_y, odd_codes(by, y_codes), out=self.odd_y)


def collisions(x: Codes, y: Codes) -> Whole:
    """Number of hashes whose codes agree, row i of x with row i of y: (n, s) or (n, s, 2) to (n,)."""
    equal = x == y
    count: Whole = (equal if equal.ndim == 2 else equal.all(axis=2)).sum(axis=1)
    return count


def collision_rate(x: Codes, y: Codes) -> Matrix:
    """Share of hashes whose codes agree, row i of x with row i of y: (n, s) or (n, s, 2) to (n,)."""
    rate: Matrix = collisions(x, y) / x.shape[1]
    return rate


def odd_codes(by: Encoder, codes: Codes) -> Whole:
    """How many codes (n, s) of each row have the lowest bit 1, which says a negative entry; 0 if it says nothing."""
    if not by.shows_sign:
        return np.zeros(len(codes), np.int64)
    count: Whole = (codes % 2 == 1).sum(axis=1)
    return count


def chances(by: Encoder, input_dim: int, s: int, odd_x: Whole, odd_y: Whole) -> Matrix:
    """How often codes agree by chance, pair by pair, (n,).

    Codes whose lowest bit is the sign tell by their `odd_codes` which share of their s samples is negative. It is 1 for
    one bit of two rows of one sign: their codes say nothing.
    """
    negative_x, negative_y = odd_x / s, odd_y / s
    return by.chance(input_dim, negative_x * negative_y + (1 - negative_x) * (1 - negative_y))


def kernel_estimate(rate: Matrix, s: int, chance: float | Matrix) -> Estimate:
    """The min-max kernel from the rate at which codes agree.

    Codes of b bits also agree by chance c, at the rate g + (1 − g)c, which is turned around. The estimate is then
    unbiased where c is right, and may be below 0. The rate is a mean of s independent collisions (GMM paper, (12)). The
    standard error is estimated from the rate itself, c being taken for known, and is 0 where all hashes agree or none
    does, which is no certainty: the kernel may then still be some 3/s away (the 95 % bound of s equal outcomes).

    Args:
        rate: shares of the s hashes that agree, shape (n,).
        s: number of hashes.
        chance: c, of all pairs or of each. Where it is 1 all codes agree whatever the kernel, and both numbers are NaN.
    """
    with np.errstate(invalid="ignore"):  # 0/0 is meant
        return Estimate((rate - chance) / (1 - chance), np.sqrt(rate * (1 - rate) / s) / (1 - chance))


def kernel_interval(counts: Whole, s: int, chance: float | Matrix, bias: float | Matrix = 0.0) -> Matrix:
    """An interval for the kernel, (n, 2), that holds it 95 times in 100, from how many of s codes agree.

    It is `rate_intervals` with chance collisions taken out as in `kernel_estimate`, moved by the `bias` that the
    estimate then has, and cut off at 0 and 1. So one that lies below 0 becomes [0, 0]: of unrelated rows, one in 40.

    Args:
        counts: how many codes agree, shape (n,).
        s: number of hashes.
        chance: as for `kernel_estimate`; both ends are NaN where it is 1.
        bias: that of `kernel_bias`, of all pairs or of each. Without it, and without `Encoder.tells_samples`, the
            interval is that of the probability that i* are equal, which is the kernel or more.
    """
    ends = (rate_intervals(counts, s) - _column(chance)) / _column(_remaining(chance)) - _column(bias)
    return np.clip(ends, 0, 1)


def kernel_bias(kernel: Matrix, chance: float | Matrix, true_chance: float | Matrix) -> Matrix:
    """How far the mean of an estimate lies above the kernel, (n,).

    Codes of different samples are assumed to agree with the probability `chance`. They do with `true_chance`, which
    `row_chances` computes, and which is larger on most rows.
    """
    bias: Matrix = (1 - kernel) * (true_chance - chance) / _remaining(chance)
    return bias


def rbf_estimate(kernel: Estimate, gamma: float) -> Estimate:
    """The kernel e^(−γ(1 − ρ)) from estimates X of the min-max kernel of power 1 (GMM paper, theorem 4).

    It is e^(−2γ((1 − X)/(1 + X))²), because (1 − g)/(1 + g) comes near √((1 − ρ)/2) on rows of many coordinates. Its
    standard error is that of X times 8γ(1 − X)/(1 + X)³ times the estimate, which for X of standard error √(g(1 − g)/s)
    is the root of the paper's variance (26). It is the error of sampling alone: the bias has a part of order 1/s, and
    one that no number of hashes makes smaller, as on real rows the link is not exact.
    """
    value, slope = _rbf_and_slope(np.clip(kernel.value, 0, 1), gamma)
    return Estimate(value, slope * kernel.standard_error)


def rbf_bias(kernel: Matrix, bias: float | Matrix, rbf: Matrix, gamma: float) -> Matrix:
    """How far the link's value at `kernel` + `bias`, an estimate's mean, lies above the RBF kernel `rbf`, (n,)."""
    return _rbf_and_slope(np.clip(kernel + bias, 0, 1), gamma)[0] - rbf


def rbf_interval(mean_interval: Matrix, bias: Matrix, gamma: float) -> Matrix:
    """An interval for the RBF kernel, (n, 2), that holds it as often as `mean_interval` holds an estimate's mean.

    That is `kernel_interval` without a bias; `bias` is that of `rbf_bias`. The RBF kernel is between e^(−2γ) and 1.
    """
    least = np.square(np.exp(-gamma))
    ends: Matrix = np.clip(_rbf_and_slope(mean_interval, gamma)[0] - _column(bias), least, 1)
    return ends


def estimate_variances(kernel: Matrix, s: int, gamma: float | None) -> dict[str, Matrix]:
    """Variances of estimates from s hashes, for pairs of min-max kernel g, (n,); with gamma, of the RBF kernel too."""
    gcws = kernel * (1 - kernel) / s
    if gamma is None:
        return {"gcws": gcws}
    return {"gcws": gcws, "rbf_from_gcws": np.square(_rbf_and_slope(kernel, gamma)[1]) * gcws}


def _rbf_and_slope(x: Matrix, gamma: float) -> tuple[Matrix, Matrix]:
    """The RBF kernel at min-max kernels x, and its slope there, in an order that overflows for no finite γ."""
    ratio = (1 - x) / (1 + x)
    value = np.square(np.exp(-gamma * ratio * ratio))
    return value, 8 * ratio / (1 + x) ** 2 * (gamma * value)


def _remaining(chance: float | Matrix) -> Matrix:
    """1 − c, how often codes can tell samples apart; NaN where they never can."""
    return np.where(np.less(chance, 1), np.subtract(1, chance), np.nan)


def _column(numbers: float | Matrix) -> Matrix:
    """One number for both ends of each pair's interval."""
    return np.asarray(numbers, np.float64)[..., None]
