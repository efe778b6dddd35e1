"""Clusters of near duplicates: rows whose packed codes agree in a number of hashes, or linked by such rows.

No pair is missed. If two rows differ in at most m hashes, one of any m + 1 bands of hashes is the same in both. So rows
are grouped by one band after the other, and compared within groups; rows of one cluster are not compared again. Once
that would be more work than comparing all pairs, all pairs are compared instead.

Clusters grow as rows are compared, in a union-find structure. `parents` holds for each row another row of its cluster;
the root, which is the cluster's first row, points to itself.
"""

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Whole, row_blocks
from app.core.compiled import jit
from app.core.indexes.banding import Codes, mixed_codes, unwritable
from app.core.indexes.search import count_differing
from app.core.progress import Progress, pack_arrays, unpack_arrays
from app.core.threads import for_each

Marks = NDArray[np.uint16]

FRONT = 16
"""Number of rows that are compared together with all rows behind them: a mark has one bit for each."""
# Bytes of rows that stay in the cache of a processor while a whole front is compared with them.
_NEAR_BYTES = 1 << 17


@jit
def write_roots(parents: Whole, rows: Whole, roots: Whole) -> bool:
    """Write the roots of some rows, and shorten the paths to them; return whether there are several roots."""
    several = False
    for i in range(len(rows)):
        row = rows[i]
        while parents[row] != row:
            parents[row] = parents[parents[row]]
            row = parents[row]
        roots[i] = row
        several = several or row != roots[0]
    return several


