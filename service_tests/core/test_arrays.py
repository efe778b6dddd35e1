"""The gate: what it refuses, in which words, and what it lets through unchanged."""

import tracemalloc
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from app.core.arrays import Rows, dense, entries_of_rows, entry_blocks, made_dense, row_blocks, split_off, vectors
from app.core.errors import InvalidInput
from service_tests.cases import each

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)


def refused(rows: Any, dtype: np.dtype[Any] = FLOAT32) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        vectors(rows, 4, dtype, "/x")
    return caught.value


@pytest.mark.parametrize("shape", [(), (4,), (2, 4, 1)])
def test_an_array_that_is_no_matrix_is_refused(shape: tuple[int, ...]) -> None:
    error = refused(np.ones(shape))
    assert error.pointer == "/x"
    assert error.detail == f"expected a 2-D array (rows, 4), got shape {shape}"


@pytest.mark.parametrize("width", [0, 3, 5])
def test_rows_of_another_width_are_refused(width: int) -> None:
    for rows in (np.ones((2, width)), sparse.csr_array((2, width), dtype=np.float64)):
        error = refused(rows)
        assert error.pointer == "/x"
        assert error.detail == f"rows have {width} entries; this map takes 4"


@pytest.mark.parametrize("dtype", ["complex64", "longdouble", "object", "U3"])
def test_other_numbers_than_floats_integers_and_booleans_are_refused(dtype: str) -> None:
    error = refused(np.ones((2, 4)).astype(dtype))
    assert error.pointer == "/x"
    assert error.detail.endswith("expected floats, whole numbers or booleans")
    assert str(np.dtype(dtype)) in error.detail


def test_half_precision_is_taken_as_float32() -> None:
    gated = vectors(np.full((2, 4), 0.1, np.float16), 4, FLOAT64)
    assert gated.dtype == np.float32
    np.testing.assert_array_equal(made_dense(gated), np.full((2, 4), np.float16(0.1)))


@each("dtype", [FLOAT32, FLOAT64])
@each("of", ["?", "i1", "u2", ">i4", "<i8", ">u8"])
def test_whole_numbers_are_taken_where_all_are_exact(of: str, dtype: np.dtype[Any]) -> None:
    digits, info = np.finfo(dtype).nmant + 1, None if of == "?" else np.iinfo(of)
    least, most = (0, 1) if info is None else (int(info.min), int(info.max))
    near = [0, 1, -1, least, most, most - 1, least + 1, *(one for k in range(64) for one in (1 << k, -(1 << k)))]
    near += [(1 << k) * odd + d for k in (0, 1, 9, 30) for odd in (1, 3, (1 << digits) - 1) for d in (-1, 0, 1)]
    for number in (one for one in near if least <= one <= most):
        rows = np.zeros((3, 4), of)
        rows[1, 2] = number
        if int(dtype.type(number)) == number:
            gated = vectors(rows, 4, dtype)
            assert gated.dtype == dtype
            assert int(gated[1, 2]) == number
        else:
            error = refused(rows, dtype)
            assert error.pointer == "/x/1/2"
            assert error.detail == f"row 1, column 2 is {number}, which {dtype} would round"
    assert vectors(np.zeros((0, 4), of), 4, dtype).shape == (0, 4)


@each("dtype", [FLOAT32, FLOAT64])
def test_the_bytes_of_rows_are_checked_before_they_are_made(dtype: np.dtype[Any]) -> None:
    for of, counted in (("?", [12 * dtype.itemsize]), ("f4", []), ("f8", [])):
        found: list[int] = []
        vectors(np.ones((3, 4), of), 4, dtype, check=found.append)
        assert found == counted


