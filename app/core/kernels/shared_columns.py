"""Sparse rows that are compared by what both have."""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from app.core.arrays import Rows


def in_shared_columns(x: sparse.csr_array, y: sparse.csr_array) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Sparse rows (n, d) and (m, d) in float64, of the columns alone in which y has entries, numbered in their order.

    What takes memory for each column takes none for those of up to 2³¹ that nobody has.
    """
    columns, numbers = np.unique(y.indices, return_inverse=True)
    of_y = sparse.csr_array((y.data.astype(np.float64), numbers, y.indptr), shape=(y.shape[0], len(columns)))
    return of_columns(x, columns), of_y


def of_columns(rows: sparse.csr_array, columns: NDArray[np.integer]) -> sparse.csr_array:
    """Sparse rows in float64, of these columns alone, which are in order, and are numbered from 0 on."""
    places = np.searchsorted(columns, rows.indices)
    is_kept = places < len(columns)
    is_kept[is_kept] = columns[places[is_kept]] == rows.indices[is_kept]
    ends = np.concatenate([[0], np.cumsum(is_kept)])[rows.indptr]
    values = rows.data[is_kept].astype(np.float64)
    return sparse.csr_array((values, places[is_kept], ends), shape=(rows.shape[0], len(columns)))


def stored(rows: Rows) -> int:
    """How many entries the rows have in sparse form: of dense ones, those that are not 0."""
    return int(np.count_nonzero(rows) if isinstance(rows, np.ndarray) else rows.nnz)
