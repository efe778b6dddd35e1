"""Samples of rows by their entries: with parameters held in tables, or drawn as their coordinates are met."""

from abc import ABC, abstractmethod
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import row_blocks
from app.core.hashing.encodings import Samples
from app.core.hashing.parameter_stream import sampling_tables
from app.core.hashing.sampling import sample_columns, sample_rows
from app.core.threads import for_each

# Tables up to this size are held.
MOST_TABLE_BYTES = 1 << 28
# Fewer hashes are not worth a thread of their own when they are split.
_LEAST_HASHES = 16


class Entries(NamedTuple):
    """What is not zero after the transform, ordered by row and in it by coordinate i."""

    row: NDArray[np.int64]
    coordinate: NDArray[np.int64]
    logs: NDArray[np.float64]
    """p·log ũ_i."""


class Parameters(ABC):
    """The draws r, c, β of a seed for every coordinate and hash. Which of the two holds them changes no sample."""

    entries_per_block: int
    """How many entries to sample at a time at most."""
    samples_per_block: int
    """How many samples to make at a time at most."""
    operations_per_hash: int
    """Time of the hash of one entry, in multiplications of a matrix product."""
    blocks_at_once: int
    """How many threads may call `samples` at a time."""
    nbytes: int
    """Memory held."""

    @abstractmethod
    def samples(self, entries: Entries, n_rows: int, hashes: slice) -> Samples:
        """(i*, t*) of every row and hash, shape (n_rows, hashes, 2); −1 for a row without entries."""


class HeldParameters(Parameters):
    """All of them in three tables of shape (coordinates, s)."""

    entries_per_block = 1 << 18
    samples_per_block = 1 << 20
    operations_per_hash = 16

    def __init__(self, seed: int, n_coordinates: int, s: int, threads: int) -> None:
        self.blocks_at_once = threads
        self._r, self._log_c, self._beta = (np.empty((n_coordinates, s)) for _ in range(3))
        self.nbytes = 3 * self._r.nbytes

        def fill(block: slice) -> None:
            sampling_tables(np.uint64(seed), block.start, self._r[block], self._log_c[block], self._beta[block])

        for_each(fill, row_blocks(n_coordinates, -(-n_coordinates // threads)), threads)

    def samples(self, entries: Entries, n_rows: int, hashes: slice) -> Samples:
        """Row by row."""
        samples = np.empty((n_rows, hashes.stop - hashes.start, 2), np.int64)
        indptr = np.searchsorted(entries.row, np.arange(n_rows + 1))
        sample_rows(indptr, entries.coordinate, entries.logs, self._r, self._log_c, self._beta, hashes.start, samples)
        return samples


class DrawnParameters(Parameters):
    """None of them kept: each block of rows draws what it needs, once for each coordinate."""

    # The more rows a block has, the fewer coordinates are drawn again in the next one.
    entries_per_block = 1 << 22
    samples_per_block = 1 << 21
    operations_per_hash = 512
    blocks_at_once = 1
    nbytes = 0

    def __init__(self, seed: int, threads: int) -> None:
        self._seed = np.uint64(seed)
        self._threads = threads

    def samples(self, entries: Entries, n_rows: int, hashes: slice) -> Samples:
        """Coordinate by coordinate; the threads share out the hashes, so that none draws what another one draws."""
        order = np.argsort(entries.coordinate, kind="stable")
        by_coordinate = partial(
            sample_columns, rows=entries.row[order], coordinates=entries.coordinate[order], logs=entries.logs[order]
        )
        n_hashes = hashes.stop - hashes.start
        samples = np.empty((n_rows, n_hashes, 2), np.int64)

        def fill(part: slice) -> None:
            index = np.full((n_rows, part.stop - part.start), -1)
            level = np.full(index.shape, -1.0)
            by_coordinate(seed=self._seed, first_hash=hashes.start + part.start, index=index, level=level)
            samples[:, part, 0] = index
            samples[:, part, 1] = level

        for_each(fill, row_blocks(n_hashes, max(_LEAST_HASHES, -(-n_hashes // self._threads))), self._threads)
        return samples


def parameters(seed: int, n_coordinates: int, s: int, threads: int) -> Parameters:
    """Held where the tables are of moderate size, else drawn.

    Args:
        seed: the map's seed.
        n_coordinates: of the transformed vector, 2d.
        s: number of hashes.
        threads: how many may be used at a time.
    """
    if 3 * 8 * n_coordinates * s <= MOST_TABLE_BYTES:
        return HeldParameters(seed, n_coordinates, s, threads)
    return DrawnParameters(seed, threads)
