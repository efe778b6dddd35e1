"""The compiled inner loops of exact sums of Gaussian kernels on subsets of the coordinates."""

import numpy as np

from app.core.arrays import Matrix, Whole
from app.core.compiled import compiled
from app.core.exponential import exponential

# Squares that are held at a time, which stay in the cache; and the fewest and most rows of y that they are of.
_SQUARES, _FEWEST_ROWS, _MOST_ROWS = 1 << 15, 8, 512


@compiled
def gaussian_sums(
    x: Matrix, y: Matrix, factors: Matrix, columns: Whole, ends: Whole, weights: Matrix, out: Matrix
) -> None:
    """Σ_S weight_S exp(−Σ_{j∈S} factor_j (x_j − y_j)²) of rows x (n, d) and columns y (d, m), into out (n, m).

    Subset S has the coordinates columns[ends[S] : ends[S + 1]]. All arrays are C-contiguous.
    """
    d, m = y.shape
    step = min(m, max(_FEWEST_ROWS, min(_MOST_ROWS, _SQUARES // d)))
    squares, exponents = np.empty((d, step)), np.empty(step)
    for start in range(0, m, step):
        n_rows = min(m, start + step) - start
        for i in range(x.shape[0]):
            _squares(x[i], y, factors, start, n_rows, squares)
            sums = out[i, start : start + n_rows]
            for k in range(n_rows):
                sums[k] = 0.0
            for subset in range(len(weights)):
                for k in range(n_rows):
                    exponents[k] = 0.0
                for place in range(ends[subset], ends[subset + 1]):
                    of_column = squares[columns[place]]
                    for k in range(n_rows):
                        exponents[k] -= of_column[k]
                for k in range(n_rows):
                    sums[k] += weights[subset] * exponential(exponents[k])


@compiled
def _squares(row: Matrix, y: Matrix, factors: Matrix, start: int, n_rows: int, out: Matrix) -> None:
    """factor_j (x_j − y_j)² of one row with some columns of y, into out, a row for each coordinate."""
    for j in range(len(row)):
        a, factor, others, of_column = row[j], factors[j], y[j, start : start + n_rows], out[j]
        for k in range(n_rows):
            apart = a - others[k]
            of_column[k] = factor * (apart * apart)
