import tracemalloc
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from app.core.datasets import column_ranges, held_out, is_constant, sample_rows


def test_a_sample_is_of_distinct_rows_in_order() -> None:
    for n, count in ((1, 1), (10, 1), (10, 9), (10, 10), (1000, 37)):
        numbers = sample_rows(n, count, 3)
        assert len(numbers) == count
        assert (np.diff(numbers) > 0).all()
        assert numbers[0] >= 0
        assert numbers[-1] < n


def test_a_sample_keeps_from_release_to_release() -> None:
    """Drawn by the first release that had samples."""
    assert sample_rows(100, 5, 0).tolist() == GOLDEN[0]
    assert sample_rows(2000, 5, 1).tolist() == GOLDEN[1]


GOLDEN = [[3, 11, 13, 20, 92], [323, 458, 622, 1329, 1337]]


@pytest.mark.parametrize(
    ("n", "count"),
    [(3_000_000, 1), (3_000_000, 40_000), (3_000_000, 1_500_000), (3_000_000, 2_999_999), (2_100_000, 2_100_000)],
)
def test_rows_of_millions_are_those_of_the_smallest_words(n: int, count: int) -> None:
    words = np.random.PCG64(5).random_raw(n)
    assert np.array_equal(sample_rows(n, count, 5), np.sort(np.argsort(words)[:count]))


@pytest.mark.parametrize("count", [3, 19_999_999])
def test_a_sample_of_millions_takes_little_memory_beside_its_numbers(count: int) -> None:
    tracemalloc.start()
    sample_rows(20_000_000, count, 1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64_000_000 + 8 * count


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ranges_are_those_of_the_columns(dtype: type) -> None:
    rows: Any = np.random.default_rng(1).normal(size=(20, 5)).astype(dtype)
    ranges = column_ranges(rows)
    assert ranges.dtype == dtype
    np.testing.assert_array_equal(ranges, [rows.min(axis=0), rows.max(axis=0)])


def test_what_sparse_rows_do_not_store_is_zero() -> None:
    rows: Any = sparse.csr_array(np.array([[0, 2.0, -3, 0], [0, 1, -4, 5]]))
    np.testing.assert_array_equal(column_ranges(rows), [[0, 1, -4, 0], [0, 2, -3, 5]])
    empty: Any = sparse.csr_array((2, 3), dtype=np.float64)
    np.testing.assert_array_equal(column_ranges(empty), np.zeros((2, 3)))


def test_a_column_is_constant_if_its_numbers_differ_by_few_roundings() -> None:
    reach = np.array([3.0, 3.0, 0.0, 1e-300])
    spread = 2.0**-52 * np.array([29.9, 30.1, 0.0, 1e-300])
    assert is_constant(spread, reach).tolist() == [True, False, True, True]


@pytest.mark.parametrize("count", [0, 1, 7, 20])
def test_every_row_is_held_out_or_not(count: int) -> None:
    others, apart = held_out(20, count, 3)
    assert sorted([*others, *apart]) == list(range(20))
    assert (np.diff(others) > 0).all()
    assert apart.tolist() == (sample_rows(20, count, 3).tolist() if count else [])
