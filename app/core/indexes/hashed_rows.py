"""Measurements for advice: true neighbours of queries, how many of them codes find, and how long a search takes.

Rows are hashed to one byte per hash, from which shorter and fewer codes are made. The first band in which two rows
agree is found from runs of hashes that agree, for bands of every number of hashes.
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
"""Codes of a byte or less, one byte per hash."""
Words = NDArray[np.uint64]

_PER_WORD = 64


def in_words(codes: HashBytes, fill: int) -> HashBytes:
    """Pad codes (n, s) to (n, a multiple of 64); codes padded with different numbers do not agree in the padding."""
    n, s = codes.shape
    found = np.full((n, -(-s // _PER_WORD) * _PER_WORD), fill, np.uint8)
    found[:, :s] = codes
    return found


def starts_of_bands(s: int, most: int) -> Words:
    """Return which of s hashes begin a band of r hashes, for r from 1 to `most`, as bits of words, (most, words)."""
    found = np.zeros((most, -(-s // _PER_WORD)), np.uint64)
    for r in range(1, most + 1):
        starts = np.arange(0, s - r + 1, r)
        np.bitwise_or.at(found[r - 1], starts // _PER_WORD, np.uint64(1) << (starts % _PER_WORD).astype(np.uint64))
    return found


@intrinsic
def _equal_in(_: Any, x: Any, of_x: Any, y: Any, of_y: Any) -> tuple[Any, Any]:
    """Compare 64 bytes; return which are equal, as the bits of a word."""
    given = (x, of_x, y, of_y)

    def generate(context: Any, builder: Any, _: Any, passed: Any) -> Any:
        kind = ir.VectorType(ir.IntType(8), _PER_WORD).as_pointer()
        places = [place(context, builder, given[k], passed[k], passed[k + 1]) for k in (0, 2)]
        of_both = [builder.load(builder.bitcast(one, kind), align=1) for one in places]
        return builder.bitcast(builder.icmp_unsigned("==", *of_both), ir.IntType(_PER_WORD))

    return types.uint64(*given), generate


@intrinsic
def _lowest_in(_: Any, word: Any) -> tuple[Any, Any]:
    """Return the number of the lowest bit that is 1."""
    return types.int64(word), lambda _, builder, __, passed: builder.cttz(passed[0], ir.IntType(1)(1))


_equal_bytes = cast(Callable[[HashBytes, int, HashBytes, int], np.uint64], _equal_in)
_lowest = cast(Callable[[np.uint64], int], _lowest_in)


@jit
def write_first_bands(
    query: HashBytes, rows: HashBytes, starts: Words, found: Whole, numbers: Whole, counts: Whole
) -> None:
    """Write the first band in which a row agrees with a query in all hashes, or −1, to `found`, (rows, most).

    Args:
        query: codes of the query, (a multiple of 64,), from `in_words`.
        rows: codes of the rows, (rows, the same multiple).
        starts: result of `starts_of_bands`; entry r − 1 of `found` is for bands of r hashes.
        found: receives the first bands.
        numbers: row of `counts` for bands of r hashes, at r − 1, or −1 for none, (most,).
        counts: the number of rows that agree in each band is added to it, (·, bands).
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
                # A run of r hashes agrees if the run of r − 1 does, and the hash r − 1 places further on.
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
"""Numbers of hashes per band that are tried."""

# Different numbers for queries and rows, so that the padding never agrees.
_FILL, _OTHER_FILL = 0, 1


class FirstBands(NamedTuple):
    """For each number of hashes per band, the first band in which a query meets neighbours and other rows.

    A query whose buckets hold many rows after a number of bands is compared with all rows. The last of these bands then
    counts as the first band of every row that agrees in no band before it.
    """

    neighbours: Whole
    """First band in which a query meets a neighbour, −1 for none, (numbers, q, k)."""
    others: Whole
    """Number of pairs of a query and a sampled row that first meet in each band, (numbers, s)."""
    wholes: Whole
    """Band from which on a query is compared with all rows, s if there is none, (numbers, q)."""


def candidate_sizes(s: int) -> tuple[int, ...]:
    """Return the numbers of hashes per band that are tried for s hashes."""
    return tuple(r for r in ROWS_PER_BAND if r <= s)


def predict_share(rates: Matrix, weights: Matrix, bands: int, rows_per_band: int) -> float:
    """Predict the share of pairs that agree in at least one band, 1 − (1 − p^r)^b on average.

    Args:
        rates: p, how often a hash of two rows agrees, (m,).
        weights: number of pairs with each rate, (m,).
        bands: b.
        rows_per_band: r.
    """
    with np.errstate(divide="ignore"):  # at p = 1, where the share is 1
        each = -np.expm1(bands * np.log1p(-(rates**rows_per_band)))
    return float(np.average(each, weights=weights))


