"""Fourier features by a projection and a form, and Gram blocks, computed in blocks of rows and frequencies."""

from collections.abc import Callable
from math import lcm

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Array, Floats, Ready, Rows, row_blocks
from app.core.maps.fourier.forms import FORMS, amplitudes, scale_to_unit_norm, write_columns
from app.core.maps.fourier.projections import Projection
from app.core.maps.terms import Arrays, BaseSpec
from app.core.norms import add_squared_norms
from app.core.panels import add_products
from app.core.progress import Pause
from app.core.threads import for_each

# Rows and frequencies of a block of phases: few enough that phases stay in the cache until cosines are computed.
_ROWS_PER_BLOCK, _FREQUENCIES_PER_BLOCK = 192, 512
# Entries of rows that are made ready at a time, which may copy them.
_ENTRIES_MADE_READY = 1 << 22
# Padding of each row of phases: rows that begin a power of two apart evict each other from the cache.
_BYTES_BETWEEN_ROWS = 64
# Work, counted in products: the least that is worth a thread, and the most that a thread does at a time, some
# milliseconds. A cosine takes as long as `_PRODUCTS_PER_COSINE` products.
_LEAST_STEPS_PER_PART, _MOST_STEPS_PER_PART, _PRODUCTS_PER_COSINE = 1 << 22, 1 << 29, 16
# Frequencies whose features are held at a time for a Gram block.
_FREQUENCIES_HELD = 256
# Slices of frequencies also begin at multiples of 8, as codes pack 8 bits into a byte.
_BITS_PER_BYTE = 8

Use = Callable[[slice, slice, Floats], None]
"""Function that uses the phases of a slice of rows and a slice of k frequencies, in the first k columns of an array."""


