"""Products of rows with a matrix, whose bits hang on nothing but the row and the matrix.

A library's product gives a row other last digits in another place of its batch, alone, or on another processor, as it
adds the terms of an entry in another order there. Here every entry is made alike: the terms of each `DEPTH` coordinates
in their order by fused multiplications and additions from 0 on, and then these sums in theirs. A fused product of 0
changes nothing, so that rows in sparse form have the same bits too.
"""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from scipy import sparse

from app.core.arrays import Array, Floats, Rows, row_blocks
from app.core.compiled import compiled
from app.core.progress import Pause
from app.core.threads import for_each
from app.core.tiles import COLUMN_BYTES, ROWS, tile

DEPTH = 128
"""Coordinates whose terms are added one after the other. Part of what a map's features are: never change it."""

# Of fewer rows, each is multiplied by itself: a tile takes the time of three.
_LEAST_ROWS_FOR_A_TILE = 3
# With a larger share of lines, none is left out: then sparse rows find the line of a coordinate by its number.
_LEAST_SHARE_OF_A_FULL_MATRIX = 0.7
# Products that one thread does at a time, less than a tenth of a second; and how many are worth a thread.
_MOST_PRODUCTS_PER_PART, _LEAST_PRODUCTS_PER_PART = 1 << 28, 1 << 22

_MANY_ROWS, _ONE_ROW, _ONE_SPARSE_ROW = tile(ROWS), tile(1), tile(1, gathers_lines=True)


class Panels:
    """A matrix (columns, d), float32 or float64, in the order in which products read it: in panels of some columns.

    A panel has a line for every coordinate of which one of its columns has an entry. Where most have none, as in
    kernels that are sums over subsets of the coordinates, it is short, unless zeros are kept.
    """

    def __init__(self, matrix: Floats, keeps_zeros: bool = False) -> None:
        self.shape = columns, d = matrix.shape
        self.step = COLUMN_BYTES // matrix.itemsize
        """Slices of columns must begin at a multiple of this."""
        first_of_panels = np.arange(0, columns, self.step)
        # Whether one of the columns of a panel has an entry of a coordinate, (panels, d).
        has_line = np.logical_or.reduceat((matrix != 0) | keeps_zeros, first_of_panels, axis=0)
        self._is_full = bool(has_line.sum() >= _LEAST_SHARE_OF_A_FULL_MATRIX * has_line.size)
        if self._is_full:
            self._lines: Floats = side_by_side(matrix, self.step).reshape(-1, self.step)
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
        return int(rows.shape[0] * self._lines.size)

    @property
    def matrix(self) -> Floats:
        """The matrix, (columns, d), in memory of its own."""
        columns, d = self.shape
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
        return lambda columns, out, adds=False: _multiply_dense(
            beside, self._lines, self._coordinates, self._of(columns), columns.stop - columns.start, out, adds
        )

    def _multiplier_of_sparse(self, rows: sparse.csr_array) -> Callable[[slice, Floats], None]:
        ordered: sparse.csr_array = rows.copy()
        ordered.sort_indices()
        # In one dtype whatever came, as the loop is compiled for one.
        coordinates, ends = (indices.astype(np.int64) for indices in (ordered.indices, ordered.indptr))
        return lambda columns, out: _multiply_sparse(
            ordered.data, coordinates, ends, self._lines, self._of(columns), columns.stop - columns.start, out
        )

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


@compiled
def _multiply_dense(
    beside: Floats, lines: Floats, coordinates: Array, starts: Array, k: int, out: Floats, adds: bool
) -> None:
    n = len(out)
    _, d, height = beside.shape
    width = lines.shape[1]
    # Takes the tiles that are not whole.
    edge = np.empty((height, width), out.dtype)
    values, entries = beside.reshape(-1), lines.reshape(-1)
    for p in range(-(-k // width)):
        start, end = starts[p], starts[p + 1]
        for i in range(0, n, height):
            if i + height <= n and (p + 1) * width <= k:
                _multiply_tile(values, i * d, height, coordinates, entries, start, end, out, i, p * width, adds)
            else:
                for r in range(min(height, n - i)):
                    for c in range(min(width, k - p * width)):
                        edge[r, c] = out[i + r, p * width + c]
                _multiply_tile(values, i * d, height, coordinates, entries, start, end, edge, 0, 0, adds)
                for r in range(min(height, n - i)):
                    for c in range(min(width, k - p * width)):
                        out[i + r, p * width + c] = edge[r, c]


@compiled
def _multiply_tile(
    values: Floats,
    at: int,
    height: int,
    coordinates: Array,
    entries: Floats,
    start: int,
    end: int,
    out: Floats,
    i: int,
    j: int,
    adds: bool,
) -> None:
    """Products of the rows of a tile, or of one row, with the lines of a panel from start to end."""
    width = COLUMN_BYTES // entries.itemsize
    first = start
    while first == start or first < end:  # once for a panel without lines
        depth, line = min(DEPTH, end - first), first * width
        if height == 1:
            _ONE_ROW(values, at, coordinates, first, entries, line, out, i, j, depth, adds or first > start)
        else:
            _MANY_ROWS(values, at, coordinates, first, entries, line, out, i, j, depth, adds or first > start)
        first += DEPTH


@compiled
def _multiply_sparse(
    values: Floats, coordinates: Array, ends: Array, lines: Floats, starts: Array, k: int, out: Floats
) -> None:
    width = lines.shape[1]
    # Where the sums of each `DEPTH` coordinates end.
    groups = np.empty(len(values), np.int64)
    for i in range(len(out)):
        end = ends[i + 1]
        for t in range(ends[i + 1] - 1, ends[i] - 1, -1):
            if t + 1 < ends[i + 1] and coordinates[t] // DEPTH != coordinates[t + 1] // DEPTH:
                end = t + 1
            groups[t] = end
    edge = np.empty((1, width), values.dtype)
    entries = lines.reshape(-1)
    for p in range(-(-k // width)):
        whole = (p + 1) * width <= k
        tile, column = (out, p * width) if whole else (edge, 0)
        for i in range(len(out)):
            row = i if whole else 0
            start = ends[i]
            while True:
                end = groups[start] if start < ends[i + 1] else start
                depth, adds = end - start, start > ends[i]
                _ONE_SPARSE_ROW(
                    values, start, coordinates, start, entries, starts[p] * width, tile, row, column, depth, adds
                )
                start = end
                if start >= ends[i + 1]:
                    break
            if not whole:
                for c in range(k - p * width):
                    out[i, p * width + c] = edge[0, c]