def first_bands(
    queries: HashBytes, neighbours: HashBytes, sampled: HashBytes, threads: int, pause: Pause
) -> FirstBands:
    """Find the bands in which queries (q, s) first meet their neighbours (q, k, s) and a sample of rows (m, s).

    All codes are in the order in which they are dealt to bands.
    """
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
    """Return the band at which a search turns to all rows, s for none; see `MANY`.

    Args:
        agreeing: how many of m rows agree with the query in each band, (bands,).
        first: how many of the m rows first agree with it in each band, (s,).
        m: number of rows.
    """
    by_chance = CHANCE * np.arange(1, len(agreeing) + 1)
    entries, rows = np.cumsum(agreeing) / m + by_chance, np.cumsum(first[: len(agreeing)]) / m + by_chance
    turned = np.flatnonzero((entries > 1) | (rows * MANY > 1))
    return int(turned[0]) if turned.size else len(first)


def _come_upon(first: Whole, wholes: Whole, s: int) -> Whole:
    """Return the bands in which rows are first met, −1 for none, (rows, numbers); in bands `wholes`, all rows are."""
    found = np.minimum(np.where(first < 0, s, first), wholes)
    return np.where(found < s, found, -1)


_BINS = 10_000
# Kernels held in memory at a time.
_PAIRS_PER_BLOCK = 1 << 19
_BYTES_PER_PAIR = 40
# Bytes of rows in the form in which they are compared.
_BYTES_PER_BLOCK = 1 << 26


class Neighbours(NamedTuple):
    """Similarities of q queries to n rows."""

    slots: Whole
    """Numbers of the k most similar rows, ascending, (q, k); of equally similar rows, the first are taken."""
    similarities: Matrix
    """Kernels of the queries with these rows, (q, k)."""
    histogram: Whole
    """Number of pairs of a query and a row whose kernel is in each of equal bins of [0, 1]."""

    @property
    def middles(self) -> Matrix:
        """Middles of the bins."""
        n = len(self.histogram)
        return (np.arange(n) + 0.5) / n


def block_bytes(feature_map: FeatureMap, q: int, rows: Rows) -> int:
    """Return the bytes of memory for the rows that are compared at a time with q queries, themselves rows."""
    queries = rows[:q]
    compared = feature_map.kernel.exact_bytes(queries, rows[: _rows_at_once(feature_map, queries, rows)])
    return _BYTES_PER_PAIR * max(_PAIRS_PER_BLOCK, q) + 2 * compared


