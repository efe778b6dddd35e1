"""Products of rows with a matrix; their bits depend only on the row and the matrix.

A library's product may round a row differently at another place in its batch, alone, or on another processor, because
it adds the terms of an entry in another order there. Here every entry is computed in the same way: the terms of each
128 coordinates are added in order, from 0 on, by fused multiply-adds, and then these sums are added in order. A fused
product of 0 changes nothing, so that rows in sparse form have the same bits too.

The same holds for orthonormal bases and inverse roots of matrices, as the decompositions of a library round differently
on other processors. Here all sums have a fixed order: they are these products, or sums of a compiled loop.
"""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from scipy import sparse

from app.core.arrays import Array, Floats, Matrix, Rows, of_columns, row_blocks
from app.core.compiled import jit
from app.core.progress import Pause, no_pause
from app.core.threads import for_each
from app.core.tiles import COLUMN_BYTES, ROWS, tile

DEPTH = 128
"""Number of coordinates whose terms are added one after the other. Features depend on it, so never change it."""

_MANY_ROWS, _ONE_ROW, _ONE_SPARSE_ROW = tile(ROWS), tile(1), tile(1, gathers_lines=True)


@jit
def multiply_dense(
    beside: Floats, lines: Floats, coordinates: Array, starts: Array, k: int, out: Floats, adds: bool
) -> None:
    """Write the products of rows with k columns to `out`, or add them to it if `adds`.

    `beside` holds the rows as `side_by_side` returns them. Panel p has the lines from starts[p] to starts[p + 1]
    (excluded); line t belongs to coordinates[t].
    """
    n = len(out)
    _, d, height = beside.shape
    width = lines.shape[1]
    # Buffer for tiles that are cut off at an edge.
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


@jit
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
    """Write the products of the rows of a tile, or of one row, with the lines of a panel from `start` to `end`."""
    width = COLUMN_BYTES // entries.itemsize
    first = start
    while first == start or first < end:  # runs once for a panel without lines
        depth, line = min(DEPTH, end - first), first * width
        if height == 1:
            _ONE_ROW(values, at, coordinates, first, entries, line, out, i, j, depth, adds or first > start)
        else:
            _MANY_ROWS(values, at, coordinates, first, entries, line, out, i, j, depth, adds or first > start)
        first += DEPTH


@jit
def multiply_sparse(
    values: Floats, coordinates: Array, places: Array, ends: Array, lines: Floats, starts: Array, k: int, out: Floats
) -> None:
    """Write the products of sparse rows with k columns to `out`.

    Row i has the entries from ends[i] to ends[i + 1] (excluded). Entry t has the value values[t] and the coordinate
    coordinates[t], and is multiplied by line starts[p] + places[t] of panel p.
    """
    width = lines.shape[1]
    # For each entry, the end of its group: the entries of the row whose coordinates are in the same block of `DEPTH`.
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
                    values, start, places, start, entries, starts[p] * width, tile, row, column, depth, adds
                )
                start = end
                if start >= ends[i + 1]:
                    break
            if not whole:
                for c in range(k - p * width):
                    out[i, p * width + c] = edge[0, c]


# Fewest rows for tiles: fewer are multiplied one by one, as a tile takes the time of three.
_LEAST_ROWS_FOR_A_TILE = 3
# If at least this share of lines is needed, all lines are stored: sparse rows then find a line by its coordinate.
_LEAST_SHARE_OF_A_FULL_MATRIX = 0.7
# Most products that one thread does at a time, in less than a tenth of a second; and the fewest that are worth a
# thread.
_MOST_PRODUCTS_PER_PART, _LEAST_PRODUCTS_PER_PART = 1 << 28, 1 << 22
# Lines of a narrow matrix that are padded at a time; a multiple of `DEPTH`.
_LINES_AT_A_TIME = 1 << 13
# Entries of sparse rows that are multiplied by a narrow matrix at a time; and of rows that are made dense.
_ENTRIES_AT_A_TIME, _DENSE_ENTRIES = 1 << 16, 1 << 22


