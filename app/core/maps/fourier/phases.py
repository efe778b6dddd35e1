"""Phases of rows by a projection, of some rows and some frequencies at a time."""

from collections.abc import Callable
from math import lcm

import numpy as np

from app.core.arrays import Floats, Rows, row_blocks
from app.core.maps.fourier.projection import Projection
from app.core.maps.terms import BaseSpec
from app.core.progress import Pause
from app.core.threads import for_each

# Rows and frequencies whose phases are computed at a time: few enough to stay in the cache until the cosine.
_ROWS_PER_BLOCK, _FREQUENCIES_PER_BLOCK = 192, 512
# Bytes behind each row of phases: rows that begin a power of two apart keep each other out of the cache.
_BYTES_BETWEEN_ROWS = 64
# Products and cosines, each of which takes as long as so many products, that are worth a thread; and what a thread does
# at a time, some milliseconds.
_LEAST_STEPS_PER_PART, _MOST_STEPS_PER_PART, _PRODUCTS_PER_COSINE = 1 << 22, 1 << 29, 16
# Slices of frequencies begin at multiples of it, too, as their bits are packed.
_BITS_PER_BYTE = 8

Use = Callable[[slice, slice, Floats], None]
"""Takes the phases of a slice of rows and a slice of k frequencies, in the first k columns of an array."""


class Phases:
    """Makes the phases of a map on up to `threads` threads.

    No bit of a phase depends on the rows beside it, on the slice of frequencies, or on the threads.
    """

    def __init__(self, spec: BaseSpec, projection: Projection, threads: int) -> None:
        self._projection, self._threads, self._dtype = projection, threads, spec.numpy_dtype
        self.n_frequencies = projection.n_frequencies

    def aligned(self, frequencies: int) -> int:
        """The least number from this one on at whose multiples slices of frequencies may begin."""
        alignment = lcm(self._projection.frequencies_per_block, _BITS_PER_BYTE)
        return -(-frequencies // alignment) * alignment

    def use(self, rows: Rows, frequencies: slice, use: Use, pause: Pause) -> None:
        """Have all phases of prepared rows (n, d) and k frequencies used: for some rows, all frequencies in order."""
        n, k = rows.shape[0], frequencies.stop - frequencies.start
        step, padding = min(k, self.aligned(_FREQUENCIES_PER_BLOCK)), _BYTES_BETWEEN_ROWS // self._dtype.itemsize
        per_block = min(_ROWS_PER_BLOCK, self._projection.most_rows)

        def fill(part: slice) -> None:
            phases = np.empty((min(per_block, part.stop - part.start), step + padding), self._dtype)
            for block in row_blocks(part.stop, per_block, part.start):
                project, of_block = self._projection.projector(rows[block]), phases[: block.stop - block.start]
                for some in row_blocks(k, step):
                    of = slice(frequencies.start + some.start, frequencies.start + some.stop)
                    project(of, of_block)
                    use(block, of, of_block)

        # Few rows are shared out evenly, if there is work for several threads. A thread does many at a time: where
        # threads meet in between, the system sometimes lets one of them wait behind the other.
        steps = n * k * _PRODUCTS_PER_COSINE + self._projection.operations(rows) * k // self._projection.n_frequencies
        even = max(n * _LEAST_STEPS_PER_PART // max(1, steps), -(-n // self._threads))
        for_each(fill, row_blocks(n, min(even, n * _MOST_STEPS_PER_PART // max(1, steps))), self._threads, pause)
