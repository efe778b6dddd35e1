"""Samples of rows by darts: in bounded memory, on several threads."""

from math import log

import numpy as np

from app.core.arrays import Matrix, Whole, row_blocks
from app.core.hashing.darts import binary_weights, scales, throw
from app.core.hashing.encodings import Samples
from app.core.hashing.row_samples import Load, SampleSource
from app.core.hashing.sampling import Entries
from app.core.progress import Pause, no_pause
from app.core.threads import for_each

Part = tuple[Whole, Whole, Whole]
"""Numbers of rows, and where the entries of each that are looked at begin and end."""

GROUP = 4096
"""Hashes whose darts are drawn together: their number bounds what is held of a row."""

# Of darts below the first limit of a row, n(log n + the first) are expected: in one row of twenty some hash has none.
# Then limits rise by n times the second, until all have: again in one of twenty.
_SURPLUS, _MORE = 3.0, 3.0
# What one thread does at a time, in entries or hashes: so many rows share cells, and their ranks stay in the cache.
_STEPS_PER_PART = 1 << 16
_MOST_ENTRIES_PER_PART = 1 << 20


class Darts(SampleSource):
    """Darts of a seed; each is drawn anew whenever a row meets it."""

    entries_per_block = 1 << 20
    samples_per_block = 1 << 19
    # These hold for rows that a client has looked for, of which some hash finds its dart at the sixth limit only. Rows
    # as they come take a third of the time.
    operations_per_row = 24_000
    """Time of a row, whatever its entries, in multiplications of a matrix product."""
    operations_per_entry = 8000
    """Time of an entry, whatever the number of hashes, in multiplications of a matrix product."""
    operations_per_dart = 600
    """Time of a dart below the limit of a row, in multiplications of a matrix product."""
    blocks_at_once = 1
    nbytes = 0

    def __init__(self, seed: int, s: int, threads: int) -> None:
        self._seed, self._s, self._threads = np.uint64(seed), s, threads

    def sampled_with(self, hashes: slice) -> int:
        """How many hashes are in the groups of these."""
        return min(self._s, -(-int(hashes.stop) // GROUP) * GROUP) - int(hashes.start) // GROUP * GROUP

    def operations(self, load: Load, s: int) -> int:
        """Time of each row, of some cells of each entry and of the darts of each row, group by group."""
        found = 0.0
        for group in row_blocks(s, GROUP):
            of_row = self.operations_per_row + self.operations_per_dart * _limit(group.stop - group.start)
            found += self.operations_per_entry * load.n_entries + of_row * load.n_rows
        return int(found)

    def samples(self, entries: Entries, n_rows: int, hashes: slice, pause: Pause = no_pause) -> Samples:
        """(i*, t*) of every row and hash, row by row; threads share out the rows."""
        octaves, parts = np.empty(entries.logs.shape, np.int64), np.empty(entries.logs.shape)
        binary_weights(entries.logs, octaves, parts)
        thrown = _Rows(entries.indptr, (entries.coordinate, octaves, parts), self._threads)
        samples = np.full((n_rows, hashes.stop - hashes.start, 2), -1)
        for number in range(hashes.start // GROUP, -(-hashes.stop // GROUP)):
            start, stop = number * GROUP, min(self._s, (number + 1) * GROUP)
            found = thrown.samples((self._seed, number), stop - start, pause)
            first, last = max(start, hashes.start), min(stop, hashes.stop)
            samples[:, first - hashes.start : last - hashes.start] = found[:, first - start : last - start]
        return samples


class _Rows:
    """Rows whose entries are weights: coordinate, octave and part of each."""

    def __init__(self, indptr: Whole, weights: tuple[Whole, Whole, Matrix], threads: int) -> None:
        self._indptr, self._weights, self._threads = indptr, weights, threads
        self._tops, self._sums = np.empty(len(indptr) - 1, np.int64), np.empty(len(indptr) - 1)
        scales(indptr, weights[1], weights[2], self._tops, self._sums)

    def samples(self, key: tuple[np.uint64, int], n_hashes: int, pause: Pause) -> Samples:
        """(i*, t*) of the hashes of a group, (rows, n_hashes, 2); −1 for a row without entries."""
        samples = np.full((len(self._tops), n_hashes, 2), -1)
        left = np.flatnonzero(self._sums)
        seen, limits = np.zeros(len(self._tops)), np.zeros(len(self._tops))
        limits[left] = _limit(n_hashes) / self._sums[left]
        lowest = np.repeat(limits[:, None], n_hashes, axis=1)

        def work(part: Part) -> None:
            entries, rows = self._by_coordinate(part)
            throw(key, entries, rows, self._weights, self._tops, (seen, limits), lowest, samples)

        while left.size:
            together, alone = self._parts(left, n_hashes)
            for_each(work, together, self._threads, pause)
            for_each(work, alone, 1, pause)
            # A hash without a dart looks farther; what others have found stays.
            without = samples[left, :, 0] < 0
            left, without = left[without.any(axis=1)], without[without.any(axis=1)]
            seen[left] = limits[left]
            limits[left] += _MORE * n_hashes / self._sums[left]
            lowest[left] = np.where(without, limits[left, None], lowest[left])
        return samples

    def _by_coordinate(self, part: Part) -> tuple[Whole, Whole]:
        """Numbers of the entries of a part, coordinate by coordinate, and the row of each."""
        rows, begins, ends = part
        counts = ends - begins
        entries = np.arange(counts.sum()) + np.repeat(begins - np.cumsum(counts) + counts, counts)
        if len(rows) == 1:  # in order as they are
            return entries, np.repeat(rows, counts)
        order = np.argsort(self._weights[0][entries])
        return entries[order], np.repeat(rows, counts)[order]

    def _parts(self, rows: Whole, n_hashes: int) -> tuple[list[Part], list[Part]]:
        """Parts of the work on these rows: whole rows, and pieces of long ones, of which one is done after another."""
        begins, ends = self._indptr[rows], self._indptr[rows + 1]
        is_long = ends - begins > _MOST_ENTRIES_PER_PART
        alone = [
            (np.array([row]), np.array([piece.start]), np.array([piece.stop]))
            for row, begin, end in zip(rows[is_long], begins[is_long], ends[is_long], strict=True)
            for piece in (
                slice(at, min(end, at + _MOST_ENTRIES_PER_PART)) for at in range(begin, end, _MOST_ENTRIES_PER_PART)
            )
        ]
        rows, begins, ends = rows[~is_long], begins[~is_long], ends[~is_long]
        steps = np.cumsum(ends - begins + 2 * n_hashes)
        most = max(1, min(_STEPS_PER_PART, -(-int(steps[-1]) // self._threads))) if len(steps) else 1
        starts = np.flatnonzero(np.diff(steps // most, prepend=-1))
        together = zip(*(np.split(array, starts[1:]) for array in (rows, begins, ends)), strict=True)
        return [part for part in together if len(part[0])], alone


def _limit(n_hashes: int) -> float:
    """How many darts of a row are looked at first."""
    return n_hashes * (log(n_hashes) + _SURPLUS)
