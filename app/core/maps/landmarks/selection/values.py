"""Kernel values of rows that selections compare, dense or sparse, in float64 and in little memory."""

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from app.core.arrays import Matrix, Rows, row_blocks
from app.core.kernels.base import AnyKernel, ShiftInvariantKernel
from app.core.kernels.chi_squared import ChiSquared
from app.core.kernels.correlation_rbf import CorrelationRbf
from app.core.kernels.gmm import GeneralizedMinMax
from app.core.kernels.scaled import ScaledKernel
from app.core.maps.landmarks.features import kernel_blocks

_DTYPE = np.dtype(np.float64)
# Sparse rows that are compared at a time, and entries of them that are made dense.
_SPARSE_ROWS, _DENSE_ENTRIES = 192, 1 << 20


def values(kernel: AnyKernel, x: Rows, y: Rows) -> Matrix:
    """The kernel of prepared rows, both dense or both sparse, (n, d) and (m, d) to (n, m).

    That of dense rows is exact, as nearly dependent rows are told apart by it. Sparse rows may have billions of
    columns: they are made dense a few at a time, if at all.
    """
    if isinstance(x, np.ndarray) or isinstance(y, np.ndarray) or kernel.compares_sparse:
        return kernel.exact(x, y)
    found = np.empty((x.shape[0], y.shape[0]))
    for some in row_blocks(x.shape[0], _SPARSE_ROWS):
        of, u, v = _narrowed(kernel, x[some], y)
        blocks, out = kernel_blocks(of, v, _DTYPE), found[some]
        for part in row_blocks(len(out), blocks.rows_per_block):
            blocks.write(u[part], out[part])
    return found


def _narrowed(
    kernel: AnyKernel, x: sparse.csr_array, y: sparse.csr_array
) -> tuple[AnyKernel, sparse.csr_array, sparse.csr_array]:
    """A kernel and rows of fewer columns with the same values, where the kernel is known to allow it.

    Columns are left out in which no row has an entry, as all differences are 0 there.
    """
    if not isinstance(kernel, ScaledKernel | CorrelationRbf):
        return kernel, x, y
    columns, numbers = np.unique(np.concatenate([x.indices, y.indices, [0]]), return_inverse=True)
    if isinstance(kernel, ScaledKernel) and isinstance(kernel.length_scale, tuple):
        scales = kernel.length_scale
        kernel = kernel.model_copy(update={"length_scale": tuple(scales[column] for column in columns)})
    u = sparse.csr_array((x.data, numbers[: x.nnz], x.indptr), shape=(x.shape[0], len(columns)))
    v = sparse.csr_array((y.data, numbers[x.nnz : -1], y.indptr), shape=(y.shape[0], len(columns)))
    return kernel, u, v


def own_values(kernel: AnyKernel, rows: Rows) -> Matrix:
    """The kernel of each row with itself, (n,)."""
    n = rows.shape[0]
    if isinstance(kernel, ShiftInvariantKernel):
        return np.full(n, kernel.at_zero(rows.shape[1]))
    if isinstance(kernel, GeneralizedMinMax | ChiSquared):
        return np.ones(n)
    found = np.empty(n)
    at_once = n if isinstance(rows, np.ndarray) or kernel.compares_sparse else _DENSE_ENTRIES // rows.shape[1]
    for part in row_blocks(n, at_once):
        found[part] = kernel.pairs(rows[part], rows[part])
    return found


def operations_per_row(kernel: AnyKernel, x: Rows, y: Rows) -> int:
    """Multiplications of a matrix product that take as long as `values` takes for one row of x, on average."""
    if not y.shape[0]:
        return 0
    if isinstance(x, np.ndarray) or kernel.compares_sparse:
        return kernel.exact_operations(x, y) // int(x.shape[0])
    return kernel_blocks(kernel, y, _DTYPE).operations(x) // int(x.shape[0])


def stacked(blocks: Sequence[Rows]) -> Rows:
    """Blocks of rows below each other; all are dense, or all are sparse."""
    if isinstance(blocks[0], np.ndarray):
        return np.concatenate([block for block in blocks if isinstance(block, np.ndarray)])
    return sparse.csr_array(sparse.vstack([block for block in blocks if sparse.issparse(block)], format="csr"))
