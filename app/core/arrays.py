"""The one gate for posted vectors: shape, kind of numbers, finiteness, range. What lies behind it trusts them."""

from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from app.core.errors import InvalidInput

MAX_DIM = 1 << 31
"""The largest length of a vector."""

Array = NDArray[Any]
Matrix = NDArray[np.float64]
"""Of any number of dimensions, which docstrings tell, as of all arrays."""
Whole = NDArray[np.int64]
Floats = NDArray[np.floating[Any]]
PostedRows = Array | sparse.csr_array
"""Vectors as they came, not yet through the gate."""
Rows = Floats | sparse.csr_array
"""Vectors behind the gate: a C-contiguous matrix or a CSR one of float32 or float64, finite, of the map's width."""
CheckBytes = Callable[[int], None]
"""Is told how many bytes rows will take, before there is memory for them; raises TooLarge for too many."""
MISSING = "is missing; a map whose input has a number for missing takes such rows"
"""What is wrong with NaN, which JSON writes as null."""
AFTER_INPUT = ", once it has gone through the input of the map"
"""When an entry is what it is said to be, which is not as it was posted."""


def vectors(
    rows: PostedRows,
    input_dim: int,
    dtype: np.dtype[Any],
    pointer: str = "/vectors",
    missing: str = MISSING,
    check: CheckBytes = lambda _: None,
) -> Rows:
    """Posted rows, which stood at `pointer` of the request, checked for use in a dtype, float32 or float64.

    Floats stay in the precision in which they came, for exact kernels to be those of the rows as posted. Whole numbers
    come in the dtype. Rows are not copied where they are so already. `missing` says what is wrong with NaN.

    Raises:
        InvalidInput: not two-dimensional, another width than `input_dim`, another kind of number, NaN, infinity, a
            value outside the dtype's range, or a whole number that the dtype does not hold exactly.
        TooLarge: `check` says so.
    """
    found = floats(rows, input_dim, dtype, pointer, check)
    if not np.isfinite(stored_values(found)).all():
        refuse_not_finite(found, pointer, missing=missing)
    check_range(found, dtype, pointer)
    return found


def floats(
    rows: PostedRows, input_dim: int, dtype: np.dtype[Any], pointer: str, check: CheckBytes = lambda _: None
) -> Rows:
    """Posted rows of `input_dim` entries as floats, in the precision in which they came; whole numbers in the dtype.

    They are not copied where they are so already, and may hold NaN and infinity. InvalidInput as `vectors` raises it
    for shapes, kinds of numbers and whole numbers; TooLarge where `check` says so.
    """
    if rows.ndim != 2:
        raise InvalidInput(f"the array has shape {rows.shape}; a 2-D array (rows, {input_dim}) is wanted", pointer)
    if rows.shape[1] != input_dim:
        raise InvalidInput(f"rows have {rows.shape[1]} entries; this map takes {input_dim}", pointer)
    if isinstance(rows, np.ndarray) and rows.dtype.kind in "biu":
        check(rows.size * dtype.itemsize)
        _check_exact(rows, dtype, pointer)
        whole: Floats = np.ascontiguousarray(rows, dtype)
        return whole
    if rows.dtype.kind != "f" or rows.dtype.itemsize not in (2, 4, 8):
        raise InvalidInput(f"the array has dtype {rows.dtype}; expected floats, whole numbers or booleans", pointer)
    return in_dtype(rows, np.result_type(rows.dtype, np.float32))


def in_dtype(rows: Rows, dtype: np.dtype[Any]) -> Rows:
    """Rows of floats rounded to a dtype, C-contiguous or sparse; not copied where they are so already."""
    if isinstance(rows, np.ndarray):
        return np.ascontiguousarray(rows, dtype)
    cast: Rows = rows.astype(dtype, copy=False)
    return cast


def check_range(rows: Rows, dtype: np.dtype[Any], pointer: str, when: str = "") -> None:
    """Raise InvalidInput naming the first entry that the dtype has no room for; all are finite.

    `when` is added to the words.
    """
    if rows.dtype.itemsize <= dtype.itemsize:
        return
    with np.errstate(over="ignore"):  # what overflows is refused by name
        if not np.isfinite(dtype.type(largest(rows))):
            outside = f"is outside the range of {dtype}, the dtype of this map{when}"
            _refuse_entry(rows, np.isinf(stored_values(rows).astype(dtype)), outside, pointer)


