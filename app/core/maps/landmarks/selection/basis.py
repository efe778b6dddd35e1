"""Landmarks with the Cholesky factor of their kernel matrix, which grows with them."""

import numpy as np
import scipy

from app.core.arrays import Matrix, Rows, Whole
from app.core.kernels.base import AnyKernel
from app.core.maps.landmarks.selection.values import operations_per_row, own_values, stacked, values

ROUNDING = 1e-10
"""A residual below this part of k(x, x) counts as 0: the last landmarks then lose few digits to those before."""

# What is computed in one part, a tenth of a second or less: kernel values, multiplications, entries of rows.
_VALUES_PER_PART, _OPERATIONS_PER_PART, _ENTRIES_PER_PART = 1 << 17, 1 << 26, 1 << 20
_MOST_PER_OFFER = 256


class Coordinates:
    """Coordinates w(x) = k(x, L) Mᵀ of rows, for landmarks L and a matrix M, (s, s), by kernel values in float64."""

    def __init__(self, kernel: AnyKernel, landmarks: Rows, matrix: Matrix) -> None:
        self.kernel, self.landmarks, self._matrix = kernel, landmarks, matrix

    def __len__(self) -> int:
        return len(self._matrix)

    def of(self, rows: Rows) -> Matrix:
        """The coordinates of the rows, (n, s)."""
        if not len(self):
            return np.empty((rows.shape[0], 0))
        # One product for a block of rows: its bits hang on the size of the block, which no number of threads changes.
        return values(self.kernel, rows, self.landmarks) @ self._matrix.T

    def residuals(self, rows: Rows, least: float = ROUNDING) -> Matrix:
        """k(x, x) − ‖w(x)‖² of the rows, (n,); 0 where it is not above this part of k(x, x)."""
        diagonal, w = own_values(self.kernel, rows), self.of(rows)
        left: Matrix = diagonal - np.einsum("ij,ij->i", w, w)
        left[left <= least * diagonal] = 0
        return left

    def rows_per_part(self, rows: Rows) -> int:
        """Of how many rows the coordinates are computed between two pauses."""
        s, compared = max(1, len(self)), operations_per_row(self.kernel, rows, self.landmarks)
        most = min(_VALUES_PER_PART // s, _OPERATIONS_PER_PART // (s * s + compared))
        if isinstance(rows, np.ndarray):
            # Landmarks are brought into float64 too, so that as many rows take no more memory.
            most = min(most, max(s, _ENTRIES_PER_PART // int(rows.shape[1])))
        return max(1, most)


class Basis(Coordinates):
    """Landmarks among some rows, and coordinates in which ⟨w(x), w(y)⟩ is their Nyström approximation of k(x, y).

    With K(L, L) = C Cᵀ, w(x) = k(x, L) C^(−T). Landmarks are added some at a time; the same in the same steps have
    the same bits.
    """

    def __init__(self, kernel: AnyKernel, rows: Rows) -> None:
        super().__init__(kernel, rows[:0], np.empty((0, 0)))
        self._rows = rows

    @property
    def rows_per_offer(self) -> int:
        """How many rows to offer, or to add, at a time."""
        return min(_MOST_PER_OFFER, self.rows_per_part(self._rows))

    def accepted(self, numbers: Whole, thresholds: Matrix) -> Whole:
        """Which of these rows, (n,), become landmarks, if they are offered one after the other; nothing is added.

        A row is accepted if its residual, after those accepted before it, is above its threshold and no rounding.
        """
        rows = self._rows[numbers]
        w, diagonal = self.of(rows), own_values(self.kernel, rows)
        rest = values(self.kernel, rows, rows) - w @ w.T
        left = diagonal - np.einsum("ij,ij->i", w, w)
        least = np.maximum(thresholds, ROUNDING * diagonal)
        found, start = [], 0
        while (above := np.flatnonzero(left[start:] > least[start:])).size:
            pivot = start + int(above[0])
            start = pivot + 1
            column = rest[start:, pivot] / np.sqrt(left[pivot])
            rest[start:, start:] -= np.outer(column, column)
            left[start:] -= column**2
            found.append(pivot)
        return np.array(found, np.int64)

    def add(self, numbers: Whole) -> None:
        """Make landmarks of these rows, which were accepted."""
        rows = self._rows[numbers]
        w = self.of(rows)
        factor = _cholesky(values(self.kernel, rows, rows) - w @ w.T, ROUNDING * own_values(self.kernel, rows))
        # The inverse of [[C, 0], [w, factor]], whose upper part is there.
        beside = np.hstack([-w @ self._matrix, np.eye(len(numbers))])
        lower = scipy.linalg.solve_triangular(factor, beside, lower=True, check_finite=False)
        self._matrix = np.vstack([np.pad(self._matrix, ((0, 0), (0, len(numbers)))), lower])
        self.landmarks = stacked([self.landmarks, rows])


def _cholesky(matrix: Matrix, least: Matrix) -> Matrix:
    """The lower Cholesky factor of a matrix, (n, n), whose pivots are at least these, (n,), but for rounding."""
    factor = matrix.copy()
    for j in range(len(factor)):
        factor[j, j] = np.sqrt(max(factor[j, j], least[j]))
        factor[j + 1 :, j] /= factor[j, j]
        factor[j + 1 :, j + 1 :] -= np.outer(factor[j + 1 :, j], factor[j + 1 :, j])
    return np.tril(factor)
