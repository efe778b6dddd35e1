"""Features of rows by a projection and a form: phases of some rows and frequencies, and at once their columns."""

import numpy as np

from app.core.arrays import Array, Rows, row_blocks
from app.core.maps.fourier.forms import FORMS, amplitudes
from app.core.maps.fourier.projection import Projection
from app.core.maps.fourier.sine_cosine import scale_to_unit_norm, write_columns
from app.core.maps.terms import Arrays, BaseSpec
from app.core.progress import Pause
from app.core.threads import for_each

# Rows and frequencies whose phases are computed at a time: few enough to stay in the cache until the cosine.
_ROWS_PER_BLOCK, _FREQUENCIES_PER_BLOCK = 192, 512
# Bytes behind each row of phases: rows that begin a power of two apart keep each other out of the cache.
_BYTES_BETWEEN_ROWS = 64
# Products and cosines, each of which takes as long as so many products, that are worth a thread; and what a thread does
# at a time, some milliseconds.
_LEAST_STEPS_PER_PART, _MOST_STEPS_PER_PART, _PRODUCTS_PER_COSINE = 1 << 22, 1 << 29, 16


class Features:
    """Makes the features of a map, in blocks of rows on up to `threads` threads.

    No bit of a row depends on the rows beside it or on the threads.
    """

    def __init__(self, spec: BaseSpec, projection: Projection, weights: Array, arrays: Arrays, threads: int) -> None:
        self._projection, self._columns, self._threads = projection, FORMS[spec.form], threads
        self._dtype = spec.numpy_dtype
        self._offsets = arrays["offsets"].astype(np.float64) if "offsets" in arrays else np.zeros(0)
        self._amplitudes = amplitudes(spec, weights)
        self.norms_differ = spec.normalize and not self._columns.has_one_norm
        """Whether rows must be scaled to unit norm one by one, which `of` leaves undone unless it is told."""
        self.largest = 1.0 if spec.normalize else float(self._amplitudes.max())
        """No feature is larger."""
        self.dtype = np.result_type(spec.numpy_dtype, np.complex64 if self._columns.is_complex else np.float32)
        self.per_frequency = self._columns.per_frequency
        """Columns of a frequency."""
        self.nbytes = self._amplitudes.nbytes + self._offsets.nbytes
        """Memory of what is held beside the projection."""
        self.n_frequencies = len(weights)

    def aligned(self, frequencies: int) -> int:
        """The least number from this one on at whose multiples slices of frequencies may begin."""
        alignment = self._projection.frequencies_per_block
        return -(-frequencies // alignment) * alignment

    def of(self, rows: Rows, frequencies: slice, pause: Pause, unit_norm: bool = False) -> Array:
        """The features of prepared rows (n, d) and k frequencies, (n, k·per_frequency), of unit norm if so told."""
        n, k = rows.shape[0], frequencies.stop - frequencies.start
        features = np.empty((n, k * self.per_frequency), self.dtype)
        numbers = features.view(self._dtype)
        step, padding = min(k, self.aligned(_FREQUENCIES_PER_BLOCK)), _BYTES_BETWEEN_ROWS // self._dtype.itemsize
        per_block = min(_ROWS_PER_BLOCK, self._projection.most_rows)

        def fill(part: slice) -> None:
            phases = np.empty((min(per_block, part.stop - part.start), step + padding), self._dtype)
            for block in row_blocks(part.stop, per_block, part.start):
                project, of_block = self._projection.projector(rows[block]), phases[: block.stop - block.start]
                for some in row_blocks(k, step):
                    of = slice(frequencies.start + some.start, frequencies.start + some.stop)
                    project(of, of_block)
                    factors, offsets = self._amplitudes[of], self._offsets[of]
                    write_columns(self._columns.written, of_block, offsets, factors, numbers[block], some.start)
                if unit_norm:
                    scale_to_unit_norm(features[block])

        # Few rows are shared out evenly, if there is work for several threads. A thread does many at a time: where
        # threads meet in between, the system sometimes lets one of them wait behind the other.
        steps = n * k * _PRODUCTS_PER_COSINE + self._projection.operations(rows) * k // self._projection.n_frequencies
        even = max(n * _LEAST_STEPS_PER_PART // max(1, steps), -(-n // self._threads))
        for_each(fill, row_blocks(n, min(even, n * _MOST_STEPS_PER_PART // max(1, steps))), self._threads, pause)
        return features
