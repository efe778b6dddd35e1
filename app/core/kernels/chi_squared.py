"""The exponential chi-squared kernel."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field
from scipy import sparse

from app.core.arrays import (
    Matrix,
    Rows,
    Whole,
    count_entries,
    csr_parts,
    dense,
    in_own_columns,
    of_columns,
    place_of,
    row_blocks,
    stored_values,
)
from app.core.compiled import jit
from app.core.errors import InvalidInput
from app.core.kernels.base import AnyKernel
from app.core.kernels.rounding import OfRoots

# Memory of an entry of sparse rows while they are made ready: copies by row and by column, and column numbers.
_BYTES_PER_STORED = 64
# Entries of a block of rows compared at a time.
_ENTRIES_PER_BLOCK = 1 << 16
# Factor of all rows, so that no sum of 2³¹ entries leaves the range of float64; it rounds no entry above 1e-298.
_SMALLER = 2.0**-32
# Cost of comparing two entries (a division), in multiplications of a matrix product.
_OPERATIONS_PER_COMPARISON = 16


class ChiSquared(AnyKernel):
    """exp(−γ Σ (x_j − y_j)²/(x_j + y_j)) of rows without negative entries; 0/0 counts as 0.

    Choose when:
        Use it for histograms, such as histograms of colours or visual words: a difference counts less where counts are
        high. For rows that sum to 1, the sum is at most 2, and gamma = 1 is a reasonable start. It has no frequencies;
        use landmarks for features. Do not use it for rows with negative entries, which are refused: use gmm for these.
    """

    source = (
        "Zhang, Marszalek, Lazebnik, Schmid (2007), Local features and kernels for classification of texture and "
        "object categories, section 3.3; scikit-learn's chi2_kernel"
    )

    served_by = "landmarks"

    kind: Literal["chi_squared"]
    gamma: Annotated[float, Field(gt=0)] = 1.0
    """γ, in the inverse unit of the vectors' entries."""

    def rounding(self, dtype: np.dtype[np.floating]) -> OfRoots:
        """Return the rounding error of the entries' square roots, which the kernel compares if entries are large."""
        return OfRoots(dtype, self.gamma)

    def prepare(self, rows: Rows, pointer: str = "", first: int = 0) -> Rows:
        """Return the rows unchanged; InvalidInput names the first negative entry."""
        values = stored_values(rows)
        if values.size and values.min() < 0:
            entry = int(np.argmax(values.ravel() < 0))
            row, column = place_of(rows, entry)
            row += first
            detail = f"row {row}, column {column} is {values.ravel()[entry]:.6g}; kernel chi_squared wants 0 or more"
            raise InvalidInput(detail, f"{pointer}/{row}/{column}")
        return rows

    def in_domain(self, rows: Matrix) -> Matrix:
        """Return the absolute values of the entries."""
        return np.abs(rows)

    @property
    def compares_sparse(self) -> bool:
        """Whether sparse rows are compared as they are: always."""
        return True

    def compare_with(self, y: Rows) -> Callable[[Rows], Matrix]:
        """Return a function that computes the kernel of some rows x with y, which stay sparse if they are sparse.

        Dense rows are compared entry by entry. For two sparse rows, the entries that only one of them has are summed as
        the sums of both rows less the entries in shared columns, with twice the digits.
        """
        m = y.shape[0]
        if isinstance(y, np.ndarray):
            by_column = np.ascontiguousarray(_SMALLER * dense(y).T)

            def compare(x: Rows) -> Matrix:
                distances = np.empty((x.shape[0], m))
                dense_distances(np.ascontiguousarray(_SMALLER * dense(x)), by_column, distances)
                return self._kernel(distances)

            return compare
        smaller = _smaller(y)
        columns, restricted = in_own_columns(smaller)
        summed = (*csr_parts(restricted.tocsc()), _sums(smaller))

        def compare_sparse(x: Rows) -> Matrix:
            distances, of_x = np.empty((x.shape[0], m)), _smaller(sparse.csr_array(x))
            sparse_distances((*csr_parts(of_columns(of_x, columns)), _sums(of_x)), summed, distances)
            return self._kernel(distances)

        return compare_sparse

    def pairs(self, x: Rows, y: Rows) -> Matrix:
        """Compute the exact kernel of row i of x with row i of y, (n,)."""
        distances = np.empty((x.shape[0], 1))
        if sparse.issparse(x) and sparse.issparse(y):
            x, y = _smaller(x), _smaller(y)
            differences, inverses = abs(x - y), x + y
            inverses.data = 1 / np.maximum(inverses.data, np.finfo(np.float64).tiny)
            distances[:, 0] = differences.multiply(differences.multiply(inverses)).sum(axis=1)
            return self._kernel(distances)[:, 0]
        for block in row_blocks(x.shape[0], _ENTRIES_PER_BLOCK // x.shape[1]):
            of_x, of_y = _SMALLER * dense(x[block]), _SMALLER * dense(y[block])
            apart, both = np.abs(of_x - of_y), of_x + of_y
            shares = np.divide(apart, both, out=np.zeros_like(apart), where=both > 0)
            distances[block, 0] = np.einsum("ij,ij->i", apart, shares)
        return self._kernel(distances)[:, 0]

    def comparison_operations(self, x: Rows, y: Rows) -> int:
        """Return the cost, in multiplications, of comparing each entry of x with each row of y."""
        of_x = count_entries(x) if sparse.issparse(x) and sparse.issparse(y) else x.shape[0] * x.shape[1]
        return int(_OPERATIONS_PER_COMPARISON * y.shape[0] * of_x)

    def exact_bytes(self, x: Rows, y: Rows) -> int:
        """Return the memory for the entries of both, sparse or dense, while they are made ready."""
        if sparse.issparse(x) and sparse.issparse(y):
            return _BYTES_PER_STORED * (count_entries(x) + count_entries(y))
        return super().exact_bytes(x, y)

    def _kernel(self, distances: Matrix) -> Matrix:
        """Turn distances of rows multiplied by `_SMALLER` into exp(−γ·distances), in place."""
        with np.errstate(over="ignore"):  # the kernel of an infinite distance is 0
            distances *= -self.gamma
            distances /= _SMALLER
        return np.exp(distances, out=distances)


def _smaller(rows: sparse.csr_array) -> sparse.csr_array:
    """Return the rows times `_SMALLER`, in float64, without stored zeros, and each sorted by column."""
    found: sparse.csr_array = rows.astype(np.float64)
    found.data *= _SMALLER
    found.eliminate_zeros()
    found.sort_indices()
    return found


def _sums(rows: sparse.csr_array) -> Matrix:
    """Return the sums of the rows' entries and what they lack, (2, n)."""
    sums = np.zeros((2, rows.shape[0]))
    write_sums(rows.data, rows.indptr.astype(np.int64), sums)
    return sums


# A term is computed as (a − b)·((a − b)/(a + b)), because (a − b)² alone may leave the range of float64. Rows were
# multiplied by `_SMALLER`, so that no sum leaves it either.
Summed = tuple[Matrix, Whole, Whole, Matrix]
"""Parts of a sparse matrix by row or by column, as in `Compressed`, and the `write_sums` of its rows."""

# Rows of y compared at a time: few enough that their entries, and their sums with one row of x, stay in the cache.
_ROWS_PER_BLOCK = 512


@jit
def dense_distances(x: Matrix, y: Matrix, out: Matrix) -> None:
    """Compute Σ (x_j − y_j)²/(x_j + y_j) of rows x (n, d), columns y (d, m), both C-contiguous, into out (n, m)."""
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
                    # If both entries are 0, so is the term.
                    sums[k] += apart * (apart / (both if both > 0.0 else 1.0))


@jit
def _lost(a: Any, b: Any, total: Any) -> Any:
    """Return what a + b, rounded to `total`, lacks; exactly (Knuth's two-sum)."""
    of_b = total - a
    return (a - (total - of_b)) + (b - of_b)


@jit
def write_sums(values: Matrix, ends: Whole, out: Matrix) -> None:
    """Add the entries of each sparse row in their order, and what roundings lose, to `out`, (2, n)."""
    for i in range(out.shape[1]):
        for k in range(ends[i], ends[i + 1]):
            total = out[0, i] + values[k]
            out[1, i] += _lost(out[0, i], values[k], total)
            out[0, i] = total


@jit
def sparse_distances(x: Summed, y: Summed, out: Matrix) -> None:
    """Compute the sums of `dense_distances` for sparse rows, x by row and y by column, into out (n, m).

    Entries that only one of two rows has add up to the sums of both rows less the entries in shared columns. As much of
    that may cancel, what roundings lose is summed too. For equal rows it is exactly 0, because their entries are added
    in the same order.
    """
    (x_values, x_columns, x_ends, x_sums), (y_values, y_rows, y_ends, y_sums) = x, y
    m = out.shape[1]
    shared, lost = np.empty(m), np.empty(m)
    for i in range(out.shape[0]):
        for j in range(m):
            shared[j] = lost[j] = out[i, j] = 0.0
        for k in range(x_ends[i], x_ends[i + 1]):
            a = x_values[k]
            for place in range(y_ends[x_columns[k]], y_ends[x_columns[k] + 1]):
                j, b = y_rows[place], y_values[place]
                both = a + b
                apart = a - b
                total = shared[j] + both
                lost[j] += _lost(shared[j], both, total) + _lost(a, b, both)
                shared[j] = total
                out[i, j] += apart * (apart / both)
        for j in range(m):
            total = x_sums[0, i] + y_sums[0, j]
            left = _lost(x_sums[0, i], y_sums[0, j], total) + (x_sums[1, i] + y_sums[1, j] - lost[j])
            out[i, j] += max(0.0, total - shared[j] + left)
