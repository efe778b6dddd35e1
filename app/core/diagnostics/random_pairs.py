"""Random seeds and pairs of rows for diagnostics, always the same for one seed; and errors of pairs by their kernel."""

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Matrix

Whole = NDArray[np.int64]

DRAWN_PAIRS = 20_000
"""So many pairs are drawn in a picture of a Gram matrix, or all if there are fewer."""
_STRETCHES = 16


def map_seeds(seed: int, count: int) -> list[int]:
    """Seeds for maps of their own, the first ones the same for any count."""
    return [int(word) for word in np.random.SeedSequence(seed).generate_state(count, np.uint64)]


def row_pairs(n: int, most: int, seed: int) -> tuple[Whole, Whole]:
    """Pairs of rows i > j, each at most once: all n(n − 1)/2 in order, or `most` of them drawn evenly, in order."""
    total = n * (n - 1) // 2
    if total <= most:
        return pairs_numbered(np.arange(total))
    rng = np.random.Generator(np.random.PCG64(seed))
    return pairs_numbered(np.sort(rng.choice(total, most, replace=False, shuffle=False)))


def pairs_numbered(numbers: Whole) -> tuple[Whole, Whole]:
    """Rows i > j of pair number i(i − 1)/2 + j."""
    # The root may be off by rounding.
    i = ((1 + np.sqrt(1 + 8 * numbers.astype(np.float64))) / 2).astype(np.int64)
    i -= i * (i - 1) // 2 > numbers
    i += i * (i + 1) // 2 <= numbers
    return i, numbers - i * (i - 1) // 2


def rms_by_kernel(exact: Matrix, errors: Matrix) -> tuple[list[float], list[float]]:
    """The middles of stretches of the exact kernel, and the root of the mean square error of the pairs in each.

    Stretches have one width; those without a pair are left out.
    """
    if not len(exact):
        return [], []
    least, width = exact.min(), np.ptp(exact) / _STRETCHES
    # Pairs of one kernel, or of kernels nearer than numbers can tell, are one stretch.
    within = np.minimum((exact - least) / (width or 1.0), _STRETCHES - 1).astype(np.int64)
    largest = np.abs(errors).max() or 1.0  # squares of tiny and of huge errors leave the range of float64
    squares = np.bincount(within, np.square(errors / largest), _STRETCHES)
    counts = np.bincount(within, minlength=_STRETCHES)
    known = np.flatnonzero(counts)
    middles = least + (known + 0.5) * width
    return middles.tolist(), (largest * np.sqrt(squares[known] / counts[known])).tolist()
