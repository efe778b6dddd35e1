"""Estimates of kernels from collisions of codes, and intervals from the number of s hashes that agree."""

from typing import NamedTuple

import numpy as np
from scipy.special import betainc, betaincinv

from app.core.arrays import Matrix, Whole
from app.core.hashing.encodings import Codes, Encoder, Samples

CONFIDENCE = 0.95
"""Probability with which an interval contains the true value."""

_TAIL = (1 - CONFIDENCE) / 2
# Halvings of a bracket that is no wider than the distance between two successive counts.
_HALVINGS = 30


def rate_intervals(counts: Whole, s: int) -> Matrix:
    """Return the mid-p interval of each count of agreeing hashes, of s independent ones, (n,) to (n, 2).

    Its ends are the probabilities p with P(X > k) + P(X = k)/2 = 0.025, and with P(X < k) + P(X = k)/2 = 0.025, for X
    binomial and the count k. The lower end is 0 for k = 0, the upper 1 for k = s (Lancaster, 1961, Significance tests
    in discrete distributions). The width is never 0. Clopper and Pearson's interval counts P(X = k) in full, and covers
    too often.
    """
    every, places = np.unique(np.concatenate([counts, s - counts]), return_inverse=True)
    lower = _lower_ends(every.astype(np.float64), s)[places]
    return np.stack([lower[: len(counts)], 1 - lower[len(counts) :]], axis=1)


def _lower_ends(counts: Matrix, s: int) -> Matrix:
    """Return the lower end for each count, (n,)."""
    ends = np.zeros(len(counts))
    some = counts > 0
    k = counts[some]
    # The p-value is the mean of P(X >= k) and P(X >= k + 1), which reach the tail probability at these bounds.
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
    """Estimates of a kernel, one per pair of rows, and their standard errors."""

    value: Matrix
    standard_error: Matrix


class Agreements(NamedTuple):
    """Numbers of hashes in which n pairs of rows, x and y, agree: in the code, and in the coordinate i*, each (n,).

    Also the numbers of odd codes of x and of y, as counted by `odd_codes`.
    """

    codes: Whole
    zero_bit: Whole
    odd_x: Whole
    odd_y: Whole

    @classmethod
    def none(cls, n: int) -> "Agreements":
        """Return counts of 0 for n pairs, before the first hash."""
        return cls(*(np.zeros(n, np.int64) for _ in cls._fields))

    def add(self, by: Encoder, x: Samples, y: Samples, first_hash: int) -> None:
        """Add the agreements of samples (n, hashes, 2) of the hashes from `first_hash` on, encoded by `by`."""
        x_codes, y_codes = by.encode(x, first_hash), by.encode(y, first_hash)
        np.add(self.codes, collisions(x_codes, y_codes), out=self.codes)
        np.add(self.zero_bit, collisions(x[..., 0], y[..., 0]), out=self.zero_bit)
        np.add(self.odd_x, odd_codes(by, x_codes), out=self.odd_x)
        np.add(self.odd_y, odd_codes(by, y_codes), out=self.odd_y)


def collisions(x: Codes, y: Codes) -> Whole:
    """Count the hashes whose codes agree, row i of x with row i of y: (n, s) or (n, s, 2) to (n,)."""
    equal = x == y
    count: Whole = (equal if equal.ndim == 2 else equal.all(axis=2)).sum(axis=1)
    return count


def collision_rate(x: Codes, y: Codes) -> Matrix:
    """Return the share of hashes whose codes agree, for row i of x and of y: (n, s) or (n, s, 2) to (n,)."""
    rate: Matrix = collisions(x, y) / x.shape[1]
    return rate


def odd_codes(by: Encoder, codes: Codes) -> Whole:
    """Count the codes (n, s) of each row whose lowest bit is 1, for a negative entry; 0 if it is no sign."""
    if not by.shows_sign:
        return np.zeros(len(codes), np.int64)
    count: Whole = (codes % 2 == 1).sum(axis=1)
    return count


def chances(by: Encoder, input_dim: int, s: int, odd_x: Whole, odd_y: Whole) -> Matrix:
    """Return how often codes agree by chance, for each pair, (n,).

    If the lowest bit of codes is the sign, `odd_codes` tell which share of the s samples is negative. The chance is 1
    for single bits of two rows with the same one sign: their codes say nothing.
    """
    negative_x, negative_y = odd_x / s, odd_y / s
    return by.chance(input_dim, negative_x * negative_y + (1 - negative_x) * (1 - negative_y))


