"""Random seeds and pairs of rows for diagnostics, always the same for one seed."""

import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.int64]

SCATTER_PAIRS = 2000
"""About so many pairs are drawn as points of a picture."""


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
