from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from app.core import arrays
from app.core.arrays import Array, OneHot, RowBlocks, dtype_of, held_bytes, narrow, own_bytes
from app.core.errors import OutOfRange

WHOLE = np.arange(12.0, dtype=np.float32).reshape(6, 2)


def blocks(whole: Array = WHOLE, largest: float = 11.0) -> RowBlocks:
    return RowBlocks(whole.shape, whole.dtype, [slice(0, 4), slice(4, 6)], whole.__getitem__, largest)


def joined(array: Array | RowBlocks) -> Array:
    return np.concatenate([*array.generate()]) if isinstance(array, RowBlocks) else array


def test_blocks_are_made_one_after_the_other_when_they_are_wanted() -> None:
    asked = []

    def make(block: slice) -> Array:
        asked.append(block)
        return WHOLE[block]

    some = RowBlocks(WHOLE.shape, WHOLE.dtype, [slice(0, 4), slice(4, 6)], make)
    assert some.nbytes == WHOLE.nbytes
    made = some.generate()
    assert asked == []
    assert len(next(made)) == 4
    assert asked == [slice(0, 4)]
    assert len(next(made)) == 2
    np.testing.assert_array_equal(joined(some), WHOLE)


def test_rows_that_are_held_for_an_answer_count_unless_they_are_of_the_cache() -> None:
    kept, few = WHOLE.view(), csr_array(np.eye(3))
    kept.flags.writeable = False
    assert (own_bytes(kept), own_bytes(WHOLE), own_bytes(few)) == (0, 48, 3 * 8 + 3 * 4 + 4 * 4)
    some = replace(blocks(), rows_bytes=1000)
    assert held_bytes({"features": some}) == 1000 + held_bytes({"features": blocks()}) == 1000 + 2 * 32


@pytest.mark.parametrize(
    ("array", "dtype"),
    [
        (np.array([[1.0, -65520.0]], np.float32), "float16"),
        (np.array([[1.0, 1e39]]), "float32"),
        (np.array([[1.0, 1e39j]]), "complex64"),
    ],
)
def test_numbers_that_are_too_large_are_refused_and_never_infinite(array: Any, dtype: str) -> None:
    with pytest.raises(OutOfRange, match=rf"(6\.55e\+04|1e\+39) are too large for {dtype}"):
        narrow(array, np.dtype(dtype))
    with pytest.raises(OutOfRange, match="are too large for"):  # before the first block is made
        blocks(array, largest=float(np.abs(array).max())).narrow(np.dtype(dtype))
    with pytest.raises(OutOfRange):  # should a family know its largest number badly
        joined(blocks(array, largest=1.0).narrow(np.dtype(dtype)))


@pytest.mark.parametrize("marked", [[], [0], [3, 4, 5], [0, 1, 2, 3, 4, 5]])
def test_one_hot_rows_in_blocks_are_those_of_the_whole(marked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "_POSITIONS_PER_BLOCK", 3)
    columns = np.arange(12).reshape(6, 2)
    columns[marked] = -1
    there = columns[:, 0] >= 0
    whole, some = (OneHot(one, 12, there) for one in (columns, blocks(columns)))
    assert dtype_of({"codes": some}) == columns.dtype
    assert some.nbytes == whole.nbytes
    assert held_bytes({"codes": whole}) == columns.nbytes + 6
    np.testing.assert_array_equal(whole.indices(), columns[there].ravel())
    np.testing.assert_array_equal(joined(some.indices()), columns[there].ravel())
    assert some.indices().shape == whole.indices().shape
    assert joined(whole.indptr()).tolist() == joined(some.indptr()).tolist() == [0, *np.cumsum(2 * there)]
