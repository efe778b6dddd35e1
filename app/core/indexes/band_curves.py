"""How many neighbours bands of codes find, and among how many rows: as the law has it, and as hashes of rows do."""

from threading import Lock
from typing import NamedTuple

import numpy as np

from app.core.arrays import Matrix, Whole
from app.core.indexes.banding import CHANCE, MANY
from app.core.indexes.equal_runs import HashBytes, in_words, starts_of_bands, write_first_bands
from app.core.progress import Pause
from app.core.threads import for_each

ROWS_PER_BAND = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64)
"""Hashes of a band that are tried."""

# Codes of different values, so that hashes that fill up words never agree.
_FILL, _OTHER_FILL = 0, 1


class FirstBands(NamedTuple):
    """For each number of hashes a band may have, how soon neighbours and other rows come.

    A query whose buckets have many rows by so many bands is compared with all, so that the last of these bands is then
    the first one of every row that agrees in none before it.
    """

    neighbours: Whole
    """The first band in which a query comes upon a neighbour, −1 for none, (numbers, q, k)."""
    others: Whole
    """How many pairs of a query and one of the sampled rows come together first in each band, (numbers, s)."""
    wholes: Whole
    """The band from which on a query is compared with all rows, s where there is none, (numbers, q)."""


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
    """In which bands queries (q, s) come first upon their neighbours (q, k, s) and upon a sample of rows (m, s)."""
    q, k, s = neighbours.shape
    sizes = tried(s)
    starts = starts_of_bands(s, sizes[-1])
    columns = np.array(sizes) - 1
    numbers = np.full(sizes[-1], -1)
    numbers[columns] = np.arange(len(sizes))
    of_queries, of_sample = in_words(queries, _FILL), in_words(sampled, _OTHER_FILL)
    of_neighbours = np.empty((len(sizes), q, k), np.int64)
    wholes = np.empty((len(sizes), q), np.int64)
    counts = np.zeros((len(sizes), s), np.int64)
    m, counting = len(sampled), Lock()

    def compare(i: int) -> None:
        agreeing, found = np.zeros((len(sizes), s), np.int64), np.empty((m, sizes[-1]), np.int64)
        write_first_bands(of_queries[i], of_sample, starts, found, numbers, agreeing)
        each = zip(sizes, agreeing, found[:, columns].T, strict=True)
        wholes[:, i] = [_whole(some[: s // r], np.bincount(one + 1, minlength=s + 1)[1:], m) for r, some, one in each]
        first = _come_upon(found[:, columns], wholes[:, i], s)
        of_query = [np.bincount(one + 1, minlength=s + 1)[1:] for one in first.T]
        with counting:
            np.add(counts, of_query, out=counts)
        found = np.empty((k, sizes[-1]), np.int64)
        write_first_bands(of_queries[i], in_words(neighbours[i], _OTHER_FILL), starts, found, numbers, agreeing)
        of_neighbours[:, i] = _come_upon(found[:, columns], wholes[:, i], s).T

    for_each(compare, range(q), threads, pause)
    return FirstBands(of_neighbours, counts, wholes)


def _whole(agreeing: Whole, first: Whole, m: int) -> int:
    """The band by which a search turns to all rows, s for none; see `MANY`.

    Args:
        agreeing: how many of m rows agree with the query in each band, (bands,).
        first: how many of them first agree there, (s,).
        m: how many rows there are.
    """
    by_chance = CHANCE * np.arange(1, len(agreeing) + 1)
    entries, rows = np.cumsum(agreeing) / m + by_chance, np.cumsum(first[: len(agreeing)]) / m + by_chance
    turned = np.flatnonzero((entries > 1) | (rows * MANY > 1))
    return int(turned[0]) if turned.size else len(first)


def _come_upon(first: Whole, wholes: Whole, s: int) -> Whole:
    """The first bands of rows, −1 for none, (rows, numbers), where from the bands `wholes` on all rows come."""
    found = np.minimum(np.where(first < 0, s, first), wholes)
    return np.where(found < s, found, -1)
