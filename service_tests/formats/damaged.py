"""Files of which some bytes are spoiled."""

from collections.abc import Callable

import numpy as np

from app.core.errors import InvalidInput, TooLarge


def refusals(read: Callable[[bytes], object], good: bytes, times: int, within: int | None = None) -> int:
    """How many of so many spoiled copies are refused; the others are read."""
    rng, refused = np.random.default_rng(2), 0
    for _ in range(times):
        bad = bytearray(good)
        for place in rng.integers(0, within or len(good), rng.integers(1, 4)):
            bad[place] = rng.choice(np.array([0, 1, 127, 128, 255, rng.integers(0, 256)]))
        try:
            read(bytes(bad))
        except (InvalidInput, TooLarge):
            refused += 1
    return refused
