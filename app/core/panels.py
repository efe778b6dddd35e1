"""Products of rows with a matrix, whose bits hang on nothing but the row and the matrix.

A library's product gives a row other last digits in another place of its batch, alone, or on another processor, as it
adds the terms of an entry in another order there. Here every entry is made alike: the terms of each 128 coordinates
in their order by fused multiplications and additions from 0 on, and then these sums in theirs. A fused product of 0
changes nothing, so that rows in sparse form have the same bits too.
"""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from scipy import sparse

from app.core.arrays import Array, Floats, Rows, row_blocks
from app.core.panel_products import multiply_dense, multiply_sparse
from app.core.progress import Pause
from app.core.threads import for_each
from app.core.tiles import COLUMN_BYTES, ROWS

# Of fewer rows, each is multiplied by itself: a tile takes the time of three.
_LEAST_ROWS_FOR_A_TILE = 3
# With a larger share of lines, none is left out: then sparse rows find the line of a coordinate by its number.
_LEAST_SHARE_OF_A_FULL_MATRIX = 0.7
# Products that one thread does at a time, less than a tenth of a second; and how many are worth a thread.
_MOST_PRODUCTS_PER_PART, _LEAST_PRODUCTS_PER_PART = 1 << 28, 1 << 22
# Lines of a narrow matrix that are filled up at a time; a multiple of the `DEPTH` of products.
_LINES_AT_A_TIME = 1 << 13
# Entries of sparse rows that are multiplied with a narrow matrix at a time.
_ENTRIES_AT_A_TIME = 1 << 16


