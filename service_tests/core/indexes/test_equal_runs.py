"""The first band in which two rows agree, against looking at all bands in NumPy."""

from typing import Any

import numpy as np

from app.core.indexes.hashed_rows import in_words, starts_of_bands, write_first_bands
from service_tests.cases import each

RNG = np.random.default_rng(3)


@each("s", [1, 7, 64, 65, 130, 512])
def test_it_is_that_of_looking_at_all_bands(s: int) -> None:
    most = min(s, 64)
    query = RNG.integers(0, 3, s, np.uint8)
    # From rows that agree nowhere to such that agree everywhere.
    same: Any = RNG.random((60, s)) < np.linspace(0, 1, 60)[:, None] ** 0.3
    rows = np.where(same, query, query + 1).astype(np.uint8)
    found = np.empty((60, most), np.int64)
    numbers, counts = np.arange(most), np.ones((most, s), np.int64)
    numbers[most // 2] = -1
    starts = starts_of_bands(s, most)
    write_first_bands(in_words(query[None], 0)[0], in_words(rows, 1), starts, found, numbers, counts)
    for r in range(1, most + 1):
        whole = same[:, : s // r * r].reshape(60, s // r, r).all(axis=2)
        np.testing.assert_array_equal(found[:, r - 1], np.where(whole.any(axis=1), whole.argmax(axis=1), -1))
        counted = whole.sum(axis=0) if numbers[r - 1] >= 0 else 0
        np.testing.assert_array_equal(counts[r - 1, : s // r] - 1, counted)
    assert (found == -1).any()
    assert (found == 0).any()
