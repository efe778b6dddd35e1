"""Differences and distances of rows in units of length scales, which are as good far from 0 as near it.

Differences are taken before they are divided: rows that were divided first, and so rounded, would be off by 1e-16 of
themselves, which 10⁶ length scales from 0 is 1e-10 of one. Powers of two divide them before, which rounds nothing and
keeps squares in the range of float64.
"""

from collections.abc import Iterator
from typing import Literal

import numpy as np
import scipy

from app.core.arrays import Matrix, row_blocks
from app.core.errors import InvalidInput

_ENTRIES_PER_BLOCK = 1 << 15

Metric = Literal["euclidean", "sqeuclidean", "cityblock"]


def distances(x: Matrix, y: Matrix, scales: Matrix, metric: Metric) -> Matrix:
    """Distances of rows (n, d) and (m, d) divided by length scales (d,), (n, m).

    InvalidInput where an entry divided by its scale leaves the range of float64.
    """
    rest, x, y = divided_by_powers(x, y, scales)
    if (rest != rest[0]).any():
        # The weights of scipy stand under the root.
        return _in_cache(x, y, metric, 1 / rest if metric == "cityblock" else 1 / rest**2)
    found = _in_cache(x, y, metric)
    with np.errstate(over="ignore"):  # so far apart that it matters no more
        found /= rest[0] ** 2 if metric == "sqeuclidean" else rest[0]
    return found


def lags(x: Matrix, y: Matrix, scales: Matrix) -> Iterator[Matrix]:
    """The differences of every row of x and of y, (n, m), coordinate by coordinate, divided as in `distances`."""
    rest, x, y = divided_by_powers(x, y, scales)
    for of_x, of_y, scale in zip(x.T, y.T, rest, strict=True):
        with np.errstate(over="ignore"):  # so far apart that it matters no more
            found = np.subtract.outer(of_x, of_y)
            found /= scale
        yield found


def finite(scaled: Matrix) -> Matrix:
    """The rows divided by their length scales; InvalidInput if an entry has left the range of float64."""
    if not np.isfinite(scaled).all():  # two infinities have no distance
        raise InvalidInput("an entry divided by its length_scale leaves the range of float64")
    return scaled


def _in_cache(x: Matrix, y: Matrix, metric: Metric, weights: Matrix | None = None) -> Matrix:
    """Distances of all rows, some rows of y at a time: each row of x reads them from the cache, not from memory."""
    found = np.empty((len(x), len(y)))
    for some in row_blocks(len(y), max(1, _ENTRIES_PER_BLOCK // max(1, y.shape[1]))):
        found[:, some] = scipy.spatial.distance.cdist(x, y[some], metric, w=weights)
    return found


def divided_by_powers(x: Matrix, y: Matrix, scales: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """Each scale is a rest in [½, 1) times a power of two: the rests, (d,), and the rows divided by the powers."""
    rest, exponents = np.frexp(scales)
    with np.errstate(over="ignore"):  # refused by name
        return rest, finite(np.ldexp(x, -exponents)), finite(np.ldexp(y, -exponents))
