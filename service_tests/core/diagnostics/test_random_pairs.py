import numpy as np
import pytest

from app.core.diagnostics.base import find_pairs, row_pairs


@pytest.mark.parametrize("n", [2, 3, 100, 1201])
def test_few_rows_give_every_pair_once(n: int) -> None:
    i, j = row_pairs(n, 10**6, 0)
    rows, columns = np.tril_indices(n, -1)
    np.testing.assert_array_equal(i, rows)
    np.testing.assert_array_equal(j, columns)


@pytest.mark.parametrize("n", [50, 20_000])
def test_many_rows_give_pairs_drawn_evenly_and_never_twice(n: int) -> None:
    i, j = row_pairs(n, 1000, 3)
    assert (j >= 0).all()
    assert (j < i).all()
    assert (i < n).all()
    assert len(set(zip(i, j, strict=True))) == 1000
    again, other = row_pairs(n, 1000, 3), row_pairs(n, 1000, 4)
    np.testing.assert_array_equal(again[0], i)
    assert not np.array_equal(other[0], i)
    # The larger of a pair's rows is below n/√2 for half of the pairs; √(¼/1000) = 0.016 is a standard error.
    assert abs(np.mean(i < n / np.sqrt(2)) - 0.5) < 4 * 0.016 + 1 / n


def test_the_ends_of_a_large_triangle_are_numbered_exactly() -> None:
    i = np.arange(1, 10**6)
    first, last = i * (i - 1) // 2, i * (i + 1) // 2 - 1
    for numbers, column in ((first, np.zeros_like(i)), (last, i - 1)):
        rows, columns = find_pairs(numbers)
        np.testing.assert_array_equal(rows, i)
        np.testing.assert_array_equal(columns, column)
