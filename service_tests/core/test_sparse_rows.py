"""Parts of sparse rows, and sparse rows of the columns that both have."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array

from app.core.sparse_rows import compressed, divide_columns, in_shared_columns, row_numbers, row_sums, stored


def test_columns_that_the_second_has_are_kept_in_their_order() -> None:
    rng = np.random.default_rng(1)
    x, y = (rng.integers(1, 9, (n, 12)) * (rng.random((n, 12)) < 0.3) for n in (7, 3))
    columns = np.flatnonzero(y.any(axis=0))
    assert 2 < len(columns) < 10
    found = in_shared_columns(csr_array(x.astype(np.float32)), csr_array(y.astype(np.float32)))
    assert (found[0].toarray() == x[:, columns]).all()
    assert (found[1].toarray() == y[:, columns]).all()
    assert found[0].dtype == found[1].dtype == np.float64


def test_rows_without_entries_have_no_columns() -> None:
    x, none = csr_array(np.ones((2, 5))), csr_array((3, 5))
    assert [part.shape for part in in_shared_columns(x, none)] == [(2, 0), (3, 0)]
    assert [part.toarray().any() for part in in_shared_columns(none, x)] == [False, True]


def test_entries_are_counted_in_both_forms() -> None:
    x = np.array([[0.0, 2.0], [3.0, 4.0]])
    assert stored(x) == stored(csr_array(x)) == 3


def test_parts_for_loops_are_copies_and_hold_the_rows() -> None:
    x = csr_array(np.array([[0, 2, 0], [0, 0, 0], [3, 0, 4]], np.float32))
    values, columns, ends = compressed(x)
    assert [part.dtype for part in (values, columns, ends)] == [np.float64, np.int64, np.int64]
    assert (csr_array((values, columns, ends), shape=x.shape).toarray() == x.toarray()).all()
    assert not any(np.shares_memory(*both) for both in ((values, x.data), (columns, x.indices), (ends, x.indptr)))
    assert (compressed(x, x.indices + 5)[1] == [6, 5, 7]).all()


@pytest.mark.parametrize("divisors", [np.array(4.0), np.array([2.0, 4.0, 8.0])])
def test_columns_are_divided_alike_in_both_forms(divisors: NDArray[np.float64]) -> None:
    x = np.array([[0.0, 2.0, 1.0], [3.0, 0.0, 4.0]])
    of_dense, of_sparse = x.copy(), csr_array(x)
    divide_columns(of_dense, divisors)
    divide_columns(of_sparse, divisors)
    assert (of_dense == x / divisors).all()
    assert (of_sparse.toarray() == x / divisors).all()


def test_every_stored_entry_has_the_number_of_its_row() -> None:
    x = csr_array(np.array([[0, 2.5, 0], [0, 0, 0], [3, 0, -4]]))
    assert row_numbers(x).tolist() == [0, 2, 2]
    assert row_sums(x).tolist() == [2.5, 0, -1]
    none = row_sums(csr_array((2, 3)))
    assert none.tolist() == [0, 0]
    assert none.dtype == np.float64


def test_sums_are_added_in_the_order_of_the_entries() -> None:
    assert row_sums(csr_array(np.array([[1.0, 1e16, -1e16], [1e16, -1e16, 1.0]]))).tolist() == [0, 1]
