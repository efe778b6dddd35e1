"""Products of rows with a matrix: right to rounding, and the same bits for a row wherever it stands."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from app.core.arrays import Floats, Rows
from app.core.panels import DEPTH, Panels
from app.core.tiles import COLUMN_BYTES
from service_tests.cases import each

SIZES = [(1, 1), (3, 7), (37, 130), (100, 3), (70, 2 * DEPTH), (65, 3 * DEPTH + 5)]

every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])
every_size = pytest.mark.parametrize(("columns", "d"), SIZES)


def matrix(n: int, d: int, dtype: Any, seed: int, density: float = 1.0) -> Any:
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(n, d)) * (rng.random((n, d)) < density)).astype(dtype)


def product(panels: Panels, rows: Rows, columns: int) -> Floats:
    out = np.empty((rows.shape[0], columns), rows.dtype)
    panels.multiplier(rows)(slice(0, columns), out)
    return out


@every_dtype
@every_size
@each("n", [1, 2, 3, 12, 29])
def test_products_err_by_the_rounding_of_their_terms(n: int, columns: int, d: int, dtype: Any) -> None:
    rows, of = matrix(n, d, dtype, 1), matrix(columns, d, dtype, 2)
    exact = rows.astype(np.longdouble) @ of.T.astype(np.longdouble)
    # Sums of 128 terms, then of the sums: no error is larger than that many roundings of the sum of sizes.
    most = (DEPTH + d / DEPTH) * np.finfo(dtype).eps * (np.abs(rows).astype(np.float64) @ np.abs(of).T) / 2
    found = product(Panels(of), rows, columns)
    assert (np.abs(found - exact) <= most).all()
    assert d == 1 or not (found == exact).all()


@every_dtype
@every_size
def test_a_row_has_the_same_bits_in_any_batch_at_any_place_and_as_sparse_row(columns: int, d: int, dtype: Any) -> None:
    rows, panels = matrix(40, d, dtype, 3, density=0.4), Panels(matrix(columns, d, dtype, 4))
    wanted = product(panels, rows, columns)
    for n in (1, 2, 3, 5, 11, 12, 13, 25):
        for start in (0, 1, 7, 15):
            some = rows[start : start + n]
            assert (product(panels, some, columns) == wanted[start : start + n]).all()
            assert (product(panels, csr_array(some), columns) == wanted[start : start + n]).all()


@every_dtype
@each("density", [1.0, 0.4, 0.1])
@each("share", [1 / 2, 1 / 5, 0])
@each("at_a_time", [100, 500])  # less than a row, and more
def test_a_narrow_matrix_is_not_filled_up_and_gives_the_same_bits(
    monkeypatch: pytest.MonkeyPatch, at_a_time: int, share: float, density: float, dtype: Any
) -> None:
    columns, d = max(1, int(share * COLUMN_BYTES / np.dtype(dtype).itemsize)), 5 * DEPTH + 7
    of, rows = matrix(columns, d, dtype, 1, density), matrix(29, d, dtype, 2, density=0.3)
    rows[7], rows[5, DEPTH : 2 * DEPTH], rows[6, :DEPTH] = 0, 0, 0
    filled_up = Panels(of)
    monkeypatch.setattr("app.core.panels._LINES_AT_A_TIME", DEPTH)
    monkeypatch.setattr("app.core.panels._ENTRIES_AT_A_TIME", at_a_time)
    narrow = Panels(of)
    assert narrow.nbytes < 0.7 * filled_up.nbytes
    assert narrow.operations(rows) == filled_up.operations(rows)
    assert (narrow.matrix == of).all()
    for some in (rows, rows[:2], rows[7:8], csr_array(rows), csr_array(rows[5:9]), csr_array(rows[7:8])):
        assert (product(narrow, some, columns) == product(filled_up, some, columns)).all()
    wanted, found = np.ones((2, 29, columns), dtype)
    filled_up.multiplier(rows)(slice(0, columns), wanted, True)
    narrow.multiplier(rows)(slice(0, columns), found, True)
    assert (found == wanted).all()
    assert (product(Panels(0 * of), rows, columns) == 0).all()


def test_sparse_rows_may_name_their_coordinates_in_any_order() -> None:
    panels = Panels(matrix(20, 300, np.float64, 5))
    mixed = csr_array(([1.0, 2.0, 3.0], [250, 3, 130], [0, 3, 3]), shape=(2, 300))
    found = product(panels, mixed, 20)
    assert (found[0] == product(panels, mixed.toarray(), 20)[0]).all()
    assert (found[1] == 0).all()
    assert mixed.indices.tolist() == [250, 3, 130]


def test_coordinates_in_which_no_column_has_an_entry_take_no_memory() -> None:
    """As of a kernel that is a sum over subsets of coordinates: rows are made dense in theirs alone, some at a time."""
    d, where = 1 << 24, [3, 77, 1 << 20]
    of = np.zeros((2, d), np.float32)
    of[:, where] = [[1, 2, 0], [0, 0, 3]]
    rows = csr_array((np.ones(200, np.float32), np.tile([77, d - 1], 100), range(0, 201, 2)), shape=(100, d))
    panels = Panels(of)
    tracemalloc.start()
    found = product(panels, rows, 2)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
    np.testing.assert_array_equal(found, np.tile([2, 0], (100, 1)))
    assert Panels(np.eye(300, dtype=np.float32)).most_rows < Panels(np.ones((300, 300), np.float32)).most_rows
