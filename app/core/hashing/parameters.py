"""Samples by GCWS, with parameters that are held in a table or drawn as they are met."""

from math import prod

import numpy as np

from app.core.arrays import Matrix, row_blocks
from app.core.hashing.encodings import Samples
from app.core.hashing.row_samples import Load, SampleSource
from app.core.hashing.sampling import DRAWS, Entries, fill_table, sample_columns, sample_rows
from app.core.progress import Pause, no_pause
from app.core.threads import for_each

# Tables up to this size are held.
MOST_TABLE_BYTES = 1 << 28
# The memory that filling one takes at its most, as a multiple of it.
_TABLES_WHILE_FILLED = 3
# Fewer hashes are not worth a thread of their own when they are split.
_LEAST_HASHES = 16
# What one thread does at a time, if the hashes can be split so finely: a tenth of a second.
_OPERATIONS_PER_PART = 1 << 31


class Parameters(SampleSource):
    """The random parameters r, c, β of a seed for every coordinate and hash; how they are kept changes no sample."""

    operations_per_hash = 16
    """Time of the hash of one entry, in multiplications of a matrix product."""
    operations_per_draw: int
    """Time of drawing the parameters of one coordinate and hash, in multiplications of a matrix product."""

    def operations(self, load: Load, s: int) -> int:
        """Time of the hashes of all entries, and of the draws that they take."""
        return (self.operations_per_hash * load.n_entries + self.operations_per_draw * load.n_coordinates) * s


class HeldParameters(Parameters):
    """Parameters that are drawn once, and held in one table of shape (coordinates, 4, s)."""

    # Little enough for the caches, and for two threads beside the result.
    entries_per_block = 1 << 16
    samples_per_block = 1 << 17
    operations_per_draw = 0

    def __init__(self, seed: int, n_coordinates: int, s: int, threads: int) -> None:
        self.blocks_at_once = threads
        self.table = _aligned((n_coordinates, 4, s))
        """r, 1/r, κ and β of each coordinate and hash."""
        self.nbytes = self.table.nbytes

        def fill(block: slice) -> None:
            fill_table(np.uint64(seed), np.arange(block.start, block.stop), 0, self.table[block])

        for_each(fill, row_blocks(n_coordinates, -(-n_coordinates // threads)), threads)

    def samples(self, entries: Entries, n_rows: int, hashes: slice, pause: Pause = no_pause) -> Samples:
        """(i*, t*) of every row and hash, sampled row by row in a quarter of a second or less."""
        del pause
        samples = np.empty((n_rows, hashes.stop - hashes.start, 2), np.int64)
        sample_rows(entries.indptr, entries.coordinate, entries.logs, self.table, hashes.start, samples)
        return samples


class DrawnParameters(Parameters):
    """Parameters of which none are kept: each block of rows draws those that it needs, once for each coordinate."""

    # The more rows a block has, the fewer coordinates are drawn again in the next one.
    entries_per_block = 1 << 22
    samples_per_block = 1 << 21
    operations_per_draw = 160
    blocks_at_once = 1
    nbytes = 0

    def __init__(self, seed: int, threads: int) -> None:
        self._seed = np.uint64(seed)
        self._threads = threads

    def samples(self, entries: Entries, n_rows: int, hashes: slice, pause: Pause = no_pause) -> Samples:
        """(i*, t*) of every row and hash, coordinate by coordinate; threads share out the hashes, and so the draws."""
        order = np.argsort(entries.coordinate)
        row, logs = np.repeat(np.arange(n_rows), np.diff(entries.indptr))[order], entries.logs[order]
        ordered, n_hashes = entries.coordinate[order], hashes.stop - hashes.start
        starts = np.flatnonzero(np.diff(ordered, prepend=-1))
        coordinates, indptr = ordered[starts], np.append(starts, len(order))
        samples = np.empty((n_rows, n_hashes, 2), np.int64)

        def fill(part: slice) -> None:
            index = np.full((n_rows, part.stop - part.start), -1)
            level = np.full(index.shape, -1.0)
            sample_columns(self._seed, hashes.start + part.start, coordinates, indptr, row, logs, index, level)
            samples[:, part, 0] = index
            samples[:, part, 1] = level

        steps = max(1, self.operations_per_hash * len(order) + self.operations_per_draw * len(coordinates))
        per_part = max(_LEAST_HASHES, min(-(-n_hashes // self._threads), _OPERATIONS_PER_PART // steps, DRAWS))
        for_each(fill, row_blocks(n_hashes, per_part), self._threads, pause)
        return samples


def parameters(seed: int, n_coordinates: int, s: int, threads: int) -> Parameters:
    """The parameters of s hashes of 2d coordinates: held where the table is of moderate size, else drawn."""
    if table_bytes(n_coordinates, s):
        return HeldParameters(seed, n_coordinates, s, threads)
    return DrawnParameters(seed, threads)


def table_bytes(n_coordinates: int, s: int) -> int:
    """Memory of the table that is held; 0 where it would be too large, and the parameters are drawn."""
    nbytes = 4 * 8 * n_coordinates * s
    return nbytes if nbytes <= MOST_TABLE_BYTES else 0


def filling_bytes(n_coordinates: int, s: int) -> int:
    """Memory that filling the table takes at its most, the table among it."""
    return _TABLES_WHILE_FILLED * table_bytes(n_coordinates, s)


def _aligned(shape: tuple[int, ...]) -> Matrix:
    """An empty array that begins at a cache line, so that no vector register is loaded from two."""
    spare = 64 // 8
    memory = np.empty(prod(shape) + spare)
    first = -memory.ctypes.data // 8 % spare
    return memory[first : first + prod(shape)].reshape(shape)
