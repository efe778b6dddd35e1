"""The compiled loops of products of rows with panels."""

import numpy as np

from app.core.arrays import Array, Floats
from app.core.compiled import compiled
from app.core.tiles import COLUMN_BYTES, ROWS, tile

DEPTH = 128
"""Coordinates whose terms are added one after the other. Part of what a map's features are: never change it."""

_MANY_ROWS, _ONE_ROW, _ONE_SPARSE_ROW = tile(ROWS), tile(1), tile(1, gathers_lines=True)


@compiled
def multiply_dense(
    beside: Floats, lines: Floats, coordinates: Array, starts: Array, k: int, out: Floats, adds: bool
) -> None:
    """Write the products of rows, which lie side by side, with k columns to `out`, or add them to it.

    The lines of panel p are those from starts[p] to starts[p + 1], and belong to these coordinates.
    """
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
def multiply_sparse(
    values: Floats,
    coordinates: Array,
    of_entries: Array,
    ends: Array,
    lines: Floats,
    starts: Array,
    k: int,
    out: Floats,
) -> None:
    """Write the products of sparse rows with k columns to `out`.

    Entries t from ends[i] to ends[i + 1] are of row i; t has the value, the coordinate, and the line of each panel,
    counted from its first, `starts`, that stand there for it.
    """
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
                    values, start, of_entries, start, entries, starts[p] * width, tile, row, column, depth, adds
                )
                start = end
                if start >= ends[i + 1]:
                    break
            if not whole:
                for c in range(k - p * width):
                    out[i, p * width + c] = edge[0, c]
