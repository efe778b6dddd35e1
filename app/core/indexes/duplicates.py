"""Clusters of rows whose packed codes agree in so many hashes, or that are joined by such rows; no pair is missed.

Where two rows differ in at most m hashes, one of any m + 1 bands of hashes is the same in both. So rows are sorted by
one band after the other, and compared where they stand together; rows of one cluster are not compared any more. Once
that would be more work than to compare all with all, this is done instead.
"""

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from app.core.arrays import Whole, row_blocks
from app.core.indexes.banding import Codes, mixed_codes
from app.core.indexes.clusters import FRONT, join_equal, join_groups, mark, unite, write_roots
from app.core.indexes.scanning import unwritable
from app.core.progress import Progress, packed, unpacked
from app.core.threads import for_each

BYTES_PER_ROW = 64
"""Memory that the work takes at most, beside the codes."""
# A group of more rows is shared out among threads, one front after the other.
_LARGE = 4096
# Pairs that are compared between two states: some hundredths of a second.
_PAIRS_AT_A_TIME = 1 << 22
# Of its steps.
_STEPS = 1000


class Duplicates(NamedTuple):
    """The clusters that were found."""

    roots: Whole
    """The first row of the cluster of each row, (n,)."""
    compared: int
    """How often two rows were compared; a pair may be in several bands."""

    def clusters(self) -> Iterator[Whole]:
        """The rows of each cluster of two or more, in their order; large clusters first, then by their first row."""
        order = np.argsort(self.roots, kind="stable")
        starts = np.flatnonzero(np.diff(self.roots[order], prepend=-1))
        sizes = np.diff(starts, append=len(order))
        for i in np.argsort(-sizes, kind="stable"):
            if sizes[i] < 2:
                return
            yield order[starts[i] : starts[i] + sizes[i]]


class _Groups(NamedTuple):
    """Rows that are to be compared with each other."""

    rows: Whole
    """Group by group."""
    starts: Whole
    """Of the groups among the rows, short groups first."""
    ends: Whole


class _Place(NamedTuple):
    """How far the work has come: all that lies before is done."""

    band: int = 0
    """That behind the last is of no hashes: all rows share it."""
    turned: int = 0
    """The band that it stood in for."""
    group: int = 0
    """Of the band."""
    row: int = 0
    """Of the group, the first that has not been in a front."""
    compared: int = 0


def duplicates(
    codes: Codes, s: int, bits: int, least: int, threads: int = 1, progress: Progress | None = None
) -> Duplicates:
    """The clusters of rows that agree in `least` hashes or more.

    Args:
        codes: packed, (n, ⌈s·bits/8⌉), C-contiguous. The bits behind the last hash are 0.
        s: how many hashes a row has.
        bits: of a hash.
        least: at least 1.
        threads: how many may be used. The clusters do not depend on it.
        progress: sees how far the work has come, and keeps states to go on from. Those of other codes are no use.
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
        """Do all that an earlier attempt has not done."""
        rows = self._different_rows()
        before = unpacked(self._progress.restored())
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
            # Behind the last of all there is nothing left.
            self._at = _Place(band if band < self._n_bands else band + 1, compared=self._at.compared)
        if self._at.band == self._n_bands:
            self._join(_Groups(rows, np.zeros(1, np.int64), np.full(1, len(rows))))
        roots = np.empty_like(self._parents)
        write_roots(self._parents, np.arange(len(roots)), roots)
        return Duplicates(roots, self._at.compared)

    def _different_rows(self) -> Whole:
        """One of all rows whose codes are equal, which are joined."""
        rows = np.arange(len(self._parents))
        words = mixed_codes(self._rows_of_codes, rows, self._bits, 0, self._s)
        rows = np.argsort(words, kind="stable")
        codes, n_bytes, *_ = self._pairs
        return np.sort(rows[: join_equal(codes, n_bytes, self._parents, rows, words[rows])])

    def _groups(self, rows: Whole, band: int) -> _Groups:
        """The groups of rows that share a band."""
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
        """How many pairs there are in groups of several clusters."""
        roots = np.empty_like(groups.rows)
        write_roots(self._parents, groups.rows, roots)
        several = np.append(False, roots[1:] != roots[:-1]).cumsum()
        sizes = (groups.ends - groups.starts)[several[groups.ends - 1] > several[groups.starts]]
        return int((sizes * (sizes - 1) // 2).sum())

    def _join(self, groups: _Groups) -> None:
        """Join the rows of each group that differ little."""
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
        """Join the rows of a large group, whose comparisons with each front are shared out."""
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
        """Tell how far the work has come, of whose last group n rows are compared, and offer the state of it."""
        share = self._at.band / self._n_bands
        if self._at.band == self._n_bands:
            before = self._at.turned / self._n_bands
            share = before + (1 - before) * (1 - (1 - self._at.row / max(1, n)) ** 2)
        self._progress.report(int(_STEPS * share), _STEPS)
        self._progress.checkpoint(self._state)

    def _state(self) -> bytes:
        return packed(parents=self._parents, at=np.array(self._at), digest=self._digest)