@each("value", [np.nan, np.inf, -np.inf])
@each("dtype", [FLOAT32, FLOAT64])
def test_an_entry_that_is_not_finite_is_refused_by_row_and_column(value: float, dtype: np.dtype[Any]) -> None:
    rows = np.zeros((6, 4), dtype)
    rows[4, 2] = value
    csr = sparse.csr_array(rows)  # with empty rows before and after
    for posted in (rows, np.asfortranarray(rows), rows.astype(dtype.newbyteorder(">")), csr):
        error = refused(posted, dtype)
        assert error.pointer == "/x/4/2"
        complaint = "is missing; a map with an input" if np.isnan(value) else "is not finite"
        assert error.detail.startswith(f"row 4, column 2 {complaint}")


@pytest.mark.parametrize("value", [3.5e38, -1e300])
def test_a_value_outside_float32_is_refused_by_a_float32_map_only(value: float) -> None:
    rows = np.zeros((3, 4))
    rows[2, 1] = value
    for posted in (rows, sparse.csr_array(rows)):
        error = refused(posted)
        assert error.pointer == "/x/2/1"
        assert error.detail == "row 2, column 1 is outside the range of float32, the dtype of this map"
        assert dense(vectors(posted, 4, FLOAT64))[2, 1] == value


@each("dtype", [FLOAT32, FLOAT64])
@each("posted_as", ["<f4", ">f4", "<f8", ">f8"])
@each("order", ["C", "F", "strided"])
def test_any_order_of_bytes_and_of_axes_gives_the_same_rows(order: str, posted_as: str, dtype: np.dtype[Any]) -> None:
    values = np.random.default_rng(1).normal(size=(5, 4)).astype(np.float32)
    posted = np.asarray(values, dtype=posted_as, order="F" if order == "F" else "C")
    if order == "strided":
        posted = np.repeat(posted, 2, axis=1)[:, ::2]
    gated = vectors(posted, 4, dtype)
    assert isinstance(gated, np.ndarray)
    assert gated.flags.c_contiguous
    assert gated.dtype == np.dtype(posted_as).newbyteorder("=")  # as precise as they came
    assert gated.dtype.isnative
    assert (gated == values).all()


@each(("n", "per_block"), [(10, 3), (9, 3), (2, 5), (0, 4), (4, 0), (4, 1)])
def test_row_blocks_cover_every_row_once_and_in_order(n: int, per_block: int) -> None:
    blocks = list(row_blocks(n, per_block))
    assert [row for block in blocks for row in range(block.start, block.stop)] == list(range(n))
    assert all(0 < block.stop - block.start <= max(1, per_block) for block in blocks)


@pytest.mark.parametrize("most", [1, 7, 100])
def test_blocks_of_entries_cover_all_items_and_hold_no_more_than_they_may(most: int) -> None:
    counts = np.array([3, 0, 0, 9, 1, 1, 5, 0, 40, 2, 7])
    blocks = [*entry_blocks(counts, most)]
    assert [i for block in blocks for i in range(block.start, block.stop)] == [*range(len(counts))]
    assert all(counts[block].sum() <= most or block.stop - block.start == 1 for block in blocks)
    assert all(counts[one.start : other.start + 1].sum() > most for one, other in pairwise(blocks))
    rows = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0]])
    assert entries_of_rows(rows).tolist() == [3, 3]
    assert entries_of_rows(sparse.csr_array(rows)).tolist() == [2, 0]


@pytest.mark.parametrize("column", [0, 3, 6])
def test_a_column_is_split_off_in_memory_of_the_entries(column: int) -> None:
    rng = np.random.default_rng(3)
    rows = sparse.csr_array(rng.random((9, 7)) * (rng.random((9, 7)) < 0.4))
    either: list[Rows] = [rows, rows.toarray()]
    for of in either:
        alone, others = (part if isinstance(part, np.ndarray) else part.toarray() for part in split_off(of, column))
        np.testing.assert_array_equal(alone, rows.toarray()[:, [column]], strict=True)
        np.testing.assert_array_equal(others, np.delete(rows.toarray(), column, axis=1), strict=True)
    wide = sparse.csr_array((rows.data, rows.indices * 300_000_000, rows.indptr), shape=(9, 2_000_000_000))
    tracemalloc.start()
    try:
        assert split_off(wide, column * 300_000_000)[1].shape == (9, 1_999_999_999)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()
