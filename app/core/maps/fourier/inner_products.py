"""Gram blocks of features, summed over blocks of frequencies."""

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Array, Floats, Rows, row_blocks
from app.core.maps.fourier.features import Features
from app.core.norms import add_squared_norms
from app.core.panels import add_products
from app.core.progress import Pause

# Frequencies whose features are held at a time.
_FREQUENCIES_PER_BLOCK = 256


def gram(features: Features, x: Rows, y: Rows, signature: NDArray[np.int8] | None, threads: int, pause: Pause) -> Array:
    """Σ_l z_l(x) z̄_l(y) of prepared rows (n, d) and (m, d), times the signature_l if there are any, (n, m).

    The features of all frequencies never stand in memory at once. No bit of an entry depends on other rows: the terms
    of each block of frequencies are added as `Panels` adds them, and the blocks in their order.
    """
    n, m = x.shape[0], y.shape[0]
    is_complex = features.dtype.kind == "c"
    sums = [np.zeros((n, m), np.finfo(features.dtype).dtype) for _ in range(3 if is_complex else 1)]
    squares_x, squares_y = np.zeros(n), np.zeros(m)
    for frequencies in row_blocks(features.n_frequencies, features.aligned(_FREQUENCIES_PER_BLOCK)):
        of_x, of_y = (features.of(rows, frequencies, pause) for rows in (x, y))
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
        for row, square in zip(found, squares_x, strict=True):
            row /= np.sqrt(square * squares_y)
    return found


def _products(x: Array, y: Array) -> list[tuple[Floats, Floats]]:
    """Real matrices whose products x yᵀ are summed: for complex ones Re(x ȳᵀ), and Im(x ȳᵀ) as a difference of two.

    So the imaginary part of a row with itself is exactly 0.
    """
    if x.dtype.kind != "c":
        return [(x, y)]
    real = np.finfo(x.dtype).dtype
    return [(x.view(real), y.view(real)), (x.imag, y.real), (x.real, y.imag)]
