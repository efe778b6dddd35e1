"""Samples of rows: in blocks of bounded memory, on several threads."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Rows, in_dtype, named, row_blocks
from app.core.errors import InvalidInput
from app.core.hashing.encodings import Codes, Samples
from app.core.hashing.sampling import Entries, entries
from app.core.kernels.gmm import GeneralizedMinMax
from app.core.progress import Pause, no_pause
from app.core.threads import for_each

STEPS_PER_THREAD = 1 << 20
"""Hashes of entries, or comparisons, that are not worth a second thread."""


class Load(NamedTuple):
    """What is to be sampled."""

    n_rows: int
    n_entries: int
    n_coordinates: int
    """How many coordinates the blocks of rows meet, each block for itself."""


class SampleSource(ABC):
    """What makes samples of entries, by draws of its own."""

    entries_per_block: int
    """How many entries to sample at a time at most."""
    samples_per_block: int
    """How many samples to make at a time at most."""
    blocks_at_once: int
    """How many threads may call `samples` at a time."""
    nbytes: int
    """Memory held."""

    @abstractmethod
    def samples(self, entries: Entries, n_rows: int, hashes: slice, pause: Pause = no_pause) -> Samples:
        """(i*, t*) of every row and hash, shape (n_rows, hashes, 2); −1 for a row without entries.

        Where it takes long, it calls `pause` between steps; `blocks_at_once` is then 1.
        """

    @abstractmethod
    def operations(self, load: Load, s: int) -> int:
        """Multiplications of a matrix product that take as long as all s samples of the load."""

    def sampled_with(self, hashes: slice) -> int:
        """How many hashes are sampled where these are asked for."""
        return int(hashes.stop - hashes.start)


class RowSampler:
    """Samples (i*, t*) of s hashes of rows (n, input_dim), rounded to a dtype; the same for any number of threads."""

    def __init__(
        self, kernel: GeneralizedMinMax, source: SampleSource, input_dim: int, s: int, dtype: np.dtype[np.floating]
    ) -> None:
        self.kernel, self._source, self._input_dim, self._s, self._dtype = kernel, source, input_dim, s, dtype
        self.nbytes = source.nbytes
        """Memory held."""

    def samples(self, rows: Rows, hashes: slice, pause: Pause = no_pause) -> Samples:
        """Samples of the rows (n, d), (n, hashes, 2), −1 for a row without one."""
        samples = np.empty((rows.shape[0], hashes.stop - hashes.start, 2), np.int64)
        self.use_blocks(rows, hashes, samples.__setitem__, pause)
        return samples

    def use_blocks(self, rows: Rows, hashes: slice, use: Callable[[slice, Samples], None], pause: Pause) -> None:
        """Call `use` with every block of rows and its samples (rows, hashes, 2), −1 for a row without one."""
        n_hashes = self._source.sampled_with(hashes)
        threads = self._source.blocks_at_once if self._n_entries(rows) * n_hashes > STEPS_PER_THREAD else 1

        def work(block: slice) -> None:
            found = entries(in_dtype(rows[block], self._dtype), self.kernel)
            use(block, self._source.samples(found, block.stop - block.start, hashes, pause))

        for_each(work, self.blocks(rows, n_hashes, threads), threads, pause)

    def blocks(self, rows: Rows, n_hashes: int = 1, threads: int = 1) -> Iterator[slice]:
        """Blocks of rows of bounded memory for entries and samples, one or more for each thread."""
        n, source = rows.shape[0], self._source
        by_entries = source.entries_per_block * n // max(1, self._n_entries(rows))
        return row_blocks(n, min(by_entries, source.samples_per_block // n_hashes, -(-n // threads)))

    def operations(self, rows: Rows) -> int:
        """Multiplications of a matrix product that take as long as sampling the rows."""
        n_entries, n_blocks = self._n_entries(rows), sum(1 for _ in self.blocks(rows, self._s))
        n_coordinates = min(n_entries, 2 * self._input_dim * n_blocks)
        return self._source.operations(Load(rows.shape[0], n_entries, n_coordinates), self._s)

    def _n_entries(self, rows: Rows) -> int:
        return int(rows.size if self.kernel.stays_sparse(rows) else prod(rows.shape))


def refuse_unsampled(codes: Codes, pointer: str) -> None:
    """Raise InvalidInput naming the rows of codes (n, s) or (n, s, 2) that are −1, if there are any."""
    refuse_rows(np.flatnonzero((codes[:, 0] if codes.ndim == 2 else codes[:, 0, 0]) < 0), pointer)


def refuse_rows(rows: NDArray[np.intp], pointer: str) -> None:
    """Raise InvalidInput naming these rows, which have no sample, if there are any; they stood at `pointer`."""
    if rows.size:
        raise InvalidInput(
            f"row {named(rows)} is all zero (after centering), or marked as such by codes of -1: it has no sample, and "
            "the min-max kernel is 0/0",
            f"{pointer}/{rows[0]}",
        )
