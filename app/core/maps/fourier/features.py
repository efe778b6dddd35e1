"""Features of rows by a projection and a form: phases of some rows and frequencies, and at once their columns."""

import numpy as np

from app.core.arrays import Array, Rows, row_blocks
from app.core.maps.fourier.forms import FORMS
from app.core.maps.fourier.projection import Projection
from app.core.maps.fourier.sine_cosine import scale_to_unit_norm
from app.core.maps.terms import Arrays, BaseSpec
from app.core.progress import Pause
from app.core.threads import for_each

# Rows and frequencies whose phases are computed at a time: few enough to stay in the cache until the cosine.
_ROWS_PER_BLOCK, _FREQUENCIES_PER_BLOCK = 192, 512
# Products and cosines, each of which takes as long as so many products, that are worth a thread.
_STEPS_PER_THREAD, _PRODUCTS_PER_COSINE = 1 << 23, 32


class Features:
    """Makes the features of a map, in blocks of rows on up to `threads` threads.

    No bit of a row depends on the rows beside it or on the threads.
    """

    def __init__(self, spec: BaseSpec, projection: Projection, weights: Array, arrays: Arrays, threads: int) -> None:
        self._projection, self._columns, self._threads = projection, FORMS[spec.form], threads
        self._dtype = spec.numpy_dtype
        self._offsets = arrays["offsets"].astype(np.float64) if "offsets" in arrays else None
        squared = np.abs(weights).astype(np.float64) * self._columns.squared_amplitude
        if spec.normalize and self._columns.has_one_norm:
            squared /= squared.sum()
        self._amplitudes = np.sqrt(squared).astype(spec.numpy_dtype)
        self.norms_differ = spec.normalize and not self._columns.has_one_norm
        """Whether rows must be scaled to unit norm one by one, which `of` leaves undone unless it is told."""
        self.largest = 1.0 if spec.normalize else float(self._amplitudes.max())
        """No feature is larger."""
        self.dtype = np.result_type(spec.numpy_dtype, np.complex64 if self._columns.is_complex else np.float32)
        self.per_frequency = self._columns.per_frequency
        """Columns of a frequency."""
        self.nbytes = self._amplitudes.nbytes + (0 if self._offsets is None else self._offsets.nbytes)
        """Memory of what is held beside the projection."""
        self.n_frequencies = len(weights)

    def aligned(self, frequencies: int) -> int:
        """The least number from this one on at whose multiples slices of frequencies may begin."""
        alignment = self._projection.frequencies_per_block
        return -(-frequencies // alignment) * alignment

    def of(self, rows: Rows, frequencies: slice, pause: Pause, unit_norm: bool = False) -> Array:
        """The features of prepared rows (n, d) and k frequencies, (n, k·per_frequency), of unit norm if so told."""
        n, k = rows.shape[0], frequencies.stop - frequencies.start
        step = self.aligned(_FREQUENCIES_PER_BLOCK)
        features = np.empty((n, k * self.per_frequency), self.dtype)

        def fill(block: slice) -> None:
            project = self._projection.projector(rows[block])
            for part in row_blocks(k, step):
                of = slice(frequencies.start + part.start, frequencies.start + part.stop)
                phases = np.empty((block.stop - block.start, part.stop - part.start), self._dtype)
                project(of, phases)
                offsets = None if self._offsets is None else self._offsets[of]
                self._columns.fill(features[block], part.start, phases, self._amplitudes[of], offsets)
            if unit_norm:
                scale_to_unit_norm(features[block])

        # Few rows are shared out evenly, if there is work for several threads.
        products = self._projection.operations(rows) * k // self._projection.n_frequencies
        least = n * _STEPS_PER_THREAD // max(1, products + n * k * _PRODUCTS_PER_COSINE)
        most = min(_ROWS_PER_BLOCK, self._projection.most_rows)
        per_block = min(max(least, min(most, -(-n // self._threads))), self._projection.most_rows)
        for_each(fill, row_blocks(n, per_block), self._threads, pause)
        return features
