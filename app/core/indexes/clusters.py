"""Clusters of rows of packed codes, which grow as rows are compared: a union-find, and the loops around it.

`parents` names for each row another of its cluster; the root, which is its first row, names itself.
"""

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Whole
from app.core.compiled import compiled
from app.core.indexes.banding import Codes
from app.core.indexes.scanning import count_differing

Marks = NDArray[np.uint16]

FRONT = 16
"""Rows that are compared together with all that stand behind them: a mark has a bit for each."""
# Bytes of rows that stay in the cache of a processor until a whole front has seen them.
_NEAR_BYTES = 1 << 17


@compiled
def write_roots(parents: Whole, rows: Whole, roots: Whole) -> bool:
    """Write the roots of some rows, and shorten the ways to them; gives whether there are several."""
    several = False
    for i in range(len(rows)):
        row = rows[i]
        while parents[row] != row:
            parents[row] = parents[parents[row]]
            row = parents[row]
        roots[i] = row
        several = several or row != roots[0]
    return several


@compiled
def mark(
    codes: Codes, n_bytes: int, bits: int, most: int, rows: Whole, roots: Whole, first: int, last: int, marks: Marks
) -> int:
    """Mark those of the rows from `first` to `last` that differ from a row of the front in at most `most` hashes.

    The front are the first of `rows`. Each row is compared with those before it that have another root, until it is
    marked for one of them; gives how often.

    Args:
        codes: packed, one row behind the other.
        n_bytes: of a row.
        bits: of a hash.
        most: hashes that may differ.
        rows: the front, and all that are to be compared with it.
        roots: theirs.
        first: counted among `rows`, as `last` is.
        last: behind the last.
        marks: of all `rows`; bit q stands for row q of the front.
    """
    front = min(FRONT, len(rows))
    same = np.zeros(FRONT, np.uint16)
    for q in range(front):
        for p in range(front):
            if roots[p] == roots[q]:
                same[q] |= np.uint16(1 << p)
    per_block = max(1, min(_NEAR_BYTES // n_bytes, last - first))
    near, places, differing = (
        np.empty(per_block, np.int64),
        np.empty(per_block, np.int64),
        np.empty(per_block, np.int64),
    )
    compared = 0
    for start in range(first, last, per_block):
        stop = min(last, start + per_block)
        for j in range(start, stop):
            marks[j] = 0
        for q in range(front):
            n = 0
            for j in range(max(start, q + 1), stop):
                near[n], places[n] = rows[j], j
                n += roots[j] != roots[q] and not marks[j] & same[q]
            count_differing(bits, codes, rows[q] * n_bytes, codes, near[:n], n_bytes, differing)
            for i in range(n):
                if differing[i] <= most:
                    marks[places[i]] |= np.uint16(1 << q)
            compared += n
    return compared


@compiled
def unite(parents: Whole, rows: Whole, marks: Marks) -> None:
    """Make one cluster of each marked row and the rows of the front that it is marked for."""
    pair, roots = np.empty(2, np.int64), np.empty(2, np.int64)
    for j in range(len(rows)):
        q = 0
        while marks[j] >> q:
            if marks[j] >> q & 1:
                pair[0], pair[1] = rows[j], rows[q]
                if write_roots(parents, pair, roots):
                    parents[max(roots[0], roots[1])] = min(roots[0], roots[1])
            q += 1


@compiled
def join_groups(
    codes: Codes, n_bytes: int, bits: int, most: int, parents: Whole, rows: Whole, starts: Whole, ends: Whole
) -> int:
    """Join within some groups of rows all that differ in at most `most` hashes; gives how many pairs were compared."""
    longest = 0
    for g in range(len(starts)):
        longest = max(longest, ends[g] - starts[g])
    roots, marks, compared = np.empty(longest, np.int64), np.empty(longest, np.uint16), 0
    for g in range(len(starts)):
        for start in range(starts[g], ends[g], FRONT):
            left = rows[start : ends[g]]
            n = len(left)
            if not write_roots(parents, left, roots):
                break
            compared += mark(codes, n_bytes, bits, most, left, roots, 0, n, marks)
            unite(parents, left, marks)
    return compared


@compiled
def join_equal(codes: Codes, n_bytes: int, parents: Whole, rows: Whole, words: NDArray[np.uint64]) -> int:
    """Join rows that stand side by side and whose codes are all equal, and keep the first; gives how many are kept.

    Rows of equal codes have equal `words`, and stand in the order of these. Those that are kept come to the front of
    `rows`. Two of equal codes are among them only where another row has the same word by chance, and stands between.
    """
    n = 0
    for i in range(len(rows)):
        is_kept = n == 0 or words[i] != words[i - 1]
        if not is_kept:
            a, b = rows[n - 1] * n_bytes, rows[i] * n_bytes
            for j in range(n_bytes):
                is_kept = is_kept or codes[a + j] != codes[b + j]
        if is_kept:
            rows[n] = rows[i]
            n += 1
        else:
            parents[rows[i]] = rows[n - 1]
    return n
