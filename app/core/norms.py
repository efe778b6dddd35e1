"""L2 norms of rows; their bits depend only on the row, and are the same for dense and sparse rows."""

import numpy as np

from app.core.arrays import Floats, Matrix, Rows, Whole, csr_parts, largest_by_row, name_rows, row_numbers
from app.core.compiled import jit
from app.core.errors import InvalidInput

# Number of partial sums: coordinate j is added to number j mod 16. Features depend on it, so never change it.
_LANES = 16


def unit_rows(rows: Rows, pointer: str = "", first: int = 0) -> Rows:
    """Return the rows, found at `pointer` of the request from row `first` on, scaled to unit L2 norm, in their dtype.

    Raises:
        InvalidInput: a row is all zero and has no direction.
    """
    if rows.shape[0] == 0:
        return rows
    zero = first + np.flatnonzero(largest_by_row(rows) == 0)
    if zero.size:
        raise InvalidInput(f"row {name_rows(zero)} is all zero: it has no direction", f"{pointer}/{zero[0]}")
    return unit_or_zero_rows(rows)


def unit_or_zero_rows(rows: Rows, out: Floats | None = None) -> Rows:
    """Return the rows scaled to unit L2 norm, in their dtype; rows that are all zero stay zero.

    The result is a copy, or is written to `out`, which may be the rows themselves if they are dense.
    """
    top = largest_by_row(rows)
    is_zero = top == 0
    top[is_zero] = 1
    # After division by its largest entry, a row has no squares that leave the range of the dtype.
    if isinstance(rows, np.ndarray):
        scaled: Floats = np.divide(rows, top[:, None], out=out)
        squares = squared_norms(scaled)
        squares[is_zero] = 1
        scaled /= np.sqrt(squares).astype(rows.dtype)[:, None]
        return scaled
    unit = rows.sorted_indices()
    numbers = row_numbers(unit)
    unit.data /= top[numbers]
    squares = squared_norms(unit)
    squares[is_zero] = 1
    unit.data /= np.sqrt(squares).astype(rows.dtype)[numbers]
    return unit


def squared_norms(rows: Rows) -> Matrix:
    """Return the squared L2 norm of each row (n, d), as (n,), in float64; the same bits for dense and sparse rows."""
    squares = np.zeros(rows.shape[0])
    if isinstance(rows, np.ndarray):
        add_squared_norms(rows, squares)
    else:
        _add_squares_of_sparse(*csr_parts(rows if rows.has_sorted_indices else rows.sorted_indices()), squares)
    return squares


@jit
def add_squared_norms(rows: Floats, squares: Matrix) -> None:
    """Add the squared L2 norm of each row, (n, k), in float64, to `squares`, (n,)."""
    lanes = np.empty(_LANES)
    for i in range(len(rows)):
        row = rows[i]
        lanes[:] = 0
        whole = len(row) - len(row) % _LANES
        for j in range(0, whole, _LANES):
            for lane in range(_LANES):
                value = np.float64(row[j + lane])
                lanes[lane] += value * value
        for j in range(whole, len(row)):
            lanes[j - whole] += np.float64(row[j]) ** 2
        squares[i] += lanes.sum()


@jit
def _add_squares_of_sparse(values: Matrix, coordinates: Whole, ends: Whole, squares: Matrix) -> None:
    lanes = np.empty(_LANES)
    for i in range(len(squares)):
        lanes[:] = 0
        for t in range(ends[i], ends[i + 1]):
            lanes[coordinates[t] % _LANES] += values[t] ** 2
        squares[i] += lanes.sum()
