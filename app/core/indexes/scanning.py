"""The rows of packed codes that agree with a query in the most hashes; all rows are compared with it, or some."""

from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Array, Whole, row_blocks
from app.core.compiled import compiled
from app.core.indexes.differences import differences
from app.core.progress import Pause, no_pause
from app.core.threads import for_each

PackedCodes = NDArray[np.uint8]
Chosen = NDArray[np.bool_]

BITS = (1, 2, 4, 8, 16)
"""How many bits a hash may have, for codes to be compared as they are packed."""

# What one thread compares at a time, a hundredth of a second or less, and what is worth a thread.
_MOST_BYTES_PER_PART, _LEAST_BYTES_PER_PART = 1 << 26, 1 << 22
# Queries that are compared with a row while it is near: from memory it comes in the time that a few of them take.
_QUERIES_AT_A_TIME = 16
# Bytes of rows that stay in the cache of a processor until all those queries have seen them.
_NEAR_BYTES = 1 << 17
# A row among the nearest is a word: how many hashes differ, and its slot. So the least word is the nearest row, and of
# equal ones that in the first slot.
_SLOT_BITS = 40

_ONE, _TWO, _FOUR, _EIGHT, _SIXTEEN = (differences(bits) for bits in BITS)


class Nearest(NamedTuple):
    """The rows nearest to q queries, those that agree in the most hashes first, and of equal ones the first slot."""

    slots: Whole
    """(q, k'), where k' is k, or the number of rows if that is less; −1 where there are no more."""
    counts: Whole
    """In how many hashes these rows agree, (q, k'); −1 likewise."""


def nearest(
    queries: PackedCodes,
    codes: PackedCodes,
    s: int,
    bits: int,
    k: int,
    slots: Whole | None = None,
    mask: Chosen | None = None,
    least: int = 0,
    threads: int = 1,
    pause: Pause = no_pause,
) -> Nearest:
    """The k rows of codes that agree with each query in the most hashes.

    Args:
        queries: codes of the encoding `packed`, (q, ⌈s·bits/8⌉). The bits behind the last hash are 0, here and below.
        codes: those of the rows that are searched, (n, ⌈s·bits/8⌉), C-contiguous. The slot of a row is its number.
        s: how many hashes a row has.
        bits: of a hash, one of `BITS`.
        k: how many rows are wanted.
        slots: those to compare, (m,), each once, for all queries; without them, all rows.
        mask: whether the row in a slot may be found at all, (n,).
        least: in how many hashes a row must agree to be found.
        threads: how many share the rows.
        pause: called between parts of the work.
    """
    if bits not in BITS or s * bits > 8 * codes.shape[1]:
        raise ValueError(f"{s} hashes of {bits} bits do not stand in {codes.shape[1]} bytes")
    n = len(codes) if slots is None else len(slots)
    k = min(k, n)
    none_differ_more = s - least
    kept = np.full((len(queries), k), (none_differ_more + 1) << _SLOT_BITS)
    if kept.size:
        rows = _Rows(codes, slots, mask, bits)
        for some in row_blocks(len(queries), _QUERIES_AT_A_TIME):
            rows.keep_nearest(np.ascontiguousarray(queries[some]), kept[some], n, threads, pause)
        kept.sort(axis=1)
    differing = kept >> _SLOT_BITS
    is_there = differing <= none_differ_more
    return Nearest(np.where(is_there, kept & ((1 << _SLOT_BITS) - 1), -1), np.where(is_there, s - differing, -1))


class _Rows:
    """The rows that are searched, of at least one byte, in arrays that nobody may write to.

    A loop is compiled for such arrays apart, and others are taken for them. So it is compiled once, whoever comes.
    """

    def __init__(self, codes: PackedCodes, slots: Whole | None, mask: Chosen | None, bits: int) -> None:
        self._codes = unwritable(codes.reshape(-1))
        self._some, self._masked = slots is not None, mask is not None
        self._slots = unwritable(np.zeros(0, np.int64) if slots is None else slots.astype(np.int64, copy=False))
        self._mask = unwritable(np.zeros(0, np.bool_) if mask is None else mask)
        self._bits = bits

    def keep_nearest(self, queries: PackedCodes, kept: Whole, n: int, threads: int, pause: Pause) -> None:
        """Put the words of the nearest rows to `kept`, (q, k), which holds a bound; `n` rows are compared."""
        queries = unwritable(queries)
        changing = Lock()

        def compare(part: slice) -> None:
            with changing:
                bounds = kept.max(axis=1, keepdims=True)
            found = np.repeat(bounds, min(kept.shape[1], part.stop - part.start), axis=1)
            given = (self._codes, self._some, self._slots, self._masked, self._mask, self._bits)
            _keep_nearest(queries, *given, part.start, part.stop, found)
            with changing:
                # At most one is a bound that stands for a row twice, and it is left out if the row is not.
                kept[:] = np.partition(np.concatenate([kept, found], axis=1), kept.shape[1] - 1)[:, : kept.shape[1]]

        even = max(_LEAST_BYTES_PER_PART // queries.size, -(-n // threads))
        for_each(compare, row_blocks(n, min(_MOST_BYTES_PER_PART // queries.size, even)), threads, pause)


def unwritable(array: Array) -> Array:
    """The array, not to be written to: loops are compiled for such codes alone."""
    found = array.view()
    found.flags.writeable = False
    return found


@compiled
def _keep_nearest(
    queries: PackedCodes,
    codes: PackedCodes,
    some: bool,
    slots: Whole,
    masked: bool,
    mask: Chosen,
    bits: int,
    first: int,
    last: int,
    kept: Whole,
) -> None:
    """Keep the words of the nearest rows from `first` to `last`, for each query a heap whose first is the farthest."""
    n_bytes = queries.shape[1]
    query_bytes = queries.reshape(-1)
    per_block = max(1, _NEAR_BYTES // n_bytes)
    near, differing = np.empty(per_block, np.int64), np.empty(per_block, np.int64)
    for start in range(first, last, per_block):
        n = 0
        for j in range(start, min(last, start + per_block)):
            slot = slots[j] if some else j
            near[n] = slot
            n += not masked or mask[slot]
        for i in range(len(queries)):
            count_differing(bits, query_bytes, i * n_bytes, codes, near[:n], n_bytes, differing)
            bound = kept[i, 0]
            for j in range(n):
                word = differing[j] << _SLOT_BITS | near[j]
                if word < bound:
                    _replace_farthest(kept[i], word)
                    bound = kept[i, 0]


@compiled
def count_differing(
    bits: int, query: PackedCodes, at: int, codes: PackedCodes, slots: Whole, n_bytes: int, found: Whole
) -> None:
    """Write how many hashes differ between a query and the rows in some slots."""
    # A loop for each number of bits: a choice within it takes longer than a comparison.
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


@compiled
def _replace_farthest(heap: Whole, word: int) -> None:
    """Put a word in place of the first of a heap, in which none is less than its two children."""
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
