"""What an adviser measures: the rows most similar to queries, what codes find of them, and how long a search takes.

Rows are hashed to a byte a hash, of which shorter and fewer codes are made. In which band two rows first agree is told
by runs of hashes that agree, for bands of every number of hashes.
"""

import time
from collections.abc import Callable
from threading import Lock
from typing import Any, NamedTuple, cast

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from app.core.arrays import Matrix, Rows, Whole, row_blocks
from app.core.compiled import jit
from app.core.errors import InvalidInput
from app.core.hashing.code_laws import CodeLaw
from app.core.indexes.answer import Costs
from app.core.indexes.banding import CHANCE, MANY, SEGMENT, Banding, Candidates, bucket_words, segment
from app.core.indexes.search import PackedCodes, nearest
from app.core.maps import FeatureMap
from app.core.progress import Pause, Progress, pack_arrays, unpack_arrays
from app.core.threads import for_each
from app.core.tiles import place

HashBytes = NDArray[np.uint8]
"""Codes of a byte or less, one byte a hash."""
Words = NDArray[np.uint64]

_PER_WORD = 64


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
        kind = ir.VectorType(ir.IntType(8), _PER_WORD).as_pointer()
        places = [place(context, builder, given[k], passed[k], passed[k + 1]) for k in (0, 2)]
        of_both = [builder.load(builder.bitcast(one, kind), align=1) for one in places]
        return builder.bitcast(builder.icmp_unsigned("==", *of_both), ir.IntType(_PER_WORD))

    return types.uint64(*given), generate


@intrinsic
def _lowest_in(_: Any, word: Any) -> tuple[Any, Any]:
    """The number of the lowest bit that is 1."""
    return types.int64(word), lambda _, builder, __, passed: builder.cttz(passed[0], ir.IntType(1)(1))


_equal_bytes = cast(Callable[[HashBytes, int, HashBytes, int], np.uint64], _equal_in)
_lowest = cast(Callable[[np.uint64], int], _lowest_in)


@jit
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


@jit
def _first_band(runs: Words, starts: Words, rows_per_band: int) -> int:
    for w in range(len(runs)):
        of_bands = runs[w] & starts[w]
        if of_bands:
            return (w * _PER_WORD + _lowest(of_bands)) // rows_per_band
    return -1


@jit
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


def candidate_sizes(s: int) -> tuple[int, ...]:
    """Which numbers of hashes of a band there may be of s."""
    return tuple(r for r in ROWS_PER_BAND if r <= s)


def predict_share(rates: Matrix, weights: Matrix, bands: int, rows_per_band: int) -> float:
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
    sizes = candidate_sizes(s)
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


_BINS = 10_000
# Kernels that are held at a time.
_PAIRS_PER_BLOCK = 1 << 19
_BYTES_PER_PAIR = 40


class Neighbours(NamedTuple):
    """What q queries are like to n rows."""

    slots: Whole
    """Numbers of the k most similar rows, ascending; where the last are equally similar, the first of them, (q, k)."""
    similarities: Matrix
    """The kernels of these, (q, k)."""
    histogram: Whole
    """How many pairs of a query and a row have a kernel in each of as many bins of [0, 1]."""

    @property
    def middles(self) -> Matrix:
        """The middles of the bins."""
        n = len(self.histogram)
        return (np.arange(n) + 0.5) / n


def block_bytes(q: int) -> int:
    """Memory of what is compared at a time with q queries."""
    return _BYTES_PER_PAIR * max(_PAIRS_PER_BLOCK, q)