class Panels:
    """Matrix (columns, d), float32 or float64, stored in the order in which products read it: in panels of columns.

    A panel has a line for every coordinate in which one of its columns has an entry. If most columns have no entry in
    most coordinates, as in kernels that are sums over subsets of the coordinates, a panel is short, unless zeros are
    kept.

    A narrow, long matrix is stored without padding. Padded to the columns of a tile it could take thirty times its
    size, so that some lines at a time are padded while they are multiplied.
    """

    def __init__(self, matrix: Floats, keeps_zeros: bool = False) -> None:
        self.shape = columns, d = matrix.shape
        self.step = COLUMN_BYTES // matrix.itemsize
        """Multiple at which slices of columns must begin."""
        first_of_panels = np.arange(0, columns, self.step)
        # Whether any column of a panel has an entry in a coordinate, (panels, d).
        has_line = np.logical_or.reduceat((matrix != 0) | keeps_zeros, first_of_panels, axis=0)
        self._is_full = bool(has_line.sum() >= _LEAST_SHARE_OF_A_FULL_MATRIX * has_line.size)
        self._is_narrow = columns <= self.step // 2 and d > _LINES_AT_A_TIME
        # Coordinates in which a column has an entry, by whose places here lines name them; unless all have a line.
        self._used = np.empty(0, np.int64) if self._is_full else np.flatnonzero(has_line.any(axis=0))
        if self._is_narrow:  # its lines belong to all coordinates, or to all that are used
            self._coordinates = np.empty(0, np.int64)
            self._lines: Floats = np.ascontiguousarray((matrix if self._is_full else matrix[:, self._used]).T)
            return
        if self._is_full:
            self._lines = side_by_side(matrix, self.step).reshape(-1, self.step)
            self._coordinates = np.tile(np.arange(d), len(first_of_panels))
            self._starts = np.arange(len(first_of_panels) + 1) * d
            return
        panels, coordinates = np.nonzero(has_line)
        self._coordinates = np.searchsorted(self._used, coordinates)
        self._starts = np.searchsorted(panels, np.arange(len(first_of_panels) + 1))
        self._lines = np.zeros((len(panels), self.step), matrix.dtype)
        for first, (start, end) in zip(first_of_panels, pairwise(self._starts), strict=True):
            of_panel = matrix[first : first + self.step, coordinates[start:end]]
            self._lines[start:end, : len(of_panel)] = of_panel.T

    @property
    def nbytes(self) -> int:
        """Memory of the panels in bytes."""
        return self._lines.nbytes + self._coordinates.nbytes + self._used.nbytes

    @property
    def most_rows(self) -> int:
        """Most rows that a multiplier should be made for: sparse rows may be made dense."""
        return 1 << 62 if self._is_full else max(1, _DENSE_ENTRIES // max(1, len(self._used)))

    def operations(self, rows: Rows) -> int:
        """Return the number of multiplications in the products of the rows with all columns."""
        if self._is_full:
            return int(rows.size * self.shape[0])
        return int(rows.shape[0] * len(self._lines) * self.step)

    @property
    def matrix(self) -> Floats:
        """Copy of the matrix, (columns, d)."""
        columns, d = self.shape
        if self._is_narrow:
            narrow: Floats = np.zeros((columns, d), self._lines.dtype)
            narrow[:, slice(None) if self._is_full else self._used] = self._lines.T
            return narrow
        coordinates = self._coordinates if self._is_full else self._used[self._coordinates]
        padded: Floats = np.zeros((len(self._starts) - 1, self.step, d), self._lines.dtype)
        padded[np.repeat(np.arange(len(padded)), np.diff(self._starts)), :, coordinates] = self._lines
        return padded.reshape(-1, d)[:columns]

    def multiplier(self, rows: Rows) -> Callable[..., None]:
        """Return the function that writes the products of the rows, (n, d), with some of the columns.

        Its arguments: a slice of k columns that begins at a multiple of `step`; the output, C-contiguous, of n rows,
        whose first k columns are written; whether to add to the output, which is for dense rows only.
        """
        if self._is_full and not isinstance(rows, np.ndarray):
            return self._multiplier_of_sparse(rows)
        height = 1 if rows.shape[0] < _LEAST_ROWS_FOR_A_TILE else ROWS
        if not isinstance(rows, np.ndarray):
            rows = of_columns(rows, self._used).astype(rows.dtype)
        elif not self._is_full:
            rows = rows[:, self._used]
        beside = side_by_side(rows, height)
        if self._is_narrow:
            return lambda columns, out, adds=False: self._multiply_narrow(beside, columns.stop, out, adds)
        return lambda columns, out, adds=False: multiply_dense(
            beside, self._lines, self._coordinates, *self._of(columns), out, adds
        )

    def _multiplier_of_sparse(self, rows: sparse.csr_array) -> Callable[[slice, Floats], None]:
        ordered: sparse.csr_array = rows.copy()
        ordered.sort_indices()
        # Always int64, as the loop is compiled for one dtype.
        coordinates, ends = (indices.astype(np.int64) for indices in (ordered.indices, ordered.indptr))
        if self._is_narrow:
            return lambda columns, out: self._multiply_narrow_sparse(ordered.data, coordinates, ends, columns.stop, out)
        return lambda columns, out: multiply_sparse(
            ordered.data, coordinates, coordinates, ends, self._lines, *self._of(columns), out
        )

    def _multiply_narrow_sparse(self, values: Floats, coordinates: Array, ends: Array, k: int, out: Floats) -> None:
        """Write products with a narrow matrix, of some sparse rows at a time, padding only the lines that they need."""
        first = 0
        while first < len(out):
            most = int(np.searchsorted(ends, ends[first] + _ENTRIES_AT_A_TIME, side="right")) - 1
            last = min(len(out), max(first + 1, most))
            entries = slice(ends[first], ends[last])
            if most == first:
                self._multiply_long_row(values[entries], coordinates[entries], k, out[first:last])
                first = last
                continue
            needed, places = np.unique(coordinates[entries], return_inverse=True)
            lines, ends_here = self._filled_up(needed), ends[first : last + 1] - ends[first]
            multiply_sparse(
                values[entries],
                coordinates[entries],
                places,
                ends_here,
                lines,
                np.zeros(2, np.int64),
                k,
                out[first:last],
            )
            first = last

    def _multiply_long_row(self, values: Floats, coordinates: Array, k: int, out: Floats) -> None:
        """Write products of one sparse row with a narrow matrix, some lines at a time, for which it is made dense."""
        starts = np.unique(coordinates // _LINES_AT_A_TIME) * _LINES_AT_A_TIME
        for start, entries in zip(starts, np.searchsorted(coordinates, starts), strict=True):
            lines = self._filled_up(slice(start, start + _LINES_AT_A_TIME))
            here = slice(entries, np.searchsorted(coordinates, start + len(lines)))
            row = np.zeros((1, len(lines), 1), values.dtype)
            row[0, coordinates[here] - start, 0] = values[here]
            every = np.arange(len(lines))
            multiply_dense(row, lines, every, np.array([0, len(lines)]), k, out, bool(start > starts[0]))

    def _multiply_narrow(self, beside: Floats, k: int, out: Floats, adds: bool) -> None:
        for first in range(0, max(1, len(self._lines)), _LINES_AT_A_TIME):
            lines = self._filled_up(slice(first, first + _LINES_AT_A_TIME))
            coordinates = np.arange(first, first + len(lines))
            multiply_dense(beside, lines, coordinates, np.array([0, len(lines)]), k, out, adds or first > 0)

    def _filled_up(self, some: slice | Array) -> Floats:
        """Return some lines of a narrow matrix, padded with zeros."""
        lines = self._lines[some]
        found: Floats = np.zeros((len(lines), self.step), lines.dtype)
        found[:, : self.shape[0]] = lines
        return found

    def _of(self, columns: slice) -> tuple[Array, int]:
        """Return where the lines of each panel begin, from that of the first column on, and the number of columns."""
        return self._starts[columns.start // self.step :], columns.stop - columns.start


def add_products(out: Floats, x: Floats, y: Floats, threads: int, pause: Pause) -> None:
    """Add x yᵀ to `out`, (n, m), C-contiguous; the rows of x, (n, k), are divided among threads."""
    n, products = len(x), max(1, y.size)
    panels = Panels(y, keeps_zeros=True)

    def add(part: slice) -> None:
        panels.multiplier(x[part])(slice(0, len(y)), out[part], True)

    even = max(_LEAST_PRODUCTS_PER_PART // products, -(-n // threads))
    for_each(add, row_blocks(n, min(_MOST_PRODUCTS_PER_PART // products, even)), threads, pause)


def side_by_side(rows: Rows, height: int, depth: int = 0) -> Floats:
    """Return the rows (n, d) in groups of `height`, as an array (groups, max(d, depth), height).

    The entries of one coordinate are contiguous. Each row, and the last group, is padded with zeros.
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


# Columns that the loop makes orthonormal at a time; their projections on earlier columns are removed by products.
_WIDTH = 64
# Largest entry of I − ZY for which only rounding errors remain after one more step; and a number of steps that only
# matrices reach that are singular to rounding.
_NEAR, _MOST_STEPS = 1e-9, 60


def row_products(x: Matrix, y: Matrix) -> Matrix:
    """Return the products of the rows of two matrices (n, k) and (m, k), float64, as (n, m), computed in one thread."""
    found = np.zeros((len(x), len(y)))
    add_products(found, x, y, 1, no_pause)
    return found


def orthonormal(columns: Matrix) -> Matrix:
    """Return Q, (k, d, n), of the QR decompositions of float64 matrices (k, d, n), n ≤ d.

    No diagonal entry of R is negative. By the Gram–Schmidt method, column by column, carried out twice. Twice is enough
    for columns that are independent to rounding (Giraud, Langou, Rozložník, van den Eshof: Rounding error analysis of
    the classical Gram–Schmidt orthogonalization process, 2005).
    """
    found = np.array(columns, np.float64, order="C")
    n = found.shape[2]
    for first in range(0, n, _WIDTH):
        some = np.ascontiguousarray(found[:, :, first : first + _WIDTH])
        for _ in range(2):
            for one, before in zip(some, found[:, :, :first], strict=True):
                if first:
                    add_products(one, before, -row_products(before.T, one.T).T, 1, no_pause)
            _orthonormalize(some)
        found[:, :, first : first + _WIDTH] = some
    return found


@jit
def _orthonormalize(matrices: Matrix) -> None:
    """Make the columns of matrices (k, d, n) orthonormal in place, by the modified Gram–Schmidt method."""
    k, d, n = matrices.shape
    shares = np.empty(n)
    for m in range(k):
        matrix = matrices[m]
        for i in range(n):
            # Inner products of column i with itself and all later columns, row by row: the loop over columns is
            # vectorised.
            for j in range(i, n):
                shares[j] = 0.0
            for r in range(d):
                row, value = matrix[r], matrix[r, i]
                for j in range(i, n):
                    shares[j] += value * row[j]
            scale = 1 / np.sqrt(shares[i])
            for j in range(i + 1, n):
                shares[j] *= scale
            for r in range(d):
                row = matrix[r]
                row[i] *= scale
                value = row[i]
                for j in range(i + 1, n):
                    row[j] -= value * shares[j]


def inverse_root(matrix: Matrix) -> Matrix | None:
    """Return the symmetric root of the inverse of a symmetric positive definite matrix (d, d); None if it is singular.

    By the coupled Newton–Schulz iteration (Higham: Functions of matrices, 2008, (6.35)). It starts with Y = A/c and Z =
    I; each step computes T = (3I − ZY)/2 and replaces Y by YT and Z by TZ. Z converges to the root of (A/c)⁻¹ if no
    eigenvalue of A/c is above 3; the smallest eigenvalues more than double in each step.
    """
    eye, scale = np.eye(len(matrix)), np.trace(matrix) / len(matrix)
    if not scale > 0:
        return None
    y: Matrix = matrix / scale
    z: Matrix = eye
    if _norm(y - eye) > 0.5:
        # No eigenvalue of Y is above the fourth root of the norm of Y⁴, which is mostly not far above the largest.
        square = row_products(y, y)
        most = np.sqrt(np.sqrt(_norm(row_products(square, square))))
        y /= most / 2
        scale *= most / 2
    for done in range(_MOST_STEPS):
        both = row_products(z, y.T) if done else y
        step = 1.5 * eye - 0.5 * both
        z = row_products(step, z.T) if done else step
        if np.abs(both - eye).max() < _NEAR:
            # The eigenvalues of Z² are the inverses of those of A/c, the largest of which is about 1.
            return z / np.sqrt(scale) if _norm(z) ** 2 * len(eye) * np.finfo(np.float64).eps < 1 else None
        y = row_products(y, step.T)
    return None


def _norm(matrix: Matrix) -> float:
    """Return the Frobenius norm without NumPy's, which is a product of a library."""
    return float(np.sqrt(np.square(matrix).sum()))
