"""L2 norms of rows, whose bits hang on nothing but the row, be it dense or sparse."""

import numpy as np

from app.core.arrays import Array, Floats, Rows, largest_by_row, named
from app.core.compiled import compiled
from app.core.errors import InvalidInput

# Sums that are kept side by side: that of coordinate j is number j mod 16. Part of what features are: never change it.
_LANES = 16


def unit_rows(rows: Rows, pointer: str = "") -> Rows:
    """The rows, which stood at `pointer` of the request, scaled to unit L2 norm, in their dtype.

    Raises:
        InvalidInput: rows are all zero and have no direction.
    """
    if rows.shape[0] == 0:
        return rows
    zero = np.flatnonzero(largest_by_row(rows) == 0)
    if zero.size:
        raise InvalidInput(f"row {named(zero)} is all zero: it has no direction", f"{pointer}/{zero[0]}")
    return unit_or_zero_rows(rows)


def unit_or_zero_rows(rows: Rows) -> Rows:
    """The rows scaled to unit L2 norm, in their dtype and memory of their own; rows that are all zero stay so."""
    top, squares = largest_by_row(rows), np.zeros(rows.shape[0])
    is_zero = top == 0
    top[is_zero] = 1
    # Divided by its largest entry first, a row has no squares that leave the range of the dtype.
    if isinstance(rows, np.ndarray):
        scaled = rows / top[:, None]
        add_squared_norms(scaled, squares)
        squares[is_zero] = 1
        scaled /= np.sqrt(squares).astype(rows.dtype)[:, None]
        return scaled
    unit = rows.copy()
    unit.sort_indices()
    lengths = np.diff(unit.indptr)
    unit.data /= np.repeat(top, lengths)
    _add_squares_of_sparse(unit.data, unit.indices.astype(np.int64), unit.indptr.astype(np.int64), squares)
    squares[is_zero] = 1
    unit.data /= np.repeat(np.sqrt(squares).astype(rows.dtype), lengths)
    return unit


@compiled
def add_squared_norms(rows: Floats, squares: Floats) -> None:
    """Add the squared L2 norm of every row, (n, k), in float64, to `squares`, (n,)."""
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


@compiled
def _add_squares_of_sparse(values: Floats, coordinates: Array, ends: Array, squares: Floats) -> None:
    lanes = np.empty(_LANES)
    for i in range(len(squares)):
        lanes[:] = 0
        for t in range(ends[i], ends[i + 1]):
            lanes[coordinates[t] % _LANES] += np.float64(values[t]) ** 2
        squares[i] += lanes.sum()