def true_neighbours(feature_map: FeatureMap, queries: Rows, rows: Rows, k: int, progress: Progress) -> Neighbours:
    """The k rows nearest to each query, of all rows; at least k there are.

    How far the k-th neighbour is depends on how many rows there are. So queries may be a sample, but not the rows.
    """
    q, n = queries.shape[0], rows.shape[0]
    kept = {
        "slots": np.zeros((q, 0), np.int64),
        "similarities": np.zeros((q, 0)),
        "histogram": np.zeros(_BINS, np.int64),
        "done": np.array(0),
    }
    kept |= unpack_arrays(progress.restore())

    def pause() -> None:
        progress.checkpoint(lambda: pack_arrays(**kept))

    for block in row_blocks(n, _PAIRS_PER_BLOCK // q, int(kept["done"])):
        progress.report(block.start, n)
        pause()
        found = feature_map.exact_gram(queries, rows[block], pause)
        bins = np.clip((found * _BINS).astype(np.int64), 0, _BINS - 1)
        slots = np.broadcast_to(np.arange(block.start, block.stop), found.shape)
        similarities = np.concatenate([kept["similarities"], found], axis=1)
        both = np.concatenate([kept["slots"], slots], axis=1)
        best = _nearest(similarities, min(k, both.shape[1]))
        kept = {
            "slots": both[best].reshape(q, -1),
            "similarities": similarities[best].reshape(q, -1),
            "histogram": kept["histogram"] + np.bincount(bins.reshape(-1), minlength=_BINS),
            "done": np.array(block.stop),
        }
    progress.report(n, n)
    return Neighbours(kept["slots"], kept["similarities"], kept["histogram"])


def _nearest(similarities: Matrix, k: int) -> NDArray[np.bool_]:
    """Which are the k largest of each row, of equal ones the first: equal rows are in this order by their codes too."""
    m = similarities.shape[1]
    bound = np.partition(similarities, m - k, axis=1)[:, m - k, None]
    above, equal = similarities > bound, similarities == bound
    found: NDArray[np.bool_] = above | equal & (equal.cumsum(axis=1) <= k - above.sum(axis=1, keepdims=True))
    return found


# Rows that are hashed between two pauses, some hundredths of a second.
_HASHES_PER_BLOCK = 1 << 19
# What is packed at a time.
_CODES_PER_BLOCK = 1 << 22


def law_of(feature_map: FeatureMap) -> CodeLaw:
    """The law of a map's codes; InvalidInput for a map without codes, or with such as do not tell its kernel."""
    try:
        return feature_map.code_law("the map")
    except InvalidInput as error:
        raise InvalidInput(error.detail, "/map") from None


def hash_rows(feature_map: FeatureMap, rows: Rows, pause: Pause) -> HashBytes:
    """The codes of rows that have some, (n, s)."""
    n, s = rows.shape[0], feature_map.n_frequencies
    found, by = np.empty((n, s), np.uint8), law_of(feature_map).encoder
    for block in row_blocks(n, _HASHES_PER_BLOCK // s):
        pause()
        found[block] = by.unpack(feature_map.codes(rows[block], by, "/dataset", pause), s)
    return found


def packed_codes(codes: HashBytes, bits: int) -> PackedCodes:
    """The lowest bits, 1, 2, 4 or 8, of codes (n, s) as the encoding `packed` has them, (n, ⌈s·bits/8⌉)."""
    n, s = codes.shape
    per_byte = 8 // bits
    found = np.zeros((n, -(-s // per_byte)), np.uint8)
    for block in row_blocks(n, _CODES_PER_BLOCK // s):
        for at in range(per_byte):
            some = codes[block, at::per_byte] & np.uint8((1 << bits) - 1)
            found[block, : some.shape[1]] |= some << np.uint8(at * bits)
    return found


# Queries whose ranks are looked for at a time.
_QUERIES_PER_BLOCK = 64


def most_depth(k: int, n: int) -> int:
    """The most rows that are compared exactly after a search for the k nearest of n, in what is tried."""
    return min(n, max(20 * k, 500))


def ranks(
    queries: HashBytes, rows: HashBytes, bits: int, neighbours: Whole, depth: int, threads: int, pause: Pause
) -> Whole:
    """The place of each neighbour, from 0 on, (q, k), among the rows whose codes agree most; `depth` for a later one.

    Args:
        queries: their codes, (q, s).
        rows: codes of all rows, (n, s).
        bits: how many of each hash are compared.
        neighbours: slots of each query's neighbours, (q, k).
        depth: how many rows a search looks at.
        threads: how many share the rows.
        pause: called between parts of the work.
    """
    s = rows.shape[1]
    asked, codes = packed_codes(queries, bits), packed_codes(rows, bits)
    found = np.full(neighbours.shape, depth, np.int64)
    for start in range(0, len(queries), _QUERIES_PER_BLOCK):
        some = slice(start, start + _QUERIES_PER_BLOCK)
        slots = nearest(asked[some], codes, s, bits, depth, threads=threads, pause=pause).slots
        for i, (of_query, wanted) in enumerate(zip(slots, neighbours[some], strict=True), start):
            order = np.argsort(of_query, kind="stable")
            at = np.searchsorted(of_query, wanted, sorter=order)
            at = order[np.minimum(at, len(order) - 1)]
            found[i] = np.where(of_query[at] == wanted, at, depth)
    return found


def found_by_depth(places: Whole, depth: int) -> Matrix:
    """The share of each query's neighbours that stand before place 1, 2, … `depth`, (q, depth)."""
    q, k = places.shape
    counts = np.zeros((q, depth + 1))
    np.add.at(counts, (np.arange(q)[:, None], places), 1)
    shares: Matrix = counts[:, :depth].cumsum(axis=1) / k
    return shares


# Each part is timed for so many queries: the median is not that of one that was disturbed.
_QUERIES = 15
# A search looks at some part of the rows at the most, in no order.
_PART = 10
_LONG = 32


def measure_costs(queries: HashBytes, rows: HashBytes, bits: int, k: int, seed: int, threads: int) -> Costs:
    """Nanoseconds of a search of one row, of comparing one more, in its turn or anywhere, and of looking a band up."""
    n, s = rows.shape
    asked, codes = packed_codes(queries[:_QUERIES], bits), packed_codes(rows, bits)
    few = np.random.Generator(np.random.PCG64(seed)).permutation(n)[: max(1, n // _PART)]

    def of_search(slots: Whole | None) -> float:
        return _median(lambda i: nearest(asked[i : i + 1], codes, s, bits, k, slots, threads=threads), len(asked))

    def of_lookup(bands: Banding) -> tuple[float, float]:
        """Of looking the bands of a query up, and how many rows that gives."""
        words = np.ascontiguousarray(bucket_words(asked, bits, bands).T)
        candidates = Candidates(tuple(segment(codes[some], bits, bands) for some in row_blocks(n, SEGMENT)), n)

        def look_up(i: int) -> Whole:
            return candidates.of(candidates.buckets(words[i]))

        found = [len(look_up(i)) for i in range(len(words))]
        return _median(look_up, len(words)), float(np.median(found))

    of_one, of_few, of_all = of_search(few[:1]), of_search(few), of_search(None)
    # Long bands have few rows, and one hash has many.
    long = Banding(max(1, s // _LONG), min(s, _LONG))
    (of_bands, _), (of_hash, collected) = of_lookup(long), of_lookup(Banding(1, 1))
    band = of_bands / long.bands
    compared, taken = max(0.0, of_few - of_one) / len(few), max(0.0, of_hash - band) / max(1.0, collected)
    return Costs(search=of_one, scanned_row=max(0.0, of_all - of_one) / n, candidate=compared + taken, band=band)


def _median(search: Callable[[int], object], times: int) -> float:
    """The median of the nanoseconds that it takes, for one query after the other."""
    taken = []
    for i in range(times):
        began = time.perf_counter_ns()
        search(i)
        taken.append(time.perf_counter_ns() - began)
    return float(np.median(taken))
