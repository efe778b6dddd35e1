"""What an adviser measures: the rows most similar to queries, what codes find of them, and how long a search takes.

Rows are hashed to a byte a hash, of which shorter and fewer codes are made.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Matrix, Rows, Whole, row_blocks
from app.core.errors import InvalidInput
from app.core.hashing.code_laws import CodeLaw
from app.core.indexes.answer import Costs
from app.core.indexes.band_curves import HashBytes
from app.core.indexes.banding import SEGMENT, Banding, Candidates, bucket_words, segment
from app.core.indexes.search import PackedCodes, nearest
from app.core.maps import FeatureMap
from app.core.progress import Pause, Progress, packed, unpacked

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
    kept |= unpacked(progress.restored())

    def pause() -> None:
        progress.checkpoint(lambda: packed(**kept))

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


def hashed(feature_map: FeatureMap, rows: Rows, pause: Pause) -> HashBytes:
    """The codes of rows that have some, (n, s)."""
    n, s = rows.shape[0], feature_map.n_frequencies
    found, by = np.empty((n, s), np.uint8), law_of(feature_map).encoder
    for block in row_blocks(n, _HASHES_PER_BLOCK // s):
        pause()
        found[block] = by.unpacked(feature_map.codes(rows[block], by, "/dataset", pause), s)
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


def measured(queries: HashBytes, rows: HashBytes, bits: int, k: int, seed: int, threads: int) -> Costs:
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