def refuse_not_finite(
    rows: Rows, pointer: str, first_row: int = 0, infinite: str = "is not finite", missing: str | None = MISSING
) -> None:
    """Raise InvalidInput naming the first entry that is NaN or infinite, as missing or with these words.

    The rows are those of the request from `first_row` on. Return if all are finite, or, where `missing` is None, NaN.
    """
    values = stored_values(rows)
    is_odd = np.isinf(values) if missing is None else ~np.isfinite(values)
    if is_odd.any():
        is_missing = bool(np.isnan(values.ravel()[np.argmax(is_odd)]))
        _refuse_entry(rows, is_odd, missing if is_missing and missing else infinite, pointer, first_row)


def complete(rows: Rows, pointer: str, missing: str = MISSING) -> Rows:
    """The rows, which are finite or missing; InvalidInput, with these words, if an entry is missing."""
    if np.isnan(stored_values(rows)).any():
        refuse_not_finite(rows, pointer, missing=missing)
    return rows


def row_blocks(n: int, per_block: int, first: int = 0) -> Iterator[slice]:
    """Slices that cover `range(first, n)` in order, `per_block` rows each."""
    for start in range(first, n, max(1, per_block)):
        yield slice(start, min(n, start + max(1, per_block)))


def octets(array: Array) -> memoryview:
    """The bytes of an array's numbers in C order, little-endian, without a copy if they lie so."""
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(-1).view(np.uint8).data


def stored_values(rows: Rows) -> Floats:
    """The entries of dense rows, (n, d), or those that sparse ones store, (nnz,): themselves, not copied."""
    return rows if isinstance(rows, np.ndarray) else rows.data


def made_dense(rows: Rows) -> Floats:
    """The rows as one matrix of their dtype, not copied where they are that."""
    return rows if isinstance(rows, np.ndarray) else rows.toarray()


def dense(rows: Rows) -> Matrix:
    """The rows as one float64 matrix, not copied where they are that."""
    return made_dense(rows).astype(np.float64, copy=False)


def leading_columns(values: Matrix, input_dim: int) -> sparse.csr_array:
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


def name_rows(numbers: Whole) -> str:
    """Row numbers as an error names them: the first ten."""
    return ", ".join(str(number) for number in numbers[:10]) + (", …" if numbers.size > 10 else "")


def largest(rows: Rows) -> float:
    """The largest absolute entry, 0 for no entries; allocates nothing of the rows' size."""
    values = stored_values(rows)
    return float(max(values.max(), -values.min())) if values.size else 0.0


def _find_inexact(whole: Array, dtype: np.dtype[Any]) -> int | None:
    """The place, among all entries in C order, of the first whole number that a dtype rounds; None if there is none."""
    digits = np.finfo(dtype).nmant + 1
    if not whole.size or (-(1 << digits) <= int(whole.min()) and int(whole.max()) <= 1 << digits):
        return None
    size = np.where(whole < 0, 0 - whole.astype(np.uint64), whole.astype(np.uint64))  # the most negative has one, too
    # Without the zeros at the end of its binary digits, a number must fit into those of the dtype.
    rounded = np.flatnonzero(size // np.maximum(size & (0 - size), 1) >> np.uint64(digits))
    return int(rounded[0]) if rounded.size else None


def _check_exact(rows: Array, dtype: np.dtype[Any], pointer: str) -> None:
    """Raise InvalidInput naming the first whole number that the dtype rounds, if there is one."""
    rounded = _find_inexact(rows, dtype)
    if rounded is not None:
        row, column = divmod(rounded, rows.shape[1])
        detail = f"row {row}, column {column} is {rows[row, column]}, which {dtype} would round"
        raise InvalidInput(detail, f"{pointer}/{row}/{column}")


def _refuse_entry(rows: Rows, is_odd: NDArray[np.bool_], complaint: str, pointer: str, first_row: int = 0) -> NoReturn:
    """Refuse the first of the entries that are odd, with its row and column."""
    row, column = place_of(rows, int(np.argmax(is_odd)))
    row += first_row
    raise InvalidInput(f"row {row}, column {column} {complaint}", f"{pointer}/{row}/{column}")
