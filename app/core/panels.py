"""Products of rows with a matrix, whose bits hang on nothing but the row and the matrix.

A library's product gives a row other last digits in another place of its batch, alone, or on another processor, as it
adds the terms of an entry in another order there. Here every entry is made alike: the terms of each `DEPTH` coordinates
in their order by fused multiplications and additions from 0 on, and then these sums in theirs. A fused product of 0
changes nothing, so that rows in sparse form have the same bits too.

"""

from collections.abc import Callable

import numpy as np
from scipy import sparse

from app.core.arrays import Array, Floats, Rows
from app.core.compiled import compiled
from app.core.tiles import COLUMN_BYTES, ROWS, tile

DEPTH = 128
"""Coordinates whose terms are added one after the other. Part of what a map's features are: never change it."""


class Panels:
    """A matrix (columns, d), float32 or float64, in the order in which products read it."""

    def __init__(self, matrix: Floats) -> None:
        self._n_columns = len(matrix)
        self.step = COLUMN_BYTES // matrix.itemsize
        """Products start at a multiple of so many columns."""
        self._panels = _side_by_side(matrix, self.step)

    @property
    def nbytes(self) -> int:
        """Memory of the panels."""
        return self._panels.nbytes

    @property
    def matrix(self) -> Floats:
        """The matrix, (columns, d), in memory of its own."""
        d = self._panels.shape[1]
        return np.ascontiguousarray(self._panels.swapaxes(1, 2)).reshape(-1, d)[: self._n_columns]

    def multiplier(self, rows: Rows) -> Callable[[slice, Floats], None]:
        """The function that writes the products of the rows, (n, d), with some of the columns.

        Its arguments: a slice of k columns, from a multiple of `step` on, and where to write, (n, k), C-contiguous.
        """
        panels, step = self._panels, self.step
        if isinstance(rows, np.ndarray):
            beside = _side_by_side(rows, 1 if len(rows) < _LEAST_ROWS_FOR_A_TILE else ROWS)
            return lambda columns, out: _multiply_dense(beside, panels, columns.start // step, out)
        ordered: sparse.csr_array = rows.copy()
        ordered.sort_indices()
        # In one dtype whatever came, as the loop is compiled for one.
        coordinates, ends = (indices.astype(np.int64) for indices in (ordered.indices, ordered.indptr))
        return lambda columns, out: _multiply_sparse(
            ordered.data, coordinates, ends, panels, columns.start // step, out
        )


def _side_by_side(rows: Floats, height: int) -> Floats:
    """The rows (n, d) in groups of so many, whose entries of a coordinate stand side by side; zeros behind the last."""
    n, d = rows.shape
    whole = n // height
    found: Floats = np.zeros((-(-n // height), d, height), rows.dtype)
    found[:whole] = rows[: whole * height].reshape(whole, height, d).swapaxes(1, 2)
    found[whole:, :, : n - whole * height] = rows[whole * height :].T
    return found


_MANY_ROWS, _ONE_ROW, _ONE_SPARSE_ROW = tile(ROWS), tile(1), tile(1, gathers=True)
# Of fewer rows, each is multiplied by itself: a tile takes the time of three.
_LEAST_ROWS_FOR_A_TILE = 3


@compiled
def _multiply_dense(beside: Floats, panels: Floats, first: int, out: Floats) -> None:
    n, k = out.shape
    _, d, height = beside.shape
    width = panels.shape[2]
    # Takes the tiles that are not whole.
    edge = np.empty((height, width), out.dtype)
    values, lines = beside.reshape(-1), panels.reshape(-1)
    for p in range(-(-k // width)):
        line = (first + p) * d * width
        for i in range(0, n, height):
            if i + height <= n and (p + 1) * width <= k:
                _multiply_tile(values, i * d, height, lines, line, d, out, i, p * width)
            else:
                _multiply_tile(values, i * d, height, lines, line, d, edge, 0, 0)
                for r in range(min(height, n - i)):
                    for c in range(min(width, k - p * width)):
                        out[i + r, p * width + c] = edge[r, c]


@compiled
def _multiply_tile(
    values: Floats, start: int, height: int, lines: Floats, at: int, d: int, out: Floats, i: int, j: int
) -> None:
    """Products of one panel with the rows of a tile, or with one row."""
    width = COLUMN_BYTES // lines.itemsize
    for first in range(0, d, DEPTH):
        depth, line = min(DEPTH, d - first), at + first * width
        if height == 1:
            _ONE_ROW(values, start + first, values, lines, line, out, i, j, depth, first > 0)
        else:
            _MANY_ROWS(values, start + first * height, values, lines, line, out, i, j, depth, first > 0)


@compiled
def _multiply_sparse(values: Floats, coordinates: Array, ends: Array, panels: Floats, first: int, out: Floats) -> None:
    d, width, k = panels.shape[1], panels.shape[2], out.shape[1]
    # Where the sums of each `DEPTH` coordinates end.
    groups = np.empty(len(values), np.int64)
    for i in range(len(out)):
        end = ends[i + 1]
        for t in range(ends[i + 1] - 1, ends[i] - 1, -1):
            if t + 1 < ends[i + 1] and coordinates[t] // DEPTH != coordinates[t + 1] // DEPTH:
                end = t + 1
            groups[t] = end
    edge = np.empty((1, width), values.dtype)
    lines = panels.reshape(-1)
    for p in range(-(-k // width)):
        whole = (p + 1) * width <= k
        tile, j = (out, p * width) if whole else (edge, 0)
        at = (first + p) * d * width
        for i in range(len(out)):
            row = i if whole else 0
            start = ends[i]
            while True:
                end = groups[start] if start < ends[i + 1] else start
                _ONE_SPARSE_ROW(values, start, coordinates, lines, at, tile, row, j, end - start, start > ends[i])
                start = end
                if start >= ends[i + 1]:
                    break
            if not whole:
                out[i, p * width :] = edge[0, : k - p * width]
