"""How many neighbours bands of codes find, and among how many rows: as the law has it, and as hashes of rows do.

In which band two rows first agree is told by runs of hashes that agree, for bands of every number of hashes.
"""

from collections.abc import Callable
from threading import Lock
from typing import Any, NamedTuple, cast

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from app.core.arrays import Matrix, Whole
from app.core.compiled import compiled
from app.core.indexes.banding import CHANCE, MANY
from app.core.progress import Pause
from app.core.threads import for_each
from app.core.tiles import place

HashBytes = NDArray[np.uint8]
"""Codes of a byte or less, one byte a hash."""
Words = NDArray[np.uint64]

_PER_WORD = 64
MOST_ROWS_PER_BAND = 64


def in_words(codes: HashBytes, fill: int) -> HashBytes:
    """Codes (n, s) as (n, a multiple of 64): codes that were filled up by other numbers do not agree there."""
    n, s = codes.shape
    found = np.full((n, -(-s // _PER_WORD) * _PER_WORD), fill, np.uint8)
    found[:, :s] = codes
    return found


def starts_of_bands(s: int, most: int) -> Words:
    """Which of s hashes begin a band of r hashes, for r from 1 to `most`, as bits of words, (most, words)."""
    found = np.zeros((most, -(-s // _PER_WORD)), np.uint64)
    for r in range(1, most + 1):
        starts = np.arange(0, s - r + 1, r)
        np.bitwise_or.at(found[r - 1], starts // _PER_WORD, np.uint64(1) << (starts % _PER_WORD).astype(np.uint64))
    return found


@intrinsic
def _equal_in(_: Any, x: Any, of_x: Any, y: Any, of_y: Any) -> tuple[Any, Any]:
    """Which of 64 bytes are equal, as the bits of a word."""
    given = (x, of_x, y, of_y)

    def generate(context: Any, builder: Any, _: Any, passed: Any) -> Any:
        vector = ir.VectorType(ir.IntType(8), _PER_WORD)
        of_both = [
            builder.load(
                builder.bitcast(place(context, builder, given[k], passed[k], passed[k + 1]), vector.as_pointer()),
                align=1,
            )
            for k in (0, 2)
        ]
        return builder.bitcast(builder.icmp_unsigned("==", *of_both), ir.IntType(_PER_WORD))

    return types.uint64(*given), generate


@intrinsic
def _lowest_in(_: Any, word: Any) -> tuple[Any, Any]:
    """The number of the lowest bit that is 1."""
    return types.int64(word), lambda _, builder, __, passed: builder.cttz(passed[0], ir.IntType(1)(1))


_equal_bytes = cast(Callable[[HashBytes, int, HashBytes, int], np.uint64], _equal_in)
_lowest = cast(Callable[[np.uint64], int], _lowest_in)


@compiled
def write_first_bands(
    query: HashBytes, rows: HashBytes, starts: Words, found: Whole, numbers: Whole, counts: Whole
) -> None:
    """Write the number of the first band in which a row agrees with a query wholly, or −1, to `found`, (rows, most).

    Args:
        query: its codes, (a multiple of 64,), as from `in_words`.
        rows: codes of the rows, (rows, as many).
        starts: as from `starts_of_bands`; entry r − 1 of `found` is of bands of r hashes.
        found: written.
        numbers: which row of `counts` is of bands of r hashes, at r − 1, or −1, (most,).
        counts: how many of the rows agree in each band is added to it, (·, bands).
    """
    words, most = len(query) // _PER_WORD, len(starts)
    entries = rows.reshape(-1)
    equal, runs = np.empty(words + 1, np.uint64), np.empty(words, np.uint64)
    equal[words] = 0
    for j in range(len(rows)):
        for w in range(words):
            equal[w] = runs[w] = _equal_bytes(query, w * _PER_WORD, entries, (j * words + w) * _PER_WORD)
        for r in range(1, most + 1):
            if r > 1:
                # Of r hashes from here on the last agrees too, if that of the run moved by r − 1 does.
                behind, before = np.uint64(r - 1), np.uint64(_PER_WORD - r + 1)
                for w in range(words):
                    runs[w] &= equal[w] >> behind | equal[w + 1] << before
            if not runs.any():
                found[j, r - 1 :] = -1
                break
            found[j, r - 1] = _first_band(runs, starts[r - 1], r)
            if found[j, r - 1] >= 0 and numbers[r - 1] >= 0:
                _count_bands(runs, starts[r - 1], r, counts[numbers[r - 1]])


@compiled
def _first_band(runs: Words, starts: Words, rows_per_band: int) -> int:
    for w in range(len(runs)):
        of_bands = runs[w] & starts[w]
        if of_bands:
            return (w * _PER_WORD + _lowest(of_bands)) // rows_per_band
    return -1


@compiled
def _count_bands(runs: Words, starts: Words, rows_per_band: int, counts: Whole) -> None:
    for w in range(len(runs)):
        of_bands = runs[w] & starts[w]
        while of_bands:
            counts[(w * _PER_WORD + _lowest(of_bands)) // rows_per_band] += 1
            of_bands &= of_bands - np.uint64(1)


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