@jit
def mark(
    codes: Codes, n_bytes: int, bits: int, most: int, rows: Whole, roots: Whole, first: int, last: int, marks: Marks
) -> int:
    """Mark the rows from `first` to `last` that differ from a row of the front in at most `most` hashes.

    The front is the first `FRONT` of `rows`. Each row is compared with rows of the front before it that have another
    root, but not with clusters that it is already marked for. Returns the number of comparisons.

    Args:
        codes: packed codes, one row behind the other.
        n_bytes: bytes of a row.
        bits: bits of a hash.
        most: number of hashes that may differ.
        rows: the front, and all rows to compare with it.
        roots: roots of `rows`.
        first: index of the first row, in `rows`.
        last: index behind the last row, in `rows`.
        marks: marks of all `rows`; bit q stands for row q of the front.
    """
    front = min(FRONT, len(rows))
    same = np.zeros(FRONT, np.uint16)
    for q in range(front):
        for p in range(front):
            if roots[p] == roots[q]:
                same[q] |= np.uint16(1 << p)
    per_block = max(1, min(_NEAR_BYTES // n_bytes, last - first))
    near, places = np.empty(per_block, np.int64), np.empty(per_block, np.int64)
    differing = np.empty(per_block, np.int64)
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


@jit
def unite(parents: Whole, rows: Whole, marks: Marks) -> None:
    """Merge the clusters of each marked row and of the rows of the front that it is marked for."""
    pair, roots = np.empty(2, np.int64), np.empty(2, np.int64)
    for j in range(len(rows)):
        q = 0
        while marks[j] >> q:
            if marks[j] >> q & 1:
                pair[0], pair[1] = rows[j], rows[q]
                if write_roots(parents, pair, roots):
                    parents[max(roots[0], roots[1])] = min(roots[0], roots[1])
            q += 1


@jit
def join_groups(
    codes: Codes, n_bytes: int, bits: int, most: int, parents: Whole, rows: Whole, starts: Whole, ends: Whole
) -> int:
    """Join all rows of a group that differ in at most `most` hashes, for some groups; return the pairs compared."""
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


@jit
def join_equal(codes: Codes, n_bytes: int, parents: Whole, rows: Whole, words: NDArray[np.uint64]) -> int:
    """Join adjacent rows whose codes are all equal, and keep the first; return how many are kept.

    Rows are sorted by `words`, which are equal for equal codes. The rows kept are moved to the front of `rows`. Two of
    them have equal codes only if a row with other codes has the same word by chance, and stands between them.
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


BYTES_PER_ROW = 64
"""Most memory per row that the work takes, in addition to the codes."""
# For a group of more rows, threads share the comparisons with each front.
_LARGE = 4096
# Pairs compared between two checkpoints: some hundredths of a second.
_PAIRS_AT_A_TIME = 1 << 22
# Number of steps in which progress is reported.
_STEPS = 1000


class Duplicates(NamedTuple):
    """The clusters that were found."""

    roots: Whole
    """For each row, the first row of its cluster, (n,)."""
    compared: int
    """Number of comparisons of two rows; a pair may be compared in several bands."""

    def clusters(self) -> Iterator[Whole]:
        """Yield the rows of each cluster of two or more, ascending; large clusters first, then by first row."""
        order = np.argsort(self.roots, kind="stable")
        starts = np.flatnonzero(np.diff(self.roots[order], prepend=-1))
        sizes = np.diff(starts, append=len(order))
        for i in np.argsort(-sizes, kind="stable"):
            if sizes[i] < 2:
                return
            yield order[starts[i] : starts[i] + sizes[i]]


class _Groups(NamedTuple):
    """Groups of rows that are to be compared with each other."""

    rows: Whole
    """Rows, group by group."""
    starts: Whole
    """Starts of the groups in `rows`, short groups first."""
    ends: Whole


class _Place(NamedTuple):
    """Position of the work: everything before it is done."""

    band: int = 0
    """Number of the band. The one behind the last band has no hashes, so that all rows share it."""
    turned: int = 0
    """Band at which the work turned to comparing all pairs."""
    group: int = 0
    """Number of the group in the band."""
    row: int = 0
    """First row of the group that has not been in a front."""
    compared: int = 0


def duplicates(
    codes: Codes, s: int, bits: int, least: int, threads: int = 1, progress: Progress | None = None
) -> Duplicates:
    """Find the clusters of rows that agree in `least` hashes or more.

    Args:
        codes: packed codes, (n, ⌈s·bits/8⌉), C-contiguous. The bits behind the last hash are 0.
        s: number of hashes of a row.
        bits: bits of a hash.
        least: number of hashes that agree, at least 1.
        threads: most threads to use. The clusters do not depend on it.
        progress: receives the progress, and keeps states to go on from. A state of other codes is ignored.
    """
    return _Work(codes, s, bits, s - least, threads, progress or Progress()).done()


class _Work:
    """The search for clusters of rows that differ in at most `most` hashes."""

    def __init__(self, codes: Codes, s: int, bits: int, most: int, threads: int, progress: Progress) -> None:
        self._rows_of_codes, self._s, self._bits = codes, s, bits
        self._n_bands = most + 1
        self._pairs = (unwritable(codes.reshape(-1)), codes.shape[1], bits, most)
        self._threads, self._progress = threads, progress
        self._parents, self._at = np.arange(len(codes)), _Place()
        asked = f"{s} {bits} {most} ".encode()
        self._digest = np.frombuffer(hashlib.sha256(asked + hashlib.sha256(codes.data).digest()).digest(), np.uint8)

    def done(self) -> Duplicates:
        """Do all that an earlier attempt has not done, and return the clusters."""
        rows = self._different_rows()
        before = unpack_arrays(self._progress.restore())
        if before and np.array_equal(before["digest"], self._digest):
            self._parents, self._at = before["parents"], _Place(*before["at"].tolist())
        all_pairs = len(rows) * (len(rows) - 1) // 2
        while self._at.band < self._n_bands:
            groups = self._groups(rows, self._at.band)
            begins = self._at.group == self._at.row == 0
            if begins and self._at.compared + self._pairs_of(groups) >= all_pairs:
                self._at = self._at._replace(band=self._n_bands, turned=self._at.band)
                break
            self._join(groups)
            band = self._at.band + 1
            # After the last band nothing is left, so the comparison of all pairs is skipped.
            self._at = _Place(band if band < self._n_bands else band + 1, compared=self._at.compared)
        if self._at.band == self._n_bands:
            self._join(_Groups(rows, np.zeros(1, np.int64), np.full(1, len(rows))))
        roots = np.empty_like(self._parents)
        write_roots(self._parents, np.arange(len(roots)), roots)
        return Duplicates(roots, self._at.compared)

    def _different_rows(self) -> Whole:
        """Join rows whose codes are equal, and return one row of each such set."""
        rows = np.arange(len(self._parents))
        words = mixed_codes(self._rows_of_codes, rows, self._bits, 0, self._s)
        rows = np.argsort(words, kind="stable")
        codes, n_bytes, *_ = self._pairs
        return np.sort(rows[: join_equal(codes, n_bytes, self._parents, rows, words[rows])])

    def _groups(self, rows: Whole, band: int) -> _Groups:
        """Return the groups of rows that share a band."""
        first, last = (self._s * b // self._n_bands for b in (band, band + 1))
        words = mixed_codes(self._rows_of_codes, rows, self._bits, first, last)
        order = np.argsort(words, kind="stable")
        words, rows = words[order], rows[order]
        starts = np.flatnonzero(np.append(True, words[1:] != words[:-1])[: len(words)])
        ends = np.append(starts[1:], len(words))
        some = np.flatnonzero(ends - starts > 1)
        some = some[np.argsort((ends - starts)[some], kind="stable")]
        return _Groups(rows, starts[some], ends[some])

    def _pairs_of(self, groups: _Groups) -> int:
        """Count the pairs in groups with rows of several clusters."""
        roots = np.empty_like(groups.rows)
        write_roots(self._parents, groups.rows, roots)
        several = np.append(False, roots[1:] != roots[:-1]).cumsum()
        sizes = (groups.ends - groups.starts)[several[groups.ends - 1] > several[groups.starts]]
        return int((sizes * (sizes - 1) // 2).sum())

    def _join(self, groups: _Groups) -> None:
        """Join the rows of each group that differ in few enough hashes."""
        sizes = groups.ends - groups.starts
        n_small = int(np.searchsorted(sizes, _LARGE, side="right"))
        pairs = np.cumsum(sizes[:n_small] ** 2)
        while self._at.group < len(sizes):
            first = self._at.group
            if first >= n_small:
                self._join_large(groups.rows[groups.starts[first] : groups.ends[first]])
                self._at = self._at._replace(group=first + 1, row=0)
                continue
            self._keep_state(len(groups.rows))
            before = pairs[first - 1] if first else 0
            last = max(first + 1, int(np.searchsorted(pairs, before + _PAIRS_AT_A_TIME, side="right")))
            bounds = (np.ascontiguousarray(ends[first:last]) for ends in (groups.starts, groups.ends))
            compared = join_groups(*self._pairs, self._parents, groups.rows, *bounds)
            self._at = self._at._replace(group=last, compared=self._at.compared + compared)

    def _join_large(self, rows: Whole) -> None:
        """Join the rows of a large group; threads share the comparisons with each front."""
        roots, marks = np.empty_like(rows), np.empty(len(rows), np.uint16)
        for start in range(self._at.row, len(rows), FRONT):
            self._keep_state(len(rows))
            left = rows[start:]
            if not write_roots(self._parents, left, roots):
                return
            counts: list[int] = []

            def compare(part: slice, left: Whole = left, counts: list[int] = counts) -> None:
                counts.append(mark(*self._pairs, left, roots, part.start, part.stop, marks))

            at_once = max(_LARGE // 4, -(-len(left) // self._threads))
            for_each(compare, row_blocks(len(left), at_once), self._threads)
            unite(self._parents, left, marks)
            self._at = self._at._replace(row=start + FRONT, compared=self._at.compared + sum(counts))

    def _keep_state(self, n: int) -> None:
        """Report progress, where the present group has n rows, and offer the state for a checkpoint."""
        share = self._at.band / self._n_bands
        if self._at.band == self._n_bands:
            before = self._at.turned / self._n_bands
            share = before + (1 - before) * (1 - (1 - self._at.row / max(1, n)) ** 2)
        self._progress.report(int(_STEPS * share), _STEPS)
        self._progress.checkpoint(self._state)

    def _state(self) -> bytes:
        return pack_arrays(parents=self._parents, at=np.array(self._at), digest=self._digest)
