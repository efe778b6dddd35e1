"""Kernels of rows and landmarks, in blocks that fit the cache: by products where a kernel allows it, else exactly."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from scipy import sparse

from app.core.arrays import Floats, Rows, made_dense, row_blocks
from app.core.errors import InvalidInput
from app.core.kernels.base import AnyKernel

# Rows of a block: few enough to stay in the cache, of many landmarks fewer; multiples of the rows of a tile.
_MOST_ROWS, _LEAST_ROWS, _ENTRIES = 192, 48, 1 << 17
# Entries of rows, or of landmarks, that are made dense at a time.
_DENSE_ENTRIES = 1 << 20


class KernelBlocks(ABC):
    """The kernel of rows with s landmarks, all prepared by the kernel.

    No bit of a row depends on the rows beside it, nor on its form, dense or sparse.
    """

    operations_per_entry: int
    """Multiplications of a matrix product that take as long as an entry takes beside products and distances."""

    def __init__(self, kernel: AnyKernel, landmarks: Rows) -> None:
        self._kernel, self._landmarks = kernel, landmarks
        s, d = landmarks.shape
        self.rows_per_block = min(max(_LEAST_ROWS, min(_MOST_ROWS, _ENTRIES // s)), max(1, _DENSE_ENTRIES // d))
        """The most rows that should be compared at a time."""
        self.nbytes = 0
        """Memory of what is held beside the landmarks."""

    @abstractmethod
    def write(self, rows: Rows, out: Floats) -> None:
        """Write the kernel of rows (n, d), in the dtype of `out`, into the first s columns of n rows, C-contiguous."""

    @abstractmethod
    def operations(self, rows: Rows) -> int:
        """Multiplications of a matrix product that take as long as `write`."""


class ExactBlocks(KernelBlocks):
    """The kernel as it compares rows itself, in float64, in the form of the landmarks."""

    operations_per_entry = 512

    def write(self, rows: Rows, out: Floats) -> None:
        """Compare the rows with some landmarks at a time."""
        rows, (s, d) = self._in_form(rows), self._landmarks.shape
        with np.errstate(over="ignore"):  # refused by name below
            for some in row_blocks(s, _DENSE_ENTRIES // d):
                out[:, some] = self._kernel.exact(rows, self._landmarks[some])
        if not np.isfinite(out[:, :s]).all():
            raise InvalidInput(f"a value of kernel {self._kernel.kind} leaves the range of {out.dtype}")

    def operations(self, rows: Rows) -> int:
        """Those that the kernel names for its exact values, and some for the exponential of each entry."""
        entries = rows.shape[0] * self._landmarks.shape[0]
        return int(self._kernel.exact_operations(rows, self._landmarks) + entries * self.operations_per_entry)

    def write_some(self, row: Rows, numbers: Any, out: Floats) -> None:
        """Write the kernel of one row (1, d) with the landmarks of these numbers in their places of `out`, (s,)."""
        row, d = self._in_form(row), row.shape[1]
        for some in row_blocks(len(numbers), _DENSE_ENTRIES // d):
            out[numbers[some]] = self._kernel.exact(row, self._landmarks[numbers[some]])[0]

    def _in_form(self, rows: Rows) -> Rows:
        """The rows in the form in which the kernel compares the landmarks: sums of another may differ in a bit."""
        if self._kernel.compares_sparse and not isinstance(self._landmarks, np.ndarray):
            return sparse.csr_array(rows)
        return made_dense(rows)
