"""Kernels of a scaled distance, by products of rows and landmarks."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from app.core.arrays import Floats, Matrix, Rows, dense, made_dense
from app.core.kernels.base import AnyKernel
from app.core.maps.landmarks.kernel_blocks import ExactBlocks, KernelBlocks
from app.core.maps.landmarks.profiles import (
    Profile,
    write_differences,
    write_kernels,
    write_sparse_differences,
)
from app.core.norms import squared_norms
from app.core.panels import Panels
from app.core.sparse_rows import Compressed, compressed, of_columns

# A centre is subtracted where this share of the squared norms of the landmarks is left, or less.
_MOST_SHARE = 0.25


class DistanceBlocks(KernelBlocks):
    """A kernel of h = Σ (x_j − l_j)²/(2·scale_j²), which is |x|²/2 + |l|²/2 − x·l of scaled rows and landmarks.

    Far from 0 these three are large beside h. So the landmarks' mean is subtracted where that makes them much smaller.
    Where they still say too little of the kernel of a row with some landmark, that row's kernels are taken from
    differences.
    """

    operations_per_entry = 32

    def __init__(
        self,
        kernel: AnyKernel,
        shape: Profile,
        landmarks: Rows,
        dtype: np.dtype[np.floating],
        is_relative: bool = False,
    ) -> None:
        super().__init__(kernel, landmarks)
        self._exact, self._dtype, self._what = ExactBlocks(kernel, landmarks), dtype, shape.what
        self._parameters = np.array(shape.parameters, dtype)
        self._least = float(is_relative)
        self._center: Floats | None = None
        self._columns: Floats | None = None
        self._entries: Compressed
        with np.errstate(over="ignore"):  # pairs that leave the range are compared exactly
            self._per_scale = 1 / shape.scales
            if isinstance(landmarks, np.ndarray):
                self._products, self._of_landmarks = self._open_dense(landmarks)
            else:
                self._products, self._of_landmarks = self._open_sparse(landmarks)
        self.nbytes += self._of_landmarks.nbytes

    def write(self, rows: Rows, out: Floats) -> None:
        """Write products, and kernels in their place; then anew what they say too little of."""
        s, given = self._landmarks.shape[0], rows
        if self._center is not None:
            rows = made_dense(rows) - self._center
        doubtful = np.empty(rows.shape[0], np.bool_)
        with np.errstate(over="ignore"):
            self._products(rows, out)
            of_rows = self._half_squares(rows).astype(self._dtype)
        write_kernels(self._what, self._parameters, out, of_rows, self._of_landmarks, self._least, doubtful)
        if doubtful.any():
            out[doubtful, :s] = self._by_differences(given[doubtful])

    def operations(self, rows: Rows) -> int:
        """Multiplications of the products, and an exponential for each entry."""
        return int((rows.size + rows.shape[0] * self.operations_per_entry) * self._landmarks.shape[0])

    def _by_differences(self, rows: Rows) -> Floats:
        """The kernel of rows with the landmarks, from differences; from the kernel itself beyond their range."""
        found: Floats = np.empty((rows.shape[0], self._landmarks.shape[0]), self._dtype)
        if self._columns is None:
            differences = np.empty(found.shape)
            write_sparse_differences(
                compressed(sparse.csr_array(rows).sorted_indices()),
                self._entries,
                self._per_scale.reshape(-1),
                differences,
            )
            with np.errstate(over="ignore"):  # compared exactly
                found[:] = differences
        else:
            rows = made_dense(rows)
            write_differences(rows, self._columns, np.broadcast_to(self._per_scale, rows.shape[1]).copy(), found)
        none, doubtful = np.zeros(max(found.shape), self._dtype), np.empty(len(found), np.bool_)
        of_rows, of_landmarks = none[: len(found)], none[: found.shape[1]]
        write_kernels(self._what, self._parameters, found, of_rows, of_landmarks, 0.0, doubtful)
        self._correct(rows, doubtful, found)
        return found

    def _correct(self, rows: Rows, doubtful: NDArray[np.bool_], out: Floats) -> None:
        """Write the exact kernel where there is NaN."""
        for i in np.flatnonzero(doubtful).tolist():
            self._exact.write_some(rows[i : i + 1], np.flatnonzero(np.isnan(out[i])), out[i])

    def _open_dense(self, landmarks: Floats) -> tuple[Callable[[Rows, Floats], None], Floats]:
        """The function that writes products of rows with dense landmarks, and half the landmarks' squared norms.

        The centre is chosen here, which both are of.
        """
        moved, s = dense(landmarks), len(landmarks)
        center = moved.mean(axis=0).astype(self._dtype)
        from_zero, from_center = (np.sum(((moved - origin) * self._per_scale) ** 2) for origin in (0, center))
        if from_center <= _MOST_SHARE * from_zero:
            self._center, moved = center, moved - center
        scaled = moved * self._per_scale
        halves = np.einsum("ij,ij->i", scaled, scaled) / 2
        panels = Panels((scaled * self._per_scale).astype(self._dtype), keeps_zeros=True)
        self._columns = landmarks.T.copy()
        self.nbytes += panels.nbytes + self._columns.nbytes
        return lambda rows, out: panels.multiplier(rows)(slice(0, s), out), halves.astype(self._dtype)

    def _open_sparse(self, landmarks: sparse.csr_array) -> tuple[Callable[[Rows, Floats], None], Floats]:
        """The function that writes products of rows with sparse landmarks, and half the landmarks' squared norms."""
        coordinates, numbers = np.unique(landmarks.indices, return_inverse=True)
        per_scale = self._per_scale[landmarks.indices] if self._per_scale.ndim else self._per_scale
        values, s = landmarks.data * per_scale * per_scale, landmarks.shape[0]
        # Of the coordinates that occur alone: there may be billions of others.
        columns = sparse.csr_array((values, numbers, landmarks.indptr), shape=(s, len(coordinates))).T.tocsr()

        def write(rows: Rows, out: Floats) -> None:
            out[:, :s] = (of_columns(sparse.csr_array(rows).sorted_indices(), coordinates) @ columns).toarray()

        self._entries = compressed(landmarks.sorted_indices())
        self.nbytes += columns.data.nbytes + columns.indices.nbytes + columns.indptr.nbytes + coordinates.nbytes
        self.nbytes += sum(part.nbytes for part in self._entries)
        return write, self._half_squares(landmarks).astype(self._dtype)

    def _half_squares(self, rows: Rows) -> Matrix:
        """Σ (x_j/scale_j)²/2 of each row, (n,), the same bits for dense and sparse rows."""
        if not self._per_scale.ndim:
            return squared_norms(rows) * (self._per_scale**2 / 2)
        per_scale = self._per_scale.astype(self._dtype)
        if isinstance(rows, np.ndarray):
            return squared_norms(rows * per_scale) / 2
        scaled = rows.copy()
        scaled.data = rows.data * per_scale[rows.indices]
        return squared_norms(scaled) / 2
