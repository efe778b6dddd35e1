"""Features of rows by a projection and a form: phases of some rows and frequencies, and at once their columns."""

import numpy as np

from app.core.arrays import Array, Floats, Rows
from app.core.maps.fourier.forms import FORMS, amplitudes
from app.core.maps.fourier.phases import Phases
from app.core.maps.fourier.projection import Projection
from app.core.maps.fourier.sine_cosine import scale_to_unit_norm, write_columns
from app.core.maps.terms import Arrays, BaseSpec
from app.core.progress import Pause


class Features:
    """Makes the features of a map, in blocks of rows on up to `threads` threads.

    No bit of a row depends on the rows beside it or on the threads.
    """

    def __init__(self, spec: BaseSpec, projection: Projection, weights: Array, arrays: Arrays, threads: int) -> None:
        self._phases, self._columns = Phases(spec, projection, threads), FORMS[spec.form]
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
        return self._phases.aligned(frequencies)

    def of(self, rows: Rows, frequencies: slice, pause: Pause, unit_norm: bool = False) -> Array:
        """The features of prepared rows (n, d) and k frequencies, (n, k·per_frequency), of unit norm if so told."""
        k = frequencies.stop - frequencies.start
        features = np.empty((rows.shape[0], k * self.per_frequency), self.dtype)
        numbers = features.view(self._dtype)

        def write(block: slice, of: slice, phases: Floats) -> None:
            factors, offsets, first = self._amplitudes[of], self._offsets[of], of.start - frequencies.start
            write_columns(self._columns.written, phases, offsets, factors, numbers[block], first)
            if unit_norm and of.stop == frequencies.stop:
                scale_to_unit_norm(features[block])

        self._phases.use(rows, frequencies, write, pause)
        return features
