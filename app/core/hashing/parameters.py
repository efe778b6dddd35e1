"""Samples of rows by their entries: with parameters held in tables, or drawn as their coordinates are met."""

from abc import ABC, abstractmethod
from functools import partial
from math import prod

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import row_blocks
from app.core.hashing.encodings import Samples
from app.core.hashing.entries import Entries
from app.core.hashing.sampling import fill_table, sample_columns, sample_rows
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


class Parameters(ABC):
    """The draws r, c, β of a seed for every coordinate and hash. Which of the two holds them changes no sample."""

    entries_per_block: int
    """How many entries to sample at a time at most."""
    samples_per_block: int
    """How many samples to make at a time at most."""
    operations_per_hash = 16
    """Time of the hash of one entry, in multiplications of a matrix product."""
    operations_per_draw: int
    """Time of the draw that the hash of a coordinate met for the first time in a block of rows takes, in the same."""
    blocks_at_once: int
    """How many threads may call `samples` at a time."""
    nbytes: int
    """Memory held."""

    @abstractmethod
    def samples(self, entries: Entries, n_rows: int, hashes: slice, pause: Pause = no_pause) -> Samples:
        """(i*, t*) of every row and hash, shape (n_rows, hashes, 2); −1 for a row without entries.

        Args:
            entries: of the rows.
            n_rows: how many rows.
            hashes: which.
            pause: is called between steps, if the work takes long and `blocks_at_once` is 1.
        """


class HeldParameters(Parameters):
    """All of them in one table of shape (coordinates, 4, s)."""

    # Little enough for the caches, and for two threads beside the result.
    entries_per_block = 1 << 16
    samples_per_block = 1 << 17
    operations_per_draw = 0

    def __init__(self, seed: int, n_coordinates: int, s: int, threads: int) -> None:
        self.blocks_at_once = threads
        self._table = _aligned((n_coordinates, 4, s))
        self.nbytes = self._table.nbytes

        def fill(block: slice) -> None:
            fill_table(np.uint64(seed), block.start, 0, self._table[block])

        for_each(fill, row_blocks(n_coordinates, -(-n_coordinates // threads)), threads)

    def samples(self, entries: Entries, n_rows: int, hashes: slice, pause: Pause = no_pause) -> Samples:
        """Row by row, in a quarter of a second or less."""
        del pause
        samples = np.empty((n_rows, hashes.stop - hashes.start, 2), np.int64)
        sample_rows(entries.indptr, entries.coordinate, entries.logs, self._table, hashes.start, samples)
        return samples


class DrawnParameters(Parameters):
    """None of them kept: each block of rows draws what it needs, once for each coordinate."""

    # The more rows a block has, the fewer coordinates are drawn again in the next one.
    entries_per_block = 1 << 22
    samples_per_block = 1 << 21
    operations_per_draw = 512
    blocks_at_once = 1
    nbytes = 0

    def __init__(self, seed: int, threads: int) -> None:
        self._seed = np.uint64(seed)
        self._threads = threads

    def samples(self, entries: Entries, n_rows: int, hashes: slice, pause: Pause = no_pause) -> Samples:
        """Coordinate by coordinate; the threads share out the hashes, so that none draws what another one draws."""
        order = np.argsort(entries.coordinate, kind="stable")
        row, coordinates = np.repeat(np.arange(n_rows), np.diff(entries.indptr)), entries.coordinate[order]
        by_coordinate = partial(sample_columns, rows=row[order], coordinates=coordinates, logs=entries.logs[order])
        n_hashes = hashes.stop - hashes.start
        samples = np.empty((n_rows, n_hashes, 2), np.int64)

        def fill(part: slice) -> None:
            index = np.full((n_rows, part.stop - part.start), -1)
            level = np.full(index.shape, -1.0)
            by_coordinate(seed=self._seed, first_hash=hashes.start + part.start, index=index, level=level)
            samples[:, part, 0] = index
            samples[:, part, 1] = level

        draws = int(np.count_nonzero(np.diff(coordinates, prepend=-1)))
        steps = max(1, self.operations_per_hash * len(order) + self.operations_per_draw * draws)
        per_part = max(_LEAST_HASHES, min(-(-n_hashes // self._threads), _OPERATIONS_PER_PART // steps))
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


def _aligned(shape: tuple[int, ...]) -> NDArray[np.float64]:
    """An empty array that begins at a cache line, so that no vector register is loaded from two."""
    spare = 64 // 8
    memory = np.empty(prod(shape) + spare)
    first = -memory.ctypes.data // 8 % spare
    return memory[first : first + prod(shape)].reshape(shape)
