"""How many neighbours bands of codes find, and among how many rows: as the law has it, and as hashes of rows do."""

from threading import Lock
from typing import NamedTuple

import numpy as np

from app.core.arrays import Matrix, Whole
from app.core.indexes.equal_runs import HashBytes, in_words, starts_of_bands, write_first_bands
from app.core.progress import Pause
from app.core.threads import for_each

ROWS_PER_BAND = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64)
"""Hashes of a band that are tried."""

# Codes of different values, so that hashes that fill up words never agree.
_FILL, _OTHER_FILL = 0, 1


class FirstBands(NamedTuple):
    """For each number of hashes a band may have, how soon neighbours and other rows come."""

    neighbours: Whole
    """The first band in which a query agrees with a neighbour, −1 for none, (numbers, q, k)."""
    others: Whole
    """How many pairs of a query and one of the sampled rows agree first in each band, (numbers, s)."""


def tried(s: int) -> tuple[int, ...]:
    """Which numbers of hashes of a band there may be of s."""
    return tuple(r for r in ROWS_PER_BAND if r <= s)


def predicted(rates: Matrix, weights: Matrix, bands: int, rows_per_band: int) -> float:
    """The share of pairs that agree in a band at least, 1 − (1 − p^r)^b on average.

    Args:
        rates: p, how often a hash of two rows agrees, (m,).
        weights: how many pairs have each of these rates, (m,).
        bands: b.
        rows_per_band: r.
    """
    with np.errstate(divide="ignore"):  # of p = 1, where the share is 1
        each = -np.expm1(bands * np.log1p(-(rates**rows_per_band)))
    return float(np.average(each, weights=weights))


def first_bands(
    queries: HashBytes, neighbours: HashBytes, sampled: HashBytes, threads: int, pause: Pause
) -> FirstBands:
    """In which bands queries (q, s) agree first with their neighbours (q, k, s) and with a sample of rows (m, s)."""
    q, k, s = neighbours.shape
    sizes = tried(s)
    starts = starts_of_bands(s, sizes[-1])
    columns = np.array(sizes) - 1
    of_queries, of_sample = in_words(queries, _FILL), in_words(sampled, _OTHER_FILL)
    of_neighbours = np.empty((len(sizes), q, k), np.int64)
    counts = np.zeros((len(sizes), s), np.int64)
    m, counting = len(sampled), Lock()

    def compare(i: int) -> None:
        found = np.empty((m, sizes[-1]), np.int64)
        write_first_bands(of_queries[i], of_sample, starts, found)
        of_query = [np.bincount(found[:, column] + 1, minlength=s + 1)[1:] for column in columns]
        with counting:
            np.add(counts, of_query, out=counts)
        found = np.empty((k, sizes[-1]), np.int64)
        write_first_bands(of_queries[i], in_words(neighbours[i], _OTHER_FILL), starts, found)
        of_neighbours[:, i] = found[:, columns].T

    for_each(compare, range(q), threads, pause)
    return FirstBands(of_neighbours, counts)
