"""Whether a map's dtype is too coarse for rows, and what a client is told."""

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Rows, row_blocks
from app.core.kernels.base import AnyKernel
from app.core.kernels.rounding import MOST
from app.core.sparse_rows import row_numbers

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
        """The warning about rows (n, d) behind the gate, which the request calls so; none for most rows.

        Those cost no more than the sum of the squares of their entries, or what a center leaves of them.
        """
        rounding = self._rounding
        if rounding is None or (not self._counts_exact and rows.dtype == self._dtype) or not rounding.may_matter(rows):
            return ()
        n, sizes = rows.shape[0], np.zeros(rows.shape[0])
        with np.errstate(over="ignore"):
            for block in row_blocks(n, _ENTRIES_PER_BLOCK // rows.shape[1]):
                sizes[block] = rounding.sizes(rows[block])
                if not self._counts_exact:
                    sizes[block][~_changed(rows[block], self._dtype)] = 0
        worst = int(np.argmax(sizes)) if n else 0
        count = int((sizes > MOST).sum())
        if not count:
            return ()
        what, cure = rounding.told(rows[worst : worst + 1], float(sizes[worst]))
        return (f"{self._dtype.name} is too coarse for {count} of {n} rows of {called}: at row {worst} {what}: {cure}",)


def _changed(rows: Rows, dtype: np.dtype[np.floating]) -> NDArray[np.bool_]:
    """Whether a dtype rounds an entry of a row, (n,)."""
    if isinstance(rows, np.ndarray):
        return np.asarray((rows.astype(dtype) != rows).any(axis=1))
    return np.bincount(row_numbers(rows)[rows.data.astype(dtype) != rows.data], minlength=rows.shape[0]) > 0
