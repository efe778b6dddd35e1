"""At which places neighbours stand by their codes, against sorting."""

import numpy as np
import pytest

from app.core.indexes.hashed_rows import found_by_depth, ranks
from app.core.progress import no_pause

RNG = np.random.default_rng(6)


@pytest.mark.parametrize("bits", [1, 4, 8])
def test_places_are_those_of_sorted_counts(bits: int) -> None:
    s, n, depth = 30, 200, 50
    rows, queries = RNG.integers(0, 4, (n, s), np.uint8), RNG.integers(0, 4, (70, s), np.uint8)
    wanted = RNG.integers(0, n, (70, 5))
    mask = (1 << bits) - 1
    counts = ((queries[:, None] & mask) == (rows & mask)).sum(axis=2)
    order = np.argsort(-counts, axis=1, kind="stable")
    places = np.argsort(order, axis=1)
    told = np.minimum(np.take_along_axis(places, wanted, axis=1), depth)
    found = ranks(queries, rows, bits, wanted, depth, 2, no_pause)
    np.testing.assert_array_equal(found, told)
    shares = found_by_depth(found, depth)
    for at in (1, 7, depth):
        np.testing.assert_allclose(shares[:, at - 1], (told < at).mean(axis=1))
