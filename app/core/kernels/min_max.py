"""The compiled inner loops of the exact min-max kernel.

Rows come as signed powers scaled to a largest entry of ±1, with the logarithm of that scale (`top`) beside them, so
that no power over- or underflows. Opposite signs share nothing; Σ max = Σ|u| + Σ|v| − Σ min.
"""

import math

import numpy as np

from app.core.arrays import Matrix, Whole
from app.core.compiled import compiled

Sparse = tuple[Matrix, Whole, Whole, Matrix]
"""Sparse rows in CSR form: signed powers, numbers of their columns, indptr, and top of each row."""


@compiled
def _shared(a: float, b: float) -> float:
    return max(0.0, min(a, b)) + max(0.0, min(-a, -b))


@compiled
def _dense_pair(u: Matrix, u_top: float, v: Matrix, v_top: float, p: float) -> float:
    top = max(u_top, v_top)
    u_scale, v_scale = math.exp(p * (u_top - top)), math.exp(p * (v_top - top))
    low = 0.0
    total = 0.0
    for j in range(u.shape[0]):
        a = u_scale * u[j]
        b = v_scale * v[j]
        low += _shared(a, b)
        total += abs(a) + abs(b)
    return low / (total - low)


@compiled
def dense_min_max(x: Matrix, x_top: Matrix, y: Matrix, y_top: Matrix, p: float, paired: bool, out: Matrix) -> None:
    """Kernel of rows of x (n, d) and y (m, d), into out (n, m), or (n, 1) if only row i of x goes with row i of y."""
    for i in range(out.shape[0]):
        for column in range(out.shape[1]):
            j = i if paired else column
            out[i, column] = _dense_pair(x[i], x_top[i], y[j], y_top[j], p)


@compiled
def _sparse_pair(
    scattered: Matrix, u_sum: float, u_top: float, columns: Whole, v: Matrix, v_sum: float, v_top: float, p: float
) -> float:
    top = max(u_top, v_top)
    u_scale, v_scale = math.exp(p * (u_top - top)), math.exp(p * (v_top - top))
    low = 0.0
    for k in range(columns.shape[0]):
        low += _shared(u_scale * scattered[columns[k]], v_scale * v[k])
    return low / (u_scale * u_sum + v_scale * v_sum - low)


@compiled
def sparse_min_max(x_rows: Sparse, y_rows: Sparse, p: float, n_columns: int, paired: bool, out: Matrix) -> None:
    """The kernel of sparse rows, as `dense_min_max`; the columns that occur are numbered from 0 to `n_columns` − 1."""
    (x, x_columns, x_indptr, x_top), (y, y_columns, y_indptr, y_top) = x_rows, y_rows
    scattered = np.zeros(n_columns)
    y_sums = np.empty(y_indptr.shape[0] - 1)
    for j in range(y_sums.shape[0]):
        y_sums[j] = np.abs(y[y_indptr[j] : y_indptr[j + 1]]).sum()
    for i in range(out.shape[0]):
        x_row = slice(x_indptr[i], x_indptr[i + 1])
        for k in range(x_indptr[i], x_indptr[i + 1]):
            scattered[x_columns[k]] = x[k]
        x_sum = np.abs(x[x_row]).sum()
        for column in range(out.shape[1]):
            j = i if paired else column
            y_row = slice(y_indptr[j], y_indptr[j + 1])
            out[i, column] = _sparse_pair(
                scattered, x_sum, x_top[i], y_columns[y_row], y[y_row], y_sums[j], y_top[j], p
            )
        for k in range(x_indptr[i], x_indptr[i + 1]):
            scattered[x_columns[k]] = 0.0
