"""The one gate for posted vectors: shape, dtype, finiteness. What lies behind it trusts them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from app.core.errors import InvalidInput

MAX_DIM = 1 << 31
"""The largest length of a vector."""

Array = NDArray[Any]
Floats = NDArray[np.floating[Any]]
PostedRows = Array | sparse.csr_array
"""Vectors as they came, not yet through the gate."""
Rows = Floats | sparse.csr_array
"""Vectors behind the gate: a C-contiguous matrix or a CSR one, finite, in the map's dtype and width."""


def vectors(rows: PostedRows, input_dim: int, dtype: np.dtype[Any], pointer: str = "/vectors") -> Rows:
    """Posted rows, which stood at `pointer` of the request, checked and in the map's dtype, float32 or float64.

    They are not copied where they are so already.

    Raises:
        InvalidInput: not two-dimensional, another width than `input_dim`, another kind of number, NaN, infinity, a
            value outside the dtype's range, or a whole number that the dtype does not hold exactly.
    """
    if rows.ndim != 2:
        raise InvalidInput(f"the array has shape {rows.shape}; a 2-D array (rows, {input_dim}) is wanted", pointer)
    if rows.shape[1] != input_dim:
        raise InvalidInput(f"rows have {rows.shape[1]} entries; this map takes {input_dim}", pointer)
    if isinstance(rows, np.ndarray) and rows.dtype.kind in "biu":
        _check_exact(rows, dtype, pointer)
        return np.ascontiguousarray(rows, dtype)
    if rows.dtype.kind != "f" or rows.dtype.itemsize not in (4, 8):
        raise InvalidInput(f"the array has dtype {rows.dtype}; float32, float64 or integers are wanted", pointer)
    if not np.isfinite(_values(rows)).all():
        _refuse_not_finite(rows, pointer, "is not finite")
    with np.errstate(over="ignore"):  # what overflows is refused by name below
        cast: Rows = np.ascontiguousarray(rows, dtype) if isinstance(rows, np.ndarray) else rows.astype(dtype)
    if rows.dtype.itemsize > dtype.itemsize and not np.isfinite(_values(cast)).all():
        _refuse_not_finite(cast, pointer, f"is outside the range of {dtype}, the dtype of this map")
    return cast


def row_blocks(n: int, per_block: int, first: int = 0) -> Iterator[slice]:
    """Slices that cover `range(first, n)` in order, `per_block` rows each."""
    for start in range(first, n, max(1, per_block)):
        yield slice(start, min(n, start + max(1, per_block)))


def dense(rows: Rows) -> NDArray[np.float64]:
    """The rows as one float64 matrix."""
    matrix = rows if isinstance(rows, np.ndarray) else rows.toarray()
    return matrix.astype(np.float64, copy=False)


def leading_columns(values: NDArray[np.float64], input_dim: int) -> sparse.csr_array:
    """Sparse rows (n, input_dim) that begin with these values (n, k), as far as there is room, and go on with zeros."""
    values = values[:, :input_dim]
    n, width = values.shape
    columns, ends = np.tile(np.arange(width), n), np.arange(0, n * width + 1, width)
    return sparse.csr_array((values.ravel(), columns, ends), shape=(n, input_dim))


def place_of(rows: PostedRows, entry: int) -> tuple[int, int]:
    """The row and the column of an entry of this number; of sparse rows, among those that are stored."""
    if isinstance(rows, np.ndarray):
        row, column = divmod(entry, rows.shape[1])
        return int(row), int(column)
    return int(np.searchsorted(rows.indptr, entry, side="right")) - 1, int(rows.indices[entry])


def largest_by_row(rows: Rows) -> Floats:
    """The largest absolute entry of each row, (n,)."""
    found: Floats = np.abs(rows).max(axis=1) if isinstance(rows, np.ndarray) else abs(rows).max(axis=1).toarray()
    return found.reshape(-1)


def named(numbers: NDArray[np.int64]) -> str:
    """Row numbers as an error names them: the first ten."""
    return ", ".join(str(number) for number in numbers[:10]) + (", …" if numbers.size > 10 else "")


def largest(rows: Rows) -> float:
    """The largest absolute entry, 0 for no entries; allocates nothing of the rows' size."""
    values = _values(rows)
    return float(max(values.max(), -values.min())) if values.size else 0.0


def _values(rows: Rows) -> Floats:
    return rows if isinstance(rows, np.ndarray) else rows.data


def _check_exact(rows: Array, dtype: np.dtype[Any], pointer: str) -> None:
    """Raise InvalidInput naming the first whole number that the dtype rounds, if there is one."""
    digits = np.finfo(dtype).nmant + 1
    if not rows.size or (-(1 << digits) <= int(rows.min()) and int(rows.max()) <= 1 << digits):
        return
    size = np.where(rows < 0, 0 - rows.astype(np.uint64), rows.astype(np.uint64))  # the most negative has one, too
    # Without the zeros at the end of its binary digits, a number must fit into those of the dtype.
    rounded = np.flatnonzero(size // np.maximum(size & (0 - size), 1) >> np.uint64(digits))
    if rounded.size:
        row, column = divmod(int(rounded[0]), rows.shape[1])
        detail = f"row {row}, column {column} is {rows[row, column]}, which {dtype} would round"
        raise InvalidInput(detail, f"{pointer}/{row}/{column}")


def _refuse_not_finite(rows: Rows, pointer: str, complaint: str) -> None:
    row, column = place_of(rows, int(np.flatnonzero(~np.isfinite(_values(rows)))[0]))
    raise InvalidInput(f"row {row}, column {column} {complaint}", f"{pointer}/{row}/{column}")
