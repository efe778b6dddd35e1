"""Sparse rows in the form that compiled loops take, and sparse rows restricted to shared columns."""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from app.core.arrays import Array, Matrix, Rows, Whole

Compressed = tuple[Matrix, Whole, Whole]
"""Parts of a sparse matrix, by row or by column: values, indices, and where each row or column begins and ends."""


def csr_parts(rows: sparse.csr_array | sparse.csc_array, indices: Array | None = None) -> Compressed:
    """Return copies of the parts of a sparse matrix, in the dtypes of compiled loops; with other indices, if given."""
    indices = rows.indices if indices is None else indices
    return rows.data.astype(np.float64), indices.astype(np.int64), rows.indptr.astype(np.int64)


def row_numbers(rows: sparse.csr_array) -> NDArray[np.intp]:
    """Return the row number of each stored entry, (nnz,), increasing."""
    return np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))


def row_sums(rows: sparse.csr_array) -> Matrix:
    """Return the sum of each row's entries, (n,), in float64, added in their order: equal rows have equal sums."""
    return np.asarray(np.bincount(row_numbers(rows), rows.data, rows.shape[0]), np.float64)


def divide_columns(rows: Rows, divisors: Matrix) -> None:
    """Divide rows (n, d) in place by one number, (), or by one number per column, (d,)."""
    if isinstance(rows, np.ndarray):
        rows /= divisors
    else:
        rows.data /= divisors[rows.indices] if divisors.ndim else divisors


def in_shared_columns(x: sparse.csr_array, y: sparse.csr_array) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Return x (n, d) and y (m, d) in float64, restricted to the columns in which y has entries, renumbered in order.

    Memory that grows with the number of columns is then not spent on unused ones, of which there may be 2³¹.
    """
    columns, numbers = np.unique(y.indices, return_inverse=True)
    of_y = sparse.csr_array((y.data.astype(np.float64), numbers, y.indptr), shape=(y.shape[0], len(columns)))
    return of_columns(x, columns), of_y


def of_columns(rows: sparse.csr_array, columns: NDArray[np.integer]) -> sparse.csr_array:
    """Return sparse rows in float64, restricted to these columns, which are increasing and renumbered from 0."""
    places = np.searchsorted(columns, rows.indices)
    is_kept = places < len(columns)
    is_kept[is_kept] = columns[places[is_kept]] == rows.indices[is_kept]
    ends = np.concatenate([[0], np.cumsum(is_kept)])[rows.indptr]
    values = rows.data[is_kept].astype(np.float64)
    return sparse.csr_array((values, places[is_kept], ends), shape=(rows.shape[0], len(columns)))


def count_entries(rows: Rows) -> int:
    """Return the number of entries that the rows have in sparse form: of dense rows, those that are not 0."""
    return int(np.count_nonzero(rows) if isinstance(rows, np.ndarray) else rows.nnz)
