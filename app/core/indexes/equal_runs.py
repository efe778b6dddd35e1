"""In which band two rows first agree, for bands of every number of hashes, by runs of hashes that agree."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from app.core.arrays import Whole
from app.core.compiled import compiled
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
