"""Whether a map's dtype is too coarse for rows: the rule, and what a client is told."""

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Matrix, Rows, row_blocks
from app.core.kernels.base import AnyKernel
from app.core.sparse_rows import divide_columns

MOST = 1e-3
"""Spacing of the dtype at a row, in length scales, above which a client is warned: kernels are then off by 1e-4."""

# Entries that are looked at together.
_ENTRIES_PER_BLOCK = 1 << 18


class Coarseness:
    """Says of rows whether the spacing of a dtype at their size is small against the length scale of a kernel.

    The spacing at a row x, in length scales, is ε·‖(x_j/σ_j)‖, ε the distance from 1 to the next number of the dtype,
    in the metric of the kernel. Kernels without a length scale are as good far from 0 as near it: rounding changes
    ratios of entries, of which gmm and correlation_rbf are made, and products, by some ε of themselves.

    Args:
        kernel: that of the map.
        dtype: of the map.
        counts_exact: whether rows count that the dtype holds exactly. The phases w·x of a Fourier map lose digits of
            them all the same; differences with landmarks do not.
    """

    def __init__(self, kernel: AnyKernel, dtype: np.dtype[np.floating], counts_exact: bool) -> None:
        self._kernel, self._dtype, self._counts_exact = kernel, dtype, counts_exact
        self._epsilon = float(np.finfo(dtype).eps)
        self._scales = kernel.length_scales
        if self._scales is not None:
            per_scale = 1 / float(self._scales.min())
            self._most_squares = (MOST / self._epsilon / max(per_scale, 1e-150)) ** 2

    def warnings(self, rows: Rows, called: str = "vectors") -> tuple[str, ...]:
        """What to tell of rows (n, d) behind the gate, which the request calls so; nothing of most rows.

        Those cost no more than the sum of the squares of their entries.
        """
        if self._scales is None or (not self._counts_exact and rows.dtype == self._dtype):
            return ()
        values = (rows if isinstance(rows, np.ndarray) else rows.data).reshape(-1)
        # The sum over all rows is no less than any row's, and a sum of squares than that of sizes over d.
        width = rows.shape[1] if self._kernel.metric == "cityblock" else 1
        if np.vdot(values, values) * width <= self._most_squares:
            return ()
        sizes = self._spacings(rows)
        worst = int(np.argmax(sizes)) if sizes.size else 0
        count = int((sizes > MOST).sum())
        if not count:
            return ()
        where = f"{count} of {len(sizes)} rows of {called}: at row {worst}"
        return (self._told(rows[worst : worst + 1], where, float(sizes[worst])),)

    def _spacings(self, rows: Rows) -> Matrix:
        """The spacing at each row, in length scales, (n,); 0 for those that do not count."""
        n, found = rows.shape[0], np.zeros(rows.shape[0])
        with np.errstate(over="ignore"):
            for block in row_blocks(n, _ENTRIES_PER_BLOCK // rows.shape[1]):
                some = rows[block]
                found[block] = self._epsilon * self._kernel.size_of(self._scaled(some))
                if not self._counts_exact:
                    found[block][~_changed(some, self._dtype)] = 0
        return found

    def _scaled(self, rows: Rows) -> Rows:
        """Rows divided by the length scales, in float64 and memory of their own."""
        scales = np.ones(()) if self._scales is None else self._scales
        scaled: Rows = rows.astype(np.float64)
        divide_columns(scaled, scales)
        return scaled

    def _told(self, row: Rows, where: str, spacing: float) -> str:
        """The warning, one line of ASCII, about the row (1, d) that is worst."""
        scaled = self._scaled(row)
        place = int(np.argmax(np.abs(scaled if isinstance(scaled, np.ndarray) else scaled.data)))
        column = place if isinstance(row, np.ndarray) else int(row.indices[place])
        entry = float(row[0, column])
        scale = float(self._scales.reshape(-1)[column if self._scales.ndim else 0]) if self._scales is not None else 0.0
        name = self._dtype.name
        near = float(np.spacing(np.abs(self._dtype.type(entry))))
        cure = "center the rows by an input of the map"
        if name == "float32":
            cure += ", or take dtype float64"
        return (
            f"{name} is too coarse for {where} its numbers are {spacing:.3g} length scales apart (entry {entry:.6g} in "
            f"column {column} is {near:.3g} from the next, the length scale there is {scale:.3g}), and features and "
            f"kernels are off by as much: {cure}"
        )


def _changed(rows: Rows, dtype: np.dtype[np.floating]) -> NDArray[np.bool_]:
    """Whether a dtype rounds an entry of a row, (n,)."""
    if isinstance(rows, np.ndarray):
        return np.asarray((rows.astype(dtype) != rows).any(axis=1))
    numbers = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    return np.bincount(numbers[rows.data.astype(dtype) != rows.data], minlength=rows.shape[0]) > 0
