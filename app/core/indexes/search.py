"""Search for the vectors of an index nearest to queries, among all vectors or those that share a bucket.

The nearest vectors are the rows of packed codes that agree with a query in the most hashes.
"""

from collections.abc import Callable, Iterator
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from app.core.arrays import Whole, row_blocks
from app.core.compiled import jit
from app.core.indexes.banding import MANY, Candidates, Codes, Image, Layout, Words, bucket_words, unwritable
from app.core.progress import Pause, no_pause
from app.core.threads import for_each
from app.core.tiles import place

# Bytes compared at a time, as long as this many are left; then hash by hash, or byte by byte.
_WIDTHS = (64, 8)
_WHOLE = ir.IntType(64)


def differences(bits: int) -> Callable[..., int]:
    """Return a function that counts in how many hashes of `bits` bits, 1, 2, 4, 8 or 16, two rows differ.

    Its arguments: an array of bytes, (any,) uint8, and where the first row begins in it; the same for the second row;
    and the number of bytes of a row.
    """

    @intrinsic
    def count(_: Any, x: Any, of_x: Any, y: Any, of_y: Any, n_bytes: Any) -> tuple[Any, Any]:
        given = (x, of_x, y, of_y, n_bytes)

        def generate(context: Any, builder: Any, _: Any, passed: Any) -> Any:
            rows = [place(context, builder, given[k], passed[k], passed[k + 1]) for k in (0, 2)]
            with builder.goto_entry_block():
                total = builder.alloca(_WHOLE)
            builder.store(_WHOLE(0), total)
            done = _WHOLE(0)
            for width in (*_WIDTHS, max(1, bits // 8)):
                steps = builder.udiv(builder.sub(passed[4], done), _WHOLE(width))
                with cgutils.for_range(builder, steps) as loop:
                    at = builder.add(done, builder.mul(loop.index, _WHOLE(width)))
                    found = _unequal(builder, bits, *(_load_word(builder, row, at, bits, width) for row in rows))
                    builder.store(builder.add(builder.load(total), found), total)
                done = builder.add(done, builder.mul(steps, _WHOLE(width)))
            return builder.load(total)

        return types.int64(*given), generate

    made: Callable[..., int] = count
    return made


def _load_word(builder: Any, row: Any, at: Any, bits: int, width: int) -> Any:
    """Load bytes of a row as a vector of hashes, or of words if a byte has several hashes; or as a single one."""
    lane = bits if bits >= 8 else min(64, 8 * width)
    count = 8 * width // lane
    kind = ir.IntType(lane) if count == 1 else ir.VectorType(ir.IntType(lane), count)
    return builder.load(builder.bitcast(builder.gep(row, [at]), kind.as_pointer()), align=1)


def _unequal(builder: Any, bits: int, x: Any, y: Any) -> Any:
    """Count the hashes that differ."""
    if bits >= 8:
        unequal = builder.icmp_unsigned("!=", x, y)
        if isinstance(x.type, ir.VectorType):
            unequal = builder.bitcast(unequal, ir.IntType(x.type.count))
        return _as_whole(builder, builder.ctpop(unequal))
    found = builder.xor(x, y)
    # The lowest bit of a hash becomes 1 if any of its bits is 1.
    for shift in (1, 2)[: bits.bit_length() - 1]:
        found = builder.or_(found, builder.lshr(found, _everywhere(found.type, shift)))
    word = getattr(found.type, "element", found.type)
    lowest = sum(1 << at for at in range(0, word.width, bits))
    found = builder.and_(found, _everywhere(found.type, lowest))
    if not isinstance(found.type, ir.VectorType):
        return _as_whole(builder, builder.ctpop(found))
    kind, vector = found.type, f"v{found.type.count}i{word.width}"
    ones, add = (
        builder.module.globals.get(name) or ir.Function(builder.module, ir.FunctionType(gives, [kind]), name)
        for name, gives in ((f"llvm.ctpop.{vector}", kind), (f"llvm.vector.reduce.add.{vector}", word))
    )
    return _as_whole(builder, builder.call(add, [builder.call(ones, [found])]))


def _as_whole(builder: Any, count: Any) -> Any:
    return count if count.type == _WHOLE else builder.zext(count, _WHOLE)


def _everywhere(kind: Any, value: int) -> Any:
    return kind([value] * kind.count if isinstance(kind, ir.VectorType) else value)


PackedCodes = NDArray[np.uint8]
Chosen = NDArray[np.bool_]

BITS = (1, 2, 4, 8, 16)
"""Numbers of bits that a hash may have, so that packed codes can be compared."""

# Most bytes compared by one thread at a time, a hundredth of a second or less; and the least that are worth a thread.
_MOST_BYTES_PER_PART, _LEAST_BYTES_PER_PART = 1 << 26, 1 << 22
# Queries compared with a row while it is in the cache: loading it from memory takes as long as a few comparisons.
_QUERIES_AT_A_TIME = 16
# Bytes of rows that stay in the cache of a processor while all these queries are compared with them.
_NEAR_BYTES = 1 << 17
# A row is represented by a word: how many hashes differ, then its slot. So the least word is the nearest row, and of
# equally near rows that in the first slot.
_SLOT_BITS = 40

_ONE, _TWO, _FOUR, _EIGHT, _SIXTEEN = (differences(bits) for bits in BITS)


class Nearest(NamedTuple):
    """The rows nearest to q queries, ordered by the number of hashes that agree, largest first, then by slot."""

    slots: Whole
    """(q, k'), where k' is k, or the number of rows if that is less; −1 where there are no more rows."""
    counts: Whole
    """In how many hashes these rows agree, (q, k'); −1 where there are no more rows."""


def nearest(
    queries: PackedCodes,
    codes: PackedCodes,
    s: int,
    bits: int,
    k: int,
    slots: Whole | None = None,
    least: int = 0,
    threads: int = 1,
    pause: Pause = no_pause,
) -> Nearest:
    """Find the k rows of codes that agree with each query in the most hashes.

    Args:
        queries: codes of the encoding `packed`, (q, ⌈s·bits/8⌉). Bits behind the last hash are 0, also in `codes`.
        codes: codes of the rows to search, (n, ⌈s·bits/8⌉), C-contiguous. The slot of a row is its number.
        s: number of hashes of a row.
        bits: bits of a hash, one of `BITS`.
        k: number of rows wanted per query.
        slots: slots to compare, (m,), each once, for all queries; None for all rows.
        least: number of hashes in which a row must agree to be found.
        threads: number of threads that share the rows.
        pause: called between parts of the work.
    """
    if bits not in BITS or s * bits > 8 * codes.shape[1]:
        raise ValueError(f"{s} hashes of {bits} bits do not stand in {codes.shape[1]} bytes")
    n = len(codes) if slots is None else len(slots)
    k, none_differ_more = min(k, n), s - least
    kept = np.full((len(queries), k), (none_differ_more + 1) << _SLOT_BITS)
    # Loops are compiled separately for read-only arrays; all are passed as read-only, so that one version is enough.
    some_slots = np.zeros(0, np.int64) if slots is None else slots.astype(np.int64, copy=False)
    rows = unwritable(codes.reshape(-1)), unwritable(some_slots), bits
    for some in row_blocks(len(queries) if k else 0, _QUERIES_AT_A_TIME):
        asked = unwritable(np.ascontiguousarray(queries[some]))
        _keep_in_parts(asked, rows, kept[some], n, threads, pause)
    kept.sort(axis=1)
    differing = kept >> _SLOT_BITS
    is_there = differing <= none_differ_more
    return Nearest(np.where(is_there, kept & ((1 << _SLOT_BITS) - 1), -1), np.where(is_there, s - differing, -1))


def _keep_in_parts(
    queries: PackedCodes, rows: tuple[PackedCodes, Whole, int], kept: Whole, n: int, threads: int, pause: Pause
) -> None:
    """Compare `n` rows and merge the words of the nearest into `kept`, (q, k), which holds a bound at first."""
    changing = Lock()

    def compare(part: slice) -> None:
        with changing:
            bounds = kept.max(axis=1, keepdims=True)
        found = np.repeat(bounds, min(kept.shape[1], part.stop - part.start), axis=1)
        _keep_nearest(queries, *rows, part.start, part.stop, found)
        with changing:
            # Copies of the bound duplicate no row: of all words equal to it, at most one is among the k least.
            kept[:] = np.partition(np.concatenate([kept, found], axis=1), kept.shape[1] - 1)[:, : kept.shape[1]]

    even = max(_LEAST_BYTES_PER_PART // queries.size, -(-n // threads))
    for_each(compare, row_blocks(n, min(_MOST_BYTES_PER_PART // queries.size, even)), threads, pause)


@jit
def _keep_nearest(
    queries: PackedCodes, codes: PackedCodes, slots: Whole, bits: int, first: int, last: int, kept: Whole
) -> None:
    """Keep the words of the nearest rows from `first` to `last`: per query, a heap with the farthest row first.

    Empty `slots` stand for all rows.
    """
    some, n_bytes = len(slots) > 0, queries.shape[1]
    query_bytes = queries.reshape(-1)
    per_block = max(1, _NEAR_BYTES // n_bytes)
    near, differing = np.empty(per_block, np.int64), np.empty(per_block, np.int64)
    for start in range(first, last, per_block):
        n = min(last, start + per_block) - start
        for j in range(n):
            near[j] = slots[start + j] if some else start + j
        for i in range(len(queries)):
            count_differing(bits, query_bytes, i * n_bytes, codes, near[:n], n_bytes, differing)
            bound = kept[i, 0]
            for j in range(n):
                word = differing[j] << _SLOT_BITS | near[j]
                if word < bound:
                    _replace_farthest(kept[i], word)
                    bound = kept[i, 0]


@jit
def count_differing(
    bits: int, query: PackedCodes, at: int, codes: PackedCodes, slots: Whole, n_bytes: int, found: Whole
) -> None:
    """Write how many hashes differ between a query and the rows in some slots."""
    # One loop for each number of bits: a choice inside the loop would take longer than a comparison.
    if bits == 1:
        for j in range(len(slots)):
            found[j] = _ONE(query, at, codes, slots[j] * n_bytes, n_bytes)
    elif bits == 2:
        for j in range(len(slots)):
            found[j] = _TWO(query, at, codes, slots[j] * n_bytes, n_bytes)
    elif bits == 4:
        for j in range(len(slots)):
            found[j] = _FOUR(query, at, codes, slots[j] * n_bytes, n_bytes)
    elif bits == 8:
        for j in range(len(slots)):
            found[j] = _EIGHT(query, at, codes, slots[j] * n_bytes, n_bytes)
    else:
        for j in range(len(slots)):
            found[j] = _SIXTEEN(query, at, codes, slots[j] * n_bytes, n_bytes)


@jit
def _replace_farthest(heap: Whole, word: int) -> None:
    """Replace the first word of a heap, in which no word is less than its two children."""
    k, at = len(heap), 0
    while 2 * at + 1 < k:
        child = 2 * at + 1
        if child + 1 < k and heap[child + 1] > heap[child]:
            child += 1
        if heap[child] <= word:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = word


class Hits(NamedTuple):
    """Vectors found for a query, best first."""

    slots: Whole
    counts: Whole
    """In how many codes each vector agrees with the query."""
    candidates: int
    """Number of vectors that were compared with the query."""
    scanned: bool
    """Whether these were all vectors that fit, and not only those in the buckets of the query."""


# A search for vectors with a tag scans all that fit, if these are few: that takes no longer than to look at buckets.
# It scans up to so many bytes of codes if the buckets hold fewer than k that fit.
_FEW, MOST_SCANNED = 1 << 14, 1 << 27


def search(
    image: Image,
    layout: Layout,
    queries: Codes,
    k: int,
    least: int = 0,
    mask: Chosen | None = None,
    scan: bool = False,
    threads: int = 1,
    pause: Pause = no_pause,
    enough: int | None = None,
) -> Iterator[Hits]:
    """Yield, query by query, the k vectors that agree in the most codes with it.

    A query whose buckets hold many of the vectors is compared with all vectors in order, which is faster. If a mask is
    given, all vectors that it allows are compared where these are few, or where the buckets hold too few of them.

    Args:
        image: snapshot of the index.
        layout: how the index stores its vectors.
        queries: packed codes of the queries, (q, code bytes).
        k: most vectors per query.
        least: number of codes in which a vector must agree.
        mask: whether each vector may be found, (n,); None for all vectors.
        scan: whether to compare all vectors, even if there are buckets.
        threads: most threads to use.
        pause: called between steps.
        enough: vectors in buckets that are enough if a mask is given; None for k.
    """
    fitting = None if mask is None else np.flatnonzero(mask)
    n = image.size if fitting is None else len(fitting)

    def compare(some: Codes, slots: Whole | None) -> Iterator[Hits]:
        found = nearest(some, image.codes, layout.s, layout.bits, k, slots, least, threads, pause)
        compared = n if slots is None else len(slots)
        for row, counts in zip(found.slots, found.counts, strict=True):
            there = row >= 0
            yield Hits(row[there], counts[there], compared, scanned=slots is fitting)

    if layout.banding is None or scan or (fitting is not None and n <= _FEW):
        yield from compare(queries, fitting)
        return
    candidates = Candidates(image.segments, image.size)
    words = bucket_words(queries, layout.s, layout.bits, layout.banding)
    for i in range(len(queries)):
        query, slots = queries[i : i + 1], _slots(candidates, np.ascontiguousarray(words[:, i]), image.size)
        if slots is not None and mask is not None:
            slots = slots[mask[slots]]
        (hits,) = compare(query, fitting if slots is None else slots)
        has_few = not hits.scanned and len(hits.slots) < min(enough or k, n)
        if fitting is not None and has_few and n * layout.code_bytes <= MOST_SCANNED:
            (hits,) = compare(query, fitting)
        yield hits


def _slots(candidates: Candidates, words: Words, size: int) -> Whole | None:
    """Return the slots in the buckets of a query with the words (bands,); None, for all slots, if these are many."""
    buckets = candidates.buckets(words)
    if (buckets[:, 1] - buckets[:, 0]).sum() > size:  # a slot in several buckets counts in each
        return None
    slots = candidates.of(buckets)
    return None if len(slots) * MANY > size else slots
