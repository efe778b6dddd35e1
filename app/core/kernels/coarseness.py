"""Whether a map's dtype is too coarse for rows, and what a client is told."""

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Matrix, Rows, row_blocks
from app.core.kernels.base import AnyKernel
from app.core.kernels.rounding import MOST

# Entries that are looked at together.
_ENTRIES_PER_BLOCK = 1 << 18


class Coarseness:
    """Says of rows whether the rounding to a dtype is small in the eyes of a kernel, by the kernel's `Rounding`.

    Args:
        kernel: that of the spec, before anything of it is rounded.
        dtype: of the map.
        counts_exact: whether rows count that the dtype holds exactly. The phases w·x of a Fourier map lose digits of
            them all the same; differences with landmarks do not.
    """

    def __init__(self, kernel: AnyKernel, dtype: np.dtype[np.floating], counts_exact: bool) -> None:
        self._dtype, self._rounding = dtype, kernel.rounding(dtype)
        self._counts_exact = counts_exact or (self._rounding is not None and self._rounding.looks_at_exact)

    def warnings(self, rows: Rows, called: str = "vectors") -> tuple[str, ...]:
        """What to tell of rows (n, d) behind the gate, which the request calls so; nothing of most rows.

        Those cost no more than the sum of the squares of their entries, or what a center leaves of them.
        """
        rounding = self._rounding
        if rounding is None or (not self._counts_exact and rows.dtype == self._dtype) or not rounding.may_matter(rows):
            return ()
        n, sizes = rows.shape[0], np.zeros(rows.shape[0])
        with np.errstate(over="ignore"):
            for block in row_blocks(n, _ENTRIES_PER_BLOCK // rows.shape[1]):
                sizes[block] = self._sizes(rows[block])
        worst = int(np.argmax(sizes)) if n else 0
        count = int((sizes > MOST).sum())
        if not count:
            return ()
        what, cure = rounding.told(rows[worst : worst + 1], float(sizes[worst]))
        return (f"{self._dtype.name} is too coarse for {count} of {n} rows of {called}: at row {worst} {what}: {cure}",)

    def _sizes(self, rows: Rows) -> Matrix:
        """What rounding does to each row, (n,); 0 for those that do not count."""
        if self._rounding is None:
            return np.zeros(rows.shape[0])
        found = self._rounding.sizes(rows)
        if not self._counts_exact:
            found[~_changed(rows, self._dtype)] = 0
        return found


def _changed(rows: Rows, dtype: np.dtype[np.floating]) -> NDArray[np.bool_]:
    """Whether a dtype rounds an entry of a row, (n,)."""
    if isinstance(rows, np.ndarray):
        return np.asarray((rows.astype(dtype) != rows).any(axis=1))
    numbers = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    return np.bincount(numbers[rows.data.astype(dtype) != rows.data], minlength=rows.shape[0]) > 0