def _rows_at_once(feature_map: FeatureMap, queries: Rows, rows: Rows) -> int:
    """Return the number of rows to compare at a time; of wide rows that are made dense, few."""
    per_row = 1 + feature_map.kernel.exact_bytes(queries[:1], rows[:1]) // 2
    return max(1, min(_PAIRS_PER_BLOCK // int(queries.shape[0]), _BYTES_PER_BLOCK // per_row))


def true_neighbours(feature_map: FeatureMap, queries: Rows, rows: Rows, k: int, progress: Progress) -> Neighbours:
    """Find the k rows nearest to each query, of all rows; there must be at least k.

    The distance of the k-th neighbour depends on the number of rows. So queries may be a sample, but rows may not.
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

    for block in row_blocks(n, _rows_at_once(feature_map, queries, rows), int(kept["done"])):
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
    """Return which entries are the k largest of each row; of equal ones the first, as in searches by codes."""
    m = similarities.shape[1]
    bound = np.partition(similarities, m - k, axis=1)[:, m - k, None]
    above, equal = similarities > bound, similarities == bound
    found: NDArray[np.bool_] = above | equal & (equal.cumsum(axis=1) <= k - above.sum(axis=1, keepdims=True))
    return found


# Hashes computed between two pauses, some hundredths of a second.
_HASHES_PER_BLOCK = 1 << 19
# Codes packed at a time.
_CODES_PER_BLOCK = 1 << 22


def law_of(feature_map: FeatureMap) -> CodeLaw:
    """Return the collision model of a map's codes; InvalidInput if it has none, or none that estimate its kernel."""
    try:
        return feature_map.code_law("the map")
    except InvalidInput as error:
        raise InvalidInput(error.detail, "/map") from None


def hash_rows(feature_map: FeatureMap, rows: Rows, pause: Pause) -> HashBytes:
    """Compute the codes of rows, (n, s); all rows must have codes."""
    n, s = rows.shape[0], feature_map.n_frequencies
    found, by = np.empty((n, s), np.uint8), law_of(feature_map).encoder
    for block in row_blocks(n, _HASHES_PER_BLOCK // s):
        pause()
        found[block] = by.unpack(feature_map.codes(rows[block], by, "/dataset", pause), s)
    return found


def packed_codes(codes: HashBytes, bits: int) -> PackedCodes:
    """Pack the lowest 1, 2, 4 or 8 bits of codes (n, s) as the encoding `packed` does, (n, ⌈s·bits/8⌉)."""
    n, s = codes.shape
    per_byte = 8 // bits
    found = np.zeros((n, -(-s // per_byte)), np.uint8)
    for block in row_blocks(n, _CODES_PER_BLOCK // s):
        for at in range(per_byte):
            some = codes[block, at::per_byte] & np.uint8((1 << bits) - 1)
            found[block, : some.shape[1]] |= some << np.uint8(at * bits)
    return found


# Queries for which ranks are computed at a time.
_QUERIES_PER_BLOCK = 64


def most_depth(k: int, n: int) -> int:
    """Return the largest number, of those tried, of rows compared exactly after a search for the k nearest of n."""
    return min(n, max(20 * k, 500))


def ranks(
    queries: HashBytes, rows: HashBytes, bits: int, neighbours: Whole, depth: int, threads: int, pause: Pause
) -> Whole:
    """Return each neighbour's rank, from 0 on, (q, k), among the rows whose codes agree most; at most `depth`.

    Args:
        queries: codes of the queries, (q, s).
        rows: codes of all rows, (n, s).
        bits: number of bits of each hash that are compared.
        neighbours: slots of each query's neighbours, (q, k).
        depth: number of rows that a search returns, and the rank of all rows behind these.
        threads: number of threads that share the rows.
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
    """Return the share of each query's neighbours with ranks below 1, 2, … `depth`, (q, depth)."""
    q, k = places.shape
    counts = np.zeros((q, depth + 1))
    np.add.at(counts, (np.arange(q)[:, None], places), 1)
    shares: Matrix = counts[:, :depth].cumsum(axis=1) / k
    return shares


# Number of queries for which each part is timed; their median is robust against disturbances.
_QUERIES = 15
# The timed search of scattered rows looks at one row in this many; long bands have `_LONG` hashes.
_PART = 10
_LONG = 32


def measure_costs(queries: HashBytes, rows: HashBytes, bits: int, k: int, seed: int, threads: int) -> Costs:
    """Measure nanoseconds of a search of one row, of comparing one more, in order or not, and of looking a band up."""
    n, s = rows.shape
    asked, codes = packed_codes(queries[:_QUERIES], bits), packed_codes(rows, bits)
    few = np.random.Generator(np.random.PCG64(seed)).permutation(n)[: max(1, n // _PART)]

    def of_search(slots: Whole | None) -> float:
        return _median(lambda i: nearest(asked[i : i + 1], codes, s, bits, k, slots, threads=threads), len(asked))

    def of_lookup(bands: Banding) -> tuple[float, float]:
        """Return the nanoseconds of looking up the bands of a query, and the number of rows found."""
        words = np.ascontiguousarray(bucket_words(asked, s, bits, bands).T)
        candidates = Candidates(tuple(segment(codes[some], s, bits, bands) for some in row_blocks(n, SEGMENT)), n)

        def look_up(i: int) -> Whole:
            return candidates.of(candidates.buckets(words[i]))

        found = [len(look_up(i)) for i in range(len(words))]
        return _median(look_up, len(words)), float(np.median(found))

    of_one, of_few, of_all = of_search(few[:1]), of_search(few), of_search(None)
    # Buckets of long bands hold few rows, and those of one hash hold many.
    long = Banding(max(1, s // _LONG), min(s, _LONG))
    (of_bands, _), (of_hash, collected) = of_lookup(long), of_lookup(Banding(1, 1))
    band = of_bands / long.bands
    compared, taken = max(0.0, of_few - of_one) / len(few), max(0.0, of_hash - band) / max(1.0, collected)
    return Costs(search=of_one, scanned_row=max(0.0, of_all - of_one) / n, candidate=compared + taken, band=band)


def _median(search: Callable[[int], object], times: int) -> float:
    """Return the median nanoseconds of `search`, called for one query after the other."""
    taken = []
    for i in range(times):
        began = time.perf_counter_ns()
        search(i)
        taken.append(time.perf_counter_ns() - began)
    return float(np.median(taken))
