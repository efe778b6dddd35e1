"""Latin hypercube sampling."""

from typing import Literal

import scipy

from app.core.arrays import Matrix
from app.core.samplers.base import PointSampler, Rng


class LatinHypercube(PointSampler):
    """Random points with exactly one in each of s slices of every coordinate.

    Choose when:
        Use it if single coordinates dominate: it removes the part of the error that is a sum over single coordinates,
        and leaves the rest as large as for monte_carlo.
    """

    source = (
        "McKay, Beckman, Conover (1979), A comparison of three methods for selecting values of input variables in the "
        "analysis of output from a computer code"
    )

    held_at_once = 3

    kind: Literal["latin_hypercube"]

    def points(self, n: int, d: int, rng: Rng) -> Matrix:
        """Return `n` points, stratified in each coordinate."""
        points: Matrix = scipy.stats.qmc.LatinHypercube(d, rng=int(rng.integers(1 << 63))).random(n)
        return points