class Panels:
    """A matrix (columns, d), float32 or float64, in the order in which products read it: in panels of some columns.

    A panel has a line for every coordinate of which one of its columns has an entry. Where most have none, as in
    kernels that are sums over subsets of the coordinates, it is short, unless zeros are kept.

    A matrix that is narrow and long is held as it is. Filled up to the columns of a tile it could take thirty times its
    size, so that this is done for some lines at a time, while they are multiplied.
    """

    def __init__(self, matrix: Floats, keeps_zeros: bool = False) -> None:
        self.shape = columns, d = matrix.shape
        self.step = COLUMN_BYTES // matrix.itemsize
        """Slices of columns must begin at a multiple of this."""
        first_of_panels = np.arange(0, columns, self.step)
        # Whether one of the columns of a panel has an entry of a coordinate, (panels, d).
        has_line = np.logical_or.reduceat((matrix != 0) | keeps_zeros, first_of_panels, axis=0)
        self._is_full = bool(has_line.sum() >= _LEAST_SHARE_OF_A_FULL_MATRIX * has_line.size)
        self._is_narrow = columns <= self.step // 2 and d > _LINES_AT_A_TIME
        if self._is_narrow:
            self._coordinates = np.arange(d) if self._is_full else np.flatnonzero(has_line[0])
            self._starts = np.array([0, len(self._coordinates)])
            self._lines: Floats = np.ascontiguousarray((matrix if self._is_full else matrix[:, self._coordinates]).T)
            return
        if self._is_full:
            self._lines = side_by_side(matrix, self.step).reshape(-1, self.step)
            self._coordinates = np.tile(np.arange(d), len(first_of_panels))
            self._starts = np.arange(len(first_of_panels) + 1) * d
            return
        panels, coordinates = np.nonzero(has_line)
        self._coordinates = coordinates.copy()  # compiled loops read them one after the other
        self._starts = np.searchsorted(panels, np.arange(len(first_of_panels) + 1))
        self._lines = np.zeros((len(panels), self.step), matrix.dtype)
        for first, (start, end) in zip(first_of_panels, pairwise(self._starts), strict=True):
            of_panel = matrix[first : first + self.step, coordinates[start:end]]
            self._lines[start:end, : len(of_panel)] = of_panel.T

    @property
    def nbytes(self) -> int:
        """Memory of the panels."""
        return self._lines.nbytes + self._coordinates.nbytes

    def operations(self, rows: Rows) -> int:
        """Multiplications that the products of the rows with all columns take."""
        if self._is_full:
            return int(rows.size * self.shape[0])
        return int(rows.shape[0] * len(self._lines) * self.step)

    @property
    def matrix(self) -> Floats:
        """The matrix, (columns, d), in memory of its own."""
        columns, d = self.shape
        if self._is_narrow:
            narrow: Floats = np.zeros((columns, d), self._lines.dtype)
            narrow[:, self._coordinates] = self._lines.T
            return narrow
        padded: Floats = np.zeros((len(self._starts) - 1, self.step, d), self._lines.dtype)
        panels = np.repeat(np.arange(len(padded)), np.diff(self._starts))
        padded[panels, :, self._coordinates] = self._lines
        return padded.reshape(-1, d)[:columns]

    def multiplier(self, rows: Rows) -> Callable[..., None]:
        """The function that writes the products of the rows, (n, d), with some of the columns.

        Its arguments: a slice of k columns, from a multiple of `step` on; where to write, in the first k columns of n
        rows, C-contiguous; whether to add to what is there, which only dense rows can.
        """
        if self._is_full and not isinstance(rows, np.ndarray):
            return self._multiplier_of_sparse(rows)
        height = 1 if rows.shape[0] < _LEAST_ROWS_FOR_A_TILE else ROWS
        beside = side_by_side(rows, height)
        if self._is_narrow:
            return lambda columns, out, adds=False: self._multiply_narrow(beside, columns.stop, out, adds)
        return lambda columns, out, adds=False: multiply_dense(
            beside, self._lines, self._coordinates, self._of(columns), columns.stop - columns.start, out, adds
        )

    def _multiplier_of_sparse(self, rows: sparse.csr_array) -> Callable[[slice, Floats], None]:
        ordered: sparse.csr_array = rows.copy()
        ordered.sort_indices()
        # In one dtype whatever came, as the loop is compiled for one.
        coordinates, ends = (indices.astype(np.int64) for indices in (ordered.indices, ordered.indptr))
        if self._is_narrow:
            return lambda columns, out: self._multiply_narrow_sparse(ordered.data, coordinates, ends, columns.stop, out)
        return lambda columns, out: multiply_sparse(
            ordered.data,
            coordinates,
            coordinates,
            ends,
            self._lines,
            self._of(columns),
            columns.stop - columns.start,
            out,
        )

    def _multiply_narrow_sparse(self, values: Floats, coordinates: Array, ends: Array, k: int, out: Floats) -> None:
        """Likewise, with the lines of the coordinates of some rows at a time, or of one."""
        first = 0
        while first < len(out):
            most = int(np.searchsorted(ends, ends[first] + _ENTRIES_AT_A_TIME, side="right")) - 1
            last = min(len(out), max(first + 1, most))
            entries = slice(ends[first], ends[last])
            needed, of_entries = np.unique(coordinates[entries], return_inverse=True)
            multiply_sparse(
                values[entries],
                coordinates[entries],
                of_entries,
                ends[first : last + 1] - ends[first],
                self._filled_up(needed),
                np.zeros(2, np.int64),
                k,
                out[first:last],
            )
            first = last

    def _multiply_narrow(self, beside: Floats, k: int, out: Floats, adds: bool) -> None:
        for first in range(0, max(1, len(self._lines)), _LINES_AT_A_TIME):
            coordinates = self._coordinates[first : first + _LINES_AT_A_TIME]
            lines = self._filled_up(slice(first, first + _LINES_AT_A_TIME))
            multiply_dense(beside, lines, coordinates, np.array([0, len(lines)]), k, out, adds or first > 0)

    def _filled_up(self, some: slice | Array) -> Floats:
        """Some lines of a narrow matrix, with zeros behind them."""
        lines = self._lines[some]
        found: Floats = np.zeros((len(lines), self.step), lines.dtype)
        found[:, : self.shape[0]] = lines
        return found

    def _of(self, columns: slice) -> Array:
        """Where the lines of each panel begin, from that of the first of these columns on."""
        starts: Array = self._starts[columns.start // self.step :]
        return starts


def add_products(out: Floats, x: Floats, y: Floats, threads: int, pause: Pause) -> None:
    """Add x yᵀ to `out`, (n, m), C-contiguous; parts of the rows of x, (n, k), are shared out over threads."""
    n, products = len(x), max(1, y.size)
    panels = Panels(y, keeps_zeros=True)

    def add(part: slice) -> None:
        panels.multiplier(x[part])(slice(0, len(y)), out[part], True)

    even = max(_LEAST_PRODUCTS_PER_PART // products, -(-n // threads))
    for_each(add, row_blocks(n, min(_MOST_PRODUCTS_PER_PART // products, even)), threads, pause)


def side_by_side(rows: Rows, height: int, depth: int = 0) -> Floats:
    """The rows (n, d) in groups of `height`, (groups, max(d, depth), height): entries of one coordinate are neighbours.

    Zeros stand behind the entries of each row, and behind the last row.
    """
    n, d = rows.shape
    whole = n // height
    found: Floats = np.zeros((-(-n // height), max(d, depth), height), rows.dtype)
    if isinstance(rows, np.ndarray):
        found[:whole, :d] = rows[: whole * height].reshape(whole, height, d).swapaxes(1, 2)
        found[whole:, :d, : n - whole * height] = rows[whole * height :].T
    else:
        entries = rows.tocoo()
        np.add.at(found, (entries.row // height, entries.col, entries.row % height), entries.data)
    return found
