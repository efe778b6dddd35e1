"""Samples of rows: some rows at a time, so that memory is bounded, and by several threads where that pays."""

from collections.abc import Callable, Iterator
from math import prod

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Rows, named, row_blocks
from app.core.errors import InvalidInput
from app.core.hashing.encodings import Codes, Samples
from app.core.hashing.entries import entries
from app.core.hashing.parameters import parameters
from app.core.kernels.gmm import GeneralizedMinMax
from app.core.progress import Pause, no_pause
from app.core.threads import for_each

STEPS_PER_THREAD = 1 << 20
"""Hashes of entries, or comparisons, that are not worth a second thread."""


class RowSampler:
    """Samples (i*, t*) of rows, the same for any number of threads.

    There are s hashes of rows (n, input_dim); a call may use up to `threads` threads.
    """

    def __init__(self, kernel: GeneralizedMinMax, seed: int, input_dim: int, s: int, threads: int) -> None:
        self.kernel, self._input_dim, self._s = kernel, input_dim, s
        self._parameters = parameters(seed, 2 * input_dim, s, threads)
        self.nbytes = self._parameters.nbytes
        """Memory held."""

    def samples(self, rows: Rows, hashes: slice, pause: Pause = no_pause) -> Samples:
        """Samples of the rows (n, d), (n, hashes, 2), −1 for a row without one."""
        samples = np.empty((rows.shape[0], hashes.stop - hashes.start, 2), np.int64)
        self.use_blocks(rows, hashes, samples.__setitem__, pause)
        return samples

    def use_blocks(self, rows: Rows, hashes: slice, use: Callable[[slice, Samples], None], pause: Pause) -> None:
        """Call `use` with every block of rows and its samples (rows, hashes, 2), −1 for a row without one."""
        n_hashes = hashes.stop - hashes.start
        threads = self._parameters.blocks_at_once if self._n_entries(rows) * n_hashes > STEPS_PER_THREAD else 1

        def work(block: slice) -> None:
            found = entries(rows[block], self.kernel)
            use(block, self._parameters.samples(found, block.stop - block.start, hashes, pause))

        for_each(work, self.blocks(rows, n_hashes, threads), threads, pause)

    def blocks(self, rows: Rows, n_hashes: int = 1, threads: int = 1) -> Iterator[slice]:
        """Blocks of rows of bounded memory for entries and samples, one or more for each thread."""
        n, held = rows.shape[0], self._parameters
        by_entries = held.entries_per_block * n // max(1, self._n_entries(rows))
        return row_blocks(n, min(by_entries, held.samples_per_block // n_hashes, -(-n // threads)))

    def operations(self, rows: Rows) -> int:
        """Multiplications of a matrix product that take as long as sampling the rows."""
        held, n_entries = self._parameters, self._n_entries(rows)
        n_blocks = sum(1 for _ in self.blocks(rows, self._s))
        draws = min(n_entries, 2 * self._input_dim * n_blocks)
        return (held.operations_per_hash * n_entries + held.operations_per_draw * draws) * self._s

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
