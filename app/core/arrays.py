"""Validation of posted vectors: shape, kind of numbers, finiteness, range. All other code relies on these checks."""

from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from app.core.errors import InvalidInput

MAX_DIM = 1 << 31
"""Largest number of entries of a vector."""

Array = NDArray[Any]
Matrix = NDArray[np.float64]
"""float64 array of any number of dimensions; docstrings state the shape, as for all arrays."""
Whole = NDArray[np.int64]
Floats = NDArray[np.floating[Any]]
PostedRows = Array | sparse.csr_array
"""Vectors in their original dtype, not yet validated."""
Rows = Floats | sparse.csr_array
"""Validated vectors: a C-contiguous or CSR matrix of float32 or float64, finite, of the map's width."""
CheckBytes = Callable[[int], None]
"""Function that receives the number of bytes rows will take, before they are allocated; raises TooLarge if too many."""
MISSING = "is missing; a map whose input has a number for missing takes such rows"
"""Error text for NaN, which is written as null in JSON."""
AFTER_INPUT = ", once it has gone through the input of the map"
"""Suffix of error texts about an entry after preprocessing (`input`), whose value differs from the posted one."""


def vectors(
    rows: PostedRows,
    input_dim: int,
    dtype: np.dtype[Any],
    pointer: str = "/vectors",
    missing: str = MISSING,
    check: CheckBytes = lambda _: None,
) -> Rows:
    """Return posted rows, found at `pointer` of the request, validated for use in a dtype, float32 or float64.

    Floats keep their precision (float16 becomes float32), so that exact kernels are those of the posted rows. Whole
    numbers are converted to the dtype. Rows are not copied if nothing has to be converted. `missing` is the error text
    for NaN.

    Raises:
        InvalidInput: the array is not two-dimensional, its width is not `input_dim`, it has another kind of number, or
            it contains NaN, infinity, a value outside the dtype's range, or a whole number that the dtype does not hold
            exactly.
        TooLarge: raised by `check`.
    """
    found = floats(rows, input_dim, dtype, pointer, check)
    if not np.isfinite(stored_values(found)).all():
        refuse_not_finite(found, pointer, missing=missing)
    check_range(found, dtype, pointer)
    return found


def floats(
    rows: PostedRows, input_dim: int, dtype: np.dtype[Any], pointer: str, check: CheckBytes = lambda _: None
) -> Rows:
    """Return posted rows of `input_dim` entries as floats in their original precision; whole numbers become `dtype`.

    Rows are not copied if nothing has to be converted, and may contain NaN and infinity. Raises InvalidInput as
    `vectors` does for shapes, kinds of numbers and whole numbers; `check` may raise TooLarge.
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
    """Return rows of floats rounded to a dtype, C-contiguous or sparse; not copied if nothing changes."""
    if isinstance(rows, np.ndarray):
        return np.ascontiguousarray(rows, dtype)
    cast: Rows = rows.astype(dtype, copy=False)
    return cast


def check_range(rows: Rows, dtype: np.dtype[Any], pointer: str, when: str = "") -> None:
    """Raise InvalidInput that names the first entry outside the range of the dtype; all entries must be finite.

    `when` is appended to the error text.
    """
    if rows.dtype.itemsize <= dtype.itemsize:
        return
    with np.errstate(over="ignore"):  # the error names the entry that overflows
        if not np.isfinite(dtype.type(largest(rows))):
            outside = f"is outside the range of {dtype}, the dtype of this map{when}"
            _refuse_entry(rows, np.isinf(stored_values(rows).astype(dtype)), outside, pointer)


def refuse_not_finite(
    rows: Rows, pointer: str, first_row: int = 0, infinite: str = "is not finite", missing: str | None = MISSING
) -> None:
    """Raise InvalidInput that names the first entry that is NaN or infinite.

    The error text is `missing` for NaN and `infinite` for infinity. The first of these rows is row `first_row` of the
    request. Return if all entries are finite; if `missing` is None, NaN is allowed.
    """
    values = stored_values(rows)
    is_odd = np.isinf(values) if missing is None else ~np.isfinite(values)
    if is_odd.any():
        is_missing = bool(np.isnan(values.ravel()[np.argmax(is_odd)]))
        _refuse_entry(rows, is_odd, missing if is_missing and missing else infinite, pointer, first_row)


def complete(rows: Rows, pointer: str, missing: str = MISSING) -> Rows:
    """Return the rows, whose entries are finite or NaN; InvalidInput with the text `missing` if an entry is NaN."""
    if np.isnan(stored_values(rows)).any():
        refuse_not_finite(rows, pointer, missing=missing)
    return rows


def row_blocks(n: int, per_block: int, first: int = 0) -> Iterator[slice]:
    """Yield slices that cover `range(first, n)` in order, `per_block` rows each."""
    for start in range(first, n, max(1, per_block)):
        yield slice(start, min(n, start + max(1, per_block)))


def octets(array: Array) -> memoryview:
    """Return the bytes of an array's numbers in C order, little-endian; not copied if they are stored that way."""
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(-1).view(np.uint8).data