class Features:
    """Computes the phases and the features of a map, in blocks of rows on up to `threads` threads.

    No bit of a row's features depends on other rows, on the slice of frequencies, or on the number of threads.
    """

    def __init__(self, spec: BaseSpec, projection: Projection, weights: Array, arrays: Arrays, threads: int) -> None:
        self._projection, self._threads, self._dtype = projection, threads, spec.numpy_dtype
        self.n_frequencies = projection.n_frequencies
        self._columns = FORMS[spec.form]
        self._offsets = arrays["offsets"].astype(np.float64) if "offsets" in arrays else np.zeros(0)
        self._amplitudes = amplitudes(spec, weights)
        self.norms_differ = spec.normalize and self._columns.has_offsets
        """Whether rows must be scaled to unit norm one by one, which `of` does only with `unit_norm`."""
        self.largest = 1.0 if spec.normalize else float(self._amplitudes.max())
        """Upper bound of the absolute value of a feature."""
        self.dtype = np.result_type(spec.numpy_dtype, np.complex64 if self._columns.is_complex else np.float32)
        self.per_frequency = self._columns.per_frequency
        """Number of columns of a frequency."""
        self.nbytes = self._amplitudes.nbytes + self._offsets.nbytes
        """Memory held besides the projection."""

    def align(self, frequencies: int) -> int:
        """Round a number of frequencies up to a multiple of the step at which slices of frequencies may begin."""
        alignment = lcm(self._projection.frequencies_per_block, _BITS_PER_BYTE)
        return -(-frequencies // alignment) * alignment

    @property
    def held(self) -> int:
        """Number of frequencies whose features `gram` holds at a time."""
        return self.align(_FREQUENCIES_HELD)

    def use(self, rows: Rows, frequencies: slice, ready: Ready, use: Use, pause: Pause) -> None:
        """Call `use` with all phases of rows (n, d) and k frequencies, in order for each block of rows."""
        (n, d), k = rows.shape, frequencies.stop - frequencies.start
        step, padding = min(k, self.align(_FREQUENCIES_PER_BLOCK)), _BYTES_BETWEEN_ROWS // self._dtype.itemsize
        per_block = min(_ROWS_PER_BLOCK, self._projection.most_rows)

        def fill(part: slice) -> None:
            phases = np.empty((min(per_block, part.stop - part.start), step + padding), self._dtype)
            for compared in row_blocks(part.stop, _ENTRIES_MADE_READY // d, part.start):
                made = ready(rows[compared], compared.start)
                for block in row_blocks(made.shape[0], per_block):
                    project, of_block = self._projection.projector(made[block]), phases[: block.stop - block.start]
                    for some in row_blocks(k, step):
                        of = slice(frequencies.start + some.start, frequencies.start + some.stop)
                        project(of, of_block)
                        use(slice(compared.start + block.start, compared.start + block.stop), of, of_block)

        # If there is work for several threads, few rows are split evenly among them. Of many rows, each thread takes
        # large parts: where threads synchronise often, the system sometimes lets one wait behind another.
        steps = n * k * _PRODUCTS_PER_COSINE + self._projection.operations(rows) * k // self._projection.n_frequencies
        even = max(n * _LEAST_STEPS_PER_PART // max(1, steps), -(-n // self._threads))
        for_each(fill, row_blocks(n, min(even, n * _MOST_STEPS_PER_PART // max(1, steps))), self._threads, pause)

    def of(self, rows: Rows, frequencies: slice, ready: Ready, pause: Pause, unit_norm: bool = False) -> Array:
        """Compute the features of rows (n, d) and k frequencies, (n, k·per_frequency).

        With `unit_norm`, rows of features are scaled to unit norm.
        """
        k = frequencies.stop - frequencies.start
        features = np.empty((rows.shape[0], k * self.per_frequency), self.dtype)
        numbers = features.view(self._dtype)

        def write(block: slice, of: slice, phases: Floats) -> None:
            factors, offsets, first = self._amplitudes[of], self._offsets[of], of.start - frequencies.start
            write_columns(self._columns.written, phases, offsets, factors, numbers[block], first)
            if unit_norm and of.stop == frequencies.stop:
                scale_to_unit_norm(features[block])

        self.use(rows, frequencies, ready, write, pause)
        return features


def gram(
    features: Features,
    rows: tuple[Rows, Rows],
    ready: tuple[Ready, Ready],
    signature: NDArray[np.int8] | None,
    threads: int,
    pause: Pause,
) -> Array:
    """Compute Σ_l z_l(x) z̄_l(y) of rows x (n, d) and y (m, d), times signature_l if there is one, (n, m).

    The features of all frequencies are never in memory at once. No bit of an entry depends on other rows: the terms
    of each block of frequencies are added as `Panels` adds them, and the blocks in their order.
    """
    n, m = (each.shape[0] for each in rows)
    is_complex = features.dtype.kind == "c"
    sums = [np.zeros((n, m), np.finfo(features.dtype).dtype) for _ in range(3 if is_complex else 1)]
    squares_x, squares_y = np.zeros(n), np.zeros(m)
    for frequencies in row_blocks(features.n_frequencies, features.held):
        of_x, of_y = (features.of(each, frequencies, its, pause) for each, its in zip(rows, ready, strict=True))
        if features.norms_differ:
            add_squared_norms(of_x, squares_x)
            add_squared_norms(of_y, squares_y)
        if signature is not None:
            of_x *= np.tile(signature[frequencies], features.per_frequency)
        for one, products in zip(sums, _products(of_x, of_y), strict=True):
            add_products(one, *products, threads, pause)
    found: Array = sums[0]
    if is_complex:
        found = np.empty((n, m), features.dtype)
        found.real, found.imag = sums[0], sums[1] - sums[2]
    if features.norms_differ:
        # A power of two near the largest, so that no product leaves the range, and that of equal rows stays exact.
        largest = max(squares_x.max(initial=0.0), squares_y.max(initial=0.0))
        unit = np.ldexp(0.5, np.frexp(largest)[1])
        for row, square in zip(found, squares_x / unit, strict=True):
            row /= unit * np.sqrt(square * (squares_y / unit))
    return found


def _products(x: Array, y: Array) -> list[tuple[Floats, Floats]]:
    """Return pairs of real matrices x and y, whose products x yᵀ are summed.

    For complex matrices, the first product is Re(x ȳᵀ), and Im(x ȳᵀ) is the difference of the other two, so that the
    imaginary part of a row with itself is exactly 0.
    """
    if x.dtype.kind != "c":
        return [(x, y)]
    real = np.finfo(x.dtype).dtype
    return [(x.view(real), y.view(real)), (x.imag, y.real), (x.real, y.imag)]
