"""Orthonormal bases and inverse roots of matrices, which give every processor the same bits.

The decompositions of a library round differently on other processors. Here all sums have one order: they are products
of `panels`, or those of a compiled loop.
"""

import numpy as np

from app.core.arrays import Matrix
from app.core.compiled import compiled
from app.core.panels import add_products
from app.core.progress import no_pause

# Columns that the loop makes orthonormal; those before them are taken off by products.
_WIDTH = 64
# Largest entry of I − ZY from which on one more step leaves rounding alone, and steps that no matrix takes that is not
# singular to rounding.
_NEAR, _MOST_STEPS = 1e-9, 60


def row_products(x: Matrix, y: Matrix) -> Matrix:
    """Products of the rows of two matrices (n, k) and (m, k), float64, (n, m), made in one thread."""
    found = np.zeros((len(x), len(y)))
    add_products(found, x, y, 1, no_pause)
    return found


def orthonormal(columns: Matrix) -> Matrix:
    """Q of the columns of matrices (k, d, n), n ≤ d, float64: (k, d, n); R has no entry below 0 on its diagonal.

    By Gram and Schmidt, column by column from those before, and twice, which is enough for columns that are independent
    to rounding (Giraud, Langou, Rozložník, van den Eshof: Rounding error analysis of the classical Gram–Schmidt
    orthogonalization process, 2005).
    """
    found = np.array(columns, np.float64, order="C")
    n = found.shape[2]
    for first in range(0, n, _WIDTH):
        some = np.ascontiguousarray(found[:, :, first : first + _WIDTH])
        for _ in range(2):
            for one, before in zip(some, found[:, :, :first], strict=True):
                if first:
                    shares = row_products(before.T, one.T)
                    add_products(one, before, -shares.T, 1, no_pause)
            _orthonormalize(some)
        found[:, :, first : first + _WIDTH] = some
    return found


@compiled
def _orthonormalize(matrices: Matrix) -> None:
    """Make the columns of matrices (k, d, n) orthonormal, by the modified Gram–Schmidt method."""
    k, d, n = matrices.shape
    shares = np.empty(n)
    for m in range(k):
        matrix = matrices[m]
        for i in range(n):
            # Products of column i with itself and all behind it, row after row: vector units take the columns.
            for j in range(i, n):
                shares[j] = 0.0
            for r in range(d):
                row, value = matrix[r], matrix[r, i]
                for j in range(i, n):
                    shares[j] += value * row[j]
            scale = 1 / np.sqrt(shares[i])
            for j in range(i + 1, n):
                shares[j] *= scale
            for r in range(d):
                row = matrix[r]
                row[i] *= scale
                value = row[i]
                for j in range(i + 1, n):
                    row[j] -= value * shares[j]


def inverse_root(matrix: Matrix) -> Matrix | None:
    """The symmetric root of the inverse of a symmetric positive definite matrix (d, d); None where it is singular.

    By the coupled iteration of Newton and Schulz (Higham: Functions of matrices, 2008, (6.35)): Y = A/c and Z = I at
    first; with T = (3I − ZY)/2, YT and TZ take their places. Z goes to the root of (A/c)⁻¹ if no eigenvalue of A/c is
    above 3; the smallest more than double in each step.
    """
    eye = np.eye(len(matrix))
    scale = np.trace(matrix) / len(matrix)
    if not scale > 0:
        return None
    y: Matrix = matrix / scale
    z: Matrix = eye
    if _norm(y - eye) > 0.5:
        # Twice the root of the norm of Y⁴ is above no eigenvalue, and mostly not far above.
        square = row_products(y, y)
        most = np.sqrt(np.sqrt(_norm(row_products(square, square))))
        y /= most / 2
        scale *= most / 2
    for done in range(_MOST_STEPS):
        both = row_products(z, y.T) if done else y
        step = 1.5 * eye - 0.5 * both
        z = row_products(step, z.T) if done else step
        if np.abs(both - eye).max() < _NEAR:
            # Z² has the inverses of the eigenvalues of A/c, of which the largest is about 1.
            return z / np.sqrt(scale) if _norm(z) ** 2 * len(eye) * np.finfo(np.float64).eps < 1 else None
        y = row_products(y, step.T)
    return None


def _norm(matrix: Matrix) -> float:
    """The Frobenius norm; that of NumPy is a product of a library."""
    return float(np.sqrt(np.square(matrix).sum()))
