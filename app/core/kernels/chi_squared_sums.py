"""The compiled inner loops of the exact chi-squared kernel.

A term is (a − b)·((a − b)/(a + b)): its square alone would leave the range of float64 first. Rows come so
small that no sum does either.
"""

import numpy as np

from app.core.arrays import Matrix, Whole
from app.core.compiled import compiled

Summed = tuple[Matrix, Whole, Whole, Matrix]
"""Parts of a sparse matrix, by row or by column, as `Compressed`; and the rows' sums."""

# Rows of y that are compared at a time: sums of a row with them stay in the cache, as do their entries.
_ROWS_PER_BLOCK = 512


@compiled
def dense_distances(x: Matrix, y: Matrix, out: Matrix) -> None:
    """Σ (x_j − y_j)²/(x_j + y_j) of rows x (n, d) and columns y (d, m), both C-contiguous, into out (n, m)."""
    m = y.shape[1]
    for start in range(0, m, _ROWS_PER_BLOCK):
        end = min(m, start + _ROWS_PER_BLOCK)
        for i in range(x.shape[0]):
            sums = out[i, start:end]
            for k in range(end - start):
                sums[k] = 0.0
            for j in range(x.shape[1]):
                a, others = x[i, j], y[j, start:end]
                for k in range(end - start):
                    both = a + others[k]
                    apart = a - others[k]
                    # Where both are 0, so is the term.
                    sums[k] += apart * (apart / (both if both > 0.0 else 1.0))


@compiled
def sparse_distances(x: Summed, y: Summed, out: Matrix) -> None:
    """The same of sparse rows, x by row and y by column, into out (n, m).

    What only one of two rows has is the sum of both without what both have. For equal rows that is exactly 0, as their
    entries are added in the same order.
    """
    (x_values, x_columns, x_ends, x_sums), (y_values, y_rows, y_ends, y_sums) = x, y
    m = out.shape[1]
    shared = np.empty(m)
    for i in range(out.shape[0]):
        for j in range(m):
            shared[j] = 0.0
            out[i, j] = 0.0
        for k in range(x_ends[i], x_ends[i + 1]):
            a = x_values[k]
            for place in range(y_ends[x_columns[k]], y_ends[x_columns[k] + 1]):
                j, b = y_rows[place], y_values[place]
                both = a + b
                apart = a - b
                shared[j] += both
                out[i, j] += apart * (apart / both)
        for j in range(m):
            out[i, j] += max(0.0, x_sums[i] + y_sums[j] - shared[j])