def kernel_estimate(rate: Matrix, s: int, chance: float | Matrix) -> Estimate:
    """Estimate the min-max kernel g from the rate at which codes agree.

    Codes of b bits also agree by chance c, so that the rate is g + (1 − g)c, which is solved for g. The estimate is
    unbiased if c is right, and may be below 0. The rate is a mean of s independent collisions (GMM paper, (12)). The
    standard error is estimated from the rate, with c taken as known. It is 0 if all hashes agree or none does, which is
    no certainty: the kernel may then still be about 3/s away (the 95 % bound for s equal outcomes).

    Args:
        rate: shares of the s hashes that agree, (n,).
        s: number of hashes.
        chance: c, of all pairs or of each. If it is 1, all codes agree whatever the kernel, and both results are NaN.
    """
    with np.errstate(invalid="ignore"):  # 0/0 is intended
        return Estimate((rate - chance) / (1 - chance), np.sqrt(rate * (1 - rate) / s) / (1 - chance))


def kernel_interval(counts: Whole, s: int, chance: float | Matrix, bias: float | Matrix = 0.0) -> Matrix:
    """Return an interval that contains the kernel 95 times in 100, (n, 2), from how many of s codes agree.

    It is `rate_intervals` with chance collisions removed as in `kernel_estimate`, shifted by the `bias` of the
    estimate, and clipped to [0, 1]. An interval below 0 becomes [0, 0]; for unrelated rows this is 1 in 40.

    Args:
        counts: how many codes agree, (n,).
        s: number of hashes.
        chance: as for `kernel_estimate`; both ends are NaN where it is 1.
        bias: result of `kernel_bias`, of all pairs or of each. Without it, and without `Encoder.tells_samples`, the
            interval is for the probability that i* are equal, which is the kernel or more.
    """
    ends = (rate_intervals(counts, s) - _column(chance)) / _column(_remaining(chance)) - _column(bias)
    return np.clip(ends, 0, 1)


def kernel_bias(kernel: Matrix, chance: float | Matrix, true_chance: float | Matrix) -> Matrix:
    """Return how far the mean of an estimate lies above the kernel, (n,).

    The estimate assumes that codes of different samples agree with the probability `chance`. In fact it is
    `true_chance`, computed by `row_chances`, which is larger for most rows.
    """
    bias: Matrix = (1 - kernel) * (true_chance - chance) / _remaining(chance)
    return bias


def rbf_estimate(kernel: Estimate, gamma: float) -> Estimate:
    """Estimate the kernel e^(−γ(1 − ρ)) from estimates X of the min-max kernel of power 1 (GMM paper, theorem 4).

    It is e^(−2γ((1 − X)/(1 + X))²), because (1 − g)/(1 + g) approaches √((1 − ρ)/2) for rows of many coordinates. Its
    standard error is that of X times 8γ(1 − X)/(1 + X)³ times the estimate; if that of X is √(g(1 − g)/s), this is the
    root of the paper's variance (26). It covers sampling alone: the bias has a part of order 1/s, and a part that more
    hashes do not reduce, because the link is not exact on real rows.
    """
    value, slope = _rbf_and_slope(np.clip(kernel.value, 0, 1), gamma)
    return Estimate(value, slope * kernel.standard_error)


def rbf_bias(kernel: Matrix, bias: float | Matrix, rbf: Matrix, gamma: float) -> Matrix:
    """Return how far the link's value at an estimate's mean, `kernel` + `bias`, is above the RBF kernel `rbf`, (n,)."""
    return _rbf_and_slope(np.clip(kernel + bias, 0, 1), gamma)[0] - rbf


def rbf_interval(mean_interval: Matrix, bias: Matrix, gamma: float) -> Matrix:
    """Return an interval for the RBF kernel, (n, 2), that covers as often as `mean_interval` does an estimate's mean.

    `mean_interval` is `kernel_interval` without a bias; `bias` is from `rbf_bias`. The kernel is in [e^(−2γ), 1].
    """
    least = np.square(np.exp(-gamma))
    ends: Matrix = np.clip(_rbf_and_slope(mean_interval, gamma)[0] - _column(bias), least, 1)
    return ends


def estimate_variances(kernel: Matrix, s: int, gamma: float | None) -> dict[str, Matrix]:
    """Return variances of estimates from s hashes for min-max kernels g, (n,); with gamma, of the RBF kernel too."""
    gcws = kernel * (1 - kernel) / s
    if gamma is None:
        return {"gcws": gcws}
    return {"gcws": gcws, "rbf_from_gcws": np.square(_rbf_and_slope(kernel, gamma)[1]) * gcws}


def _rbf_and_slope(x: Matrix, gamma: float) -> tuple[Matrix, Matrix]:
    """Return the RBF kernel at min-max kernels x, and its slope, in an order that overflows for no finite γ."""
    ratio = (1 - x) / (1 + x)
    value = np.square(np.exp(-gamma * ratio * ratio))
    return value, 8 * ratio / (1 + x) ** 2 * (gamma * value)


def _remaining(chance: float | Matrix) -> Matrix:
    """Return 1 − c, how often codes can tell samples apart; NaN where they never can."""
    return np.where(np.less(chance, 1), np.subtract(1, chance), np.nan)


def _column(numbers: float | Matrix) -> Matrix:
    """Add an axis, so that one number applies to both ends of a pair's interval."""
    return np.asarray(numbers, np.float64)[..., None]