def stored_values(rows: Rows) -> Floats:
    """Return the entries of dense rows, (n, d), or the stored entries of sparse rows, (nnz,), without a copy."""
    return rows if isinstance(rows, np.ndarray) else rows.data


def made_dense(rows: Rows) -> Floats:
    """Return the rows as one dense matrix of their dtype, not copied if they are dense."""
    return rows if isinstance(rows, np.ndarray) else rows.toarray()


def dense(rows: Rows) -> Matrix:
    """Return the rows as one dense float64 matrix, not copied if they are that already."""
    return made_dense(rows).astype(np.float64, copy=False)


def leading_columns(values: Matrix, input_dim: int) -> sparse.csr_array:
    """Return sparse rows (n, input_dim) that begin with the values (n, k), cut to `input_dim`; the rest is 0."""
    values = values[:, :input_dim]
    n, width = values.shape
    columns, ends = np.tile(np.arange(width), n), np.arange(0, n * width + 1, width)
    return sparse.csr_array((values.ravel(), columns, ends), shape=(n, input_dim))


def place_of(rows: PostedRows, entry: int) -> tuple[int, int]:
    """Return the row and the column of entry number `entry`; in sparse rows, only stored entries are counted."""
    if isinstance(rows, np.ndarray):
        row, column = divmod(entry, rows.shape[1])
        return int(row), int(column)
    return int(np.searchsorted(rows.indptr, entry, side="right")) - 1, int(rows.indices[entry])


def largest_by_row(rows: Rows) -> Floats:
    """Return the largest absolute entry of each row, (n,)."""
    found: Floats = np.abs(rows).max(axis=1) if isinstance(rows, np.ndarray) else abs(rows).max(axis=1).toarray()
    return found.reshape(-1)


def name_rows(numbers: Whole) -> str:
    """Return row numbers as text for an error message: the first ten."""
    return ", ".join(str(number) for number in numbers[:10]) + (", …" if numbers.size > 10 else "")


def largest(rows: Rows) -> float:
    """Return the largest absolute entry, 0 if there are no entries; allocates no memory of the rows' size."""
    values = stored_values(rows)
    return float(max(values.max(), -values.min())) if values.size else 0.0


def _find_inexact(whole: Array, dtype: np.dtype[Any]) -> int | None:
    """Return the index, in C order, of the first whole number that a dtype rounds; None if there is none."""
    digits = np.finfo(dtype).nmant + 1
    if not whole.size or (-(1 << digits) <= int(whole.min()) and int(whole.max()) <= 1 << digits):
        return None
    size = np.where(whole < 0, 0 - whole.astype(np.uint64), whole.astype(np.uint64))  # right for the least, too
    # A number is held exactly if it fits into the dtype's digits without its trailing binary zeros.
    rounded = np.flatnonzero(size // np.maximum(size & (0 - size), 1) >> np.uint64(digits))
    return int(rounded[0]) if rounded.size else None


def _check_exact(rows: Array, dtype: np.dtype[Any], pointer: str) -> None:
    """Raise InvalidInput that names the first whole number that the dtype would round, if there is one."""
    rounded = _find_inexact(rows, dtype)
    if rounded is not None:
        row, column = divmod(rounded, rows.shape[1])
        detail = f"row {row}, column {column} is {rows[row, column]}, which {dtype} would round"
        raise InvalidInput(detail, f"{pointer}/{row}/{column}")


def _refuse_entry(rows: Rows, is_odd: NDArray[np.bool_], complaint: str, pointer: str, first_row: int = 0) -> NoReturn:
    """Raise InvalidInput that names row and column of the first entry for which `is_odd` is true."""
    row, column = place_of(rows, int(np.argmax(is_odd)))
    row += first_row
    raise InvalidInput(f"row {row}, column {column} {complaint}", f"{pointer}/{row}/{column}")
