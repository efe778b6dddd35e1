"""The compiled inner loops of the min-max kernel and its hashes.

They run without the interpreter lock and without fast-math: the same input gives the same bits everywhere. Each is
compiled at its first call and kept on disk for the next process.
"""

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


@njit(nogil=True, cache=True)
def _min_max(u: Matrix, v: Matrix, u_scale: float, v_scale: float) -> float:
    """Σ min / Σ max of two rows of signed powers; opposite signs share nothing."""
    low = 0.0
    total = 0.0
    for j in range(u.shape[0]):
        a = u_scale * u[j]
        b = v_scale * v[j]
        low += max(0.0, min(a, b)) + max(0.0, min(-a, -b))
        total += abs(a) + abs(b)
    return low / (total - low)


@njit(nogil=True, cache=True)
def _pair(u: Matrix, u_top: float, v: Matrix, v_top: float, p: float) -> float:
    top = max(u_top, v_top)
    return _min_max(u, v, math.exp(p * (u_top - top)), math.exp(p * (v_top - top)))


@njit(nogil=True, cache=True)
def min_max_gram(x: Matrix, x_top: Matrix, y: Matrix, y_top: Matrix, p: float, out: Matrix) -> None:
    """Generalized min-max kernel of every row of x with every row of y, into out (n, m).

    Rows are signed powers scaled to a largest entry of ±1, with the logarithm of that scale beside them.
    """
    for i in range(x.shape[0]):
        for j in range(y.shape[0]):
            out[i, j] = _pair(x[i], x_top[i], y[j], y_top[j], p)


@njit(nogil=True, cache=True)
def min_max_pairs(x: Matrix, x_top: Matrix, y: Matrix, y_top: Matrix, p: float, out: Matrix) -> None:
    """As `min_max_gram`, for row i of x with row i of y only, into out (n,)."""
    for i in range(x.shape[0]):
        out[i] = _pair(x[i], x_top[i], y[i], y_top[i], p)


@njit(nogil=True, cache=True)
def consistent_samples(
    indptr: NDArray[np.int64],
    coordinates: NDArray[np.int64],
    logs: Matrix,
    r: Matrix,
    log_c: Matrix,
    beta: Matrix,
    first: int,
    out: NDArray[Any],
) -> None:
    """Consistent weighted sampling (GMM paper, algorithm 1) of sparse rows of logarithms.

    Args:
        indptr: row i has the entries indptr[i] … indptr[i + 1] − 1.
        coordinates: coordinate of each entry.
        logs: p·log ũ of each entry.
        r: draws from Gamma(2, 1), shape (coordinates, s); the hash index is innermost, so the loop over it vectorises.
        log_c: logarithms of draws from Gamma(2, 1), same shape.
        beta: draws from U(0, 1), same shape.
        first: the hash of the first column of out.
        out: (n, k, 1) receives i*; (n, k, 2) receives (i*, t*); both are −1 for a row without entries.
    """
    n_hashes = out.shape[1]
    best = np.empty(n_hashes)
    index = np.empty(n_hashes, np.int64)
    level = np.empty(n_hashes)
    for row in range(indptr.shape[0] - 1):
        best[:] = np.inf
        index[:] = -1
        level[:] = -1.0
        for entry in range(indptr[row], indptr[row + 1]):
            log_u = logs[entry]
            r_row = r[coordinates[entry], first : first + n_hashes]
            log_c_row = log_c[coordinates[entry], first : first + n_hashes]
            beta_row = beta[coordinates[entry], first : first + n_hashes]
            for h in range(n_hashes):
                t = np.floor(log_u / r_row[h] + beta_row[h])
                a = log_c_row[h] - r_row[h] * (t + 1.0 - beta_row[h])
                nearer = a < best[h]
                best[h] = a if nearer else best[h]
                index[h] = coordinates[entry] if nearer else index[h]
                level[h] = t if nearer else level[h]
        for h in range(n_hashes):
            out[row, h, 0] = index[h]
            if out.shape[2] == 2:
                out[row, h, 1] = np.int64(level[h])


@njit(nogil=True, cache=True)
def count_collisions(x: NDArray[Any], y: NDArray[Any], out: NDArray[np.int64]) -> None:
    """Add to out (n, m) the number of hashes whose codes in x (n, s, k) and y (m, s, k) agree; k is 1 or 2."""
    for i in range(x.shape[0]):
        for j in range(y.shape[0]):
            equal = 0
            for h in range(x.shape[1]):
                equal += (x[i, h, 0] == y[j, h, 0]) and (x[i, h, -1] == y[j, h, -1])
            out[i, j] += equal
