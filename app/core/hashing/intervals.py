"""Intervals for the probability that two codes agree, from how many of s hashes do."""

import numpy as np
from scipy.special import betainc, betaincinv

from app.core.arrays import Matrix, Whole

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
