"""Sparse rows that are compared by what both have."""

import numpy as np
from scipy import sparse

from app.core.arrays import Rows


def in_shared_columns(x: sparse.csr_array, y: sparse.csr_array) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Sparse rows (n, d) and (m, d) in float64, of the columns alone in which y has entries, numbered in their order.

    What takes memory for each column takes none for those of up to 2³¹ that nobody has.
    """
    columns, numbers = np.unique(y.indices, return_inverse=True)
    places = np.searchsorted(columns, x.indices)
    is_shared = places < len(columns)
    is_shared[is_shared] = columns[places[is_shared]] == x.indices[is_shared]
    ends = np.concatenate([[0], np.cumsum(is_shared)])[x.indptr]
    kept = sparse.csr_array((x.data[is_shared], places[is_shared], ends), shape=(x.shape[0], len(columns)))
    of_y = sparse.csr_array((y.data, numbers, y.indptr), shape=(y.shape[0], len(columns)))
    return kept.astype(np.float64), of_y.astype(np.float64)


def stored(rows: Rows) -> int:
    """How many entries the rows have in sparse form: of dense ones, those that are not 0."""
    return int(np.count_nonzero(rows) if isinstance(rows, np.ndarray) else rows.nnz)
