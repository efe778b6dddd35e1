"""Products of rows with a matrix, whose bits hang on nothing but the row and the matrix.

A library's product gives a row other last digits in another place of its batch, alone, or on another processor, as it
adds the terms of an entry in another order there. Here every entry is made alike: the terms of each `DEPTH` coordinates
in their order by fused multiplications and additions from 0 on, and then these sums in theirs. A fused product of 0
changes nothing, so that rows in sparse form have the same bits too.

The loops keep a tile of rows × columns in registers while they run through the coordinates (Goto and van de Geijn:
Anatomy of high-performance matrix multiplication, 2008). They are written in LLVM's instructions for whole vectors, as
no compiler finds such a tile by itself.
"""

from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from scipy import sparse

from app.core.arrays import Array, Floats, Rows
from app.core.compiled import compiled

DEPTH = 128
"""Coordinates whose terms are added one after the other. Part of what a map's features are: never change it."""

# A vector register, and the rows of a tile: with two vectors of columns they fill the registers of the processor.
_WIDE = bool(llvm.get_host_cpu_features().get("avx512f"))
_VECTOR_BYTES, _ROWS = (64, 12) if _WIDE else (32, 6)
_VECTORS = 2


def columns_per_panel(dtype: np.dtype[Any]) -> int:
    """Columns that stand side by side in a panel, on this processor."""
    return _VECTORS * _VECTOR_BYTES // dtype.itemsize


class Panels:
    """A matrix (columns, d), float32 or float64, in the order in which products read it."""

    def __init__(self, matrix: Floats) -> None:
        self.shape = matrix.shape
        columns, d = matrix.shape
        width = columns_per_panel(matrix.dtype)
        self._panels: Floats = np.zeros((-(-columns // width), d, width), matrix.dtype)
        whole = columns // width
        self._panels[:whole] = matrix[: whole * width].reshape(whole, width, d).swapaxes(1, 2)
        self._panels[whole:, :, : columns - whole * width] = matrix[whole * width :].T
        self.step = width
        """Products start at a multiple of so many columns."""

    @property
    def nbytes(self) -> int:
        """Memory of the panels."""
        return self._panels.nbytes

    @property
    def matrix(self) -> Floats:
        """The matrix, (columns, d), in memory of its own."""
        columns, d = self.shape
        return np.ascontiguousarray(self._panels.swapaxes(1, 2)).reshape(-1, d)[:columns]

    def multiply(self, rows: Rows, columns: slice, out: Floats) -> None:
        """Write the products of the rows (n, d) with some k columns, from a multiple of `step` on, into `out`, (n, k).

        The columns of `out` lie side by side in memory.
        """
        first = columns.start // self.step
        if isinstance(rows, np.ndarray):
            _multiply_dense(rows, self._panels, first, out)
        else:
            ordered: sparse.csr_array = rows if rows.has_canonical_format else rows.sorted_indices()
            _multiply_sparse(ordered.data, ordered.indices, ordered.indptr, self._panels, first, out)


def _tile(n_rows: int, gathers: bool) -> Callable[..., None]:
    """The function that multiplies `n_rows` rows with one panel.

    Its arguments: the values of the rows, side by side for each coordinate, and where they start; the coordinates, if
    it `gathers` the lines of the panel by them; the panels, and where the first line starts; the result, and the row
    and column of it to begin at; the number of coordinates; whether to add to the result.
    """

    @intrinsic
    def multiply(
        _: Any, values: Any, start: Any, coordinates: Any, panels: Any, at: Any, out: Any, i: Any, j: Any, depth: Any, adds: Any
    ) -> tuple[Any, Any]:
        given = (values, start, coordinates, panels, at, out, i, j, depth, adds)

        def generate(context: Any, builder: Any, _: Any, passed: Any) -> Any:
            arrays = {
                name: context.make_array(given[place])(context, builder, passed[place])
                for name, place in (("values", 0), ("coordinates", 2), ("panels", 3), ("out", 5))
            }
            vector = ir.VectorType(context.get_data_type(values.dtype), _VECTOR_BYTES * 8 // values.dtype.bitwidth)
            tile = _Tile(builder, vector, n_rows)
            first_value = builder.gep(arrays["values"].data, [passed[1]])
            first_coordinate = builder.gep(arrays["coordinates"].data, [passed[1]])
            first_line = builder.gep(arrays["panels"].data, [passed[4]])
            with cgutils.for_range(builder, passed[8]) as loop:
                line = loop.index
                if gathers:
                    line = builder.sext(builder.load(builder.gep(first_coordinate, [line])), line.type)
                line = builder.gep(first_line, [builder.mul(line, line.type(vector.count * _VECTORS))])
                tile.add(line, builder.gep(first_value, [builder.mul(loop.index, loop.index.type(n_rows))]))
            tile.store(arrays["out"], *passed[6:8], passed[9])
            return context.get_dummy_value()

        return types.void(*given), generate

    made: Callable[..., None] = multiply
    return made


class _Tile:
    """Instructions on a tile of rows × vectors of columns, whose sums are kept in registers."""

    def __init__(self, builder: Any, vector: Any, n_rows: int) -> None:
        self._builder, self._vector = builder, vector
        self._item = _VECTOR_BYTES // vector.count
        self._sums = [[cgutils.alloca_once(builder, vector) for _ in range(_VECTORS)] for _ in range(n_rows)]
        for place in sum(self._sums, []):
            builder.store(vector(None), place)
        name = f"llvm.fma.v{vector.count}f{8 * self._item}"
        self._fma = cgutils.get_or_insert_function(builder.module, ir.FunctionType(vector, [vector] * 3), name)

    def add(self, line: Any, values: Any) -> None:
        """Add the products of one value of each row with a line of the panel."""
        builder, vector = self._builder, self._vector
        index = ir.IntType(32)
        undefined = vector(ir.Undefined)
        columns = [
            builder.load(builder.bitcast(builder.gep(line, [index(k * vector.count)]), vector.as_pointer()), align=self._item)
            for k in range(_VECTORS)
        ]
        for row, of_row in enumerate(self._sums):
            value = builder.insert_element(undefined, builder.load(builder.gep(values, [index(row)])), index(0))
            everywhere = builder.shuffle_vector(value, undefined, ir.VectorType(index, vector.count)(None))
            for k, place in enumerate(of_row):
                builder.store(builder.call(self._fma, [everywhere, columns[k], builder.load(place)]), place)

    def store(self, out: Any, i: Any, j: Any, adds: Any) -> None:
        """Write the sums into the result from row i and column j on, or add them to it."""
        builder, vector = self._builder, self._vector
        stride = cgutils.unpack_tuple(builder, out.strides)[0]
        at = builder.add(builder.mul(i, stride), builder.mul(j, stride.type(self._item)))
        at = builder.add(builder.ptrtoint(out.data, stride.type), at)
        for of_row in self._sums:
            for k, place in enumerate(of_row):
                there = builder.inttoptr(builder.add(at, at.type(k * _VECTOR_BYTES)), vector.as_pointer())
                with builder.if_then(adds):
                    before = builder.load(there, align=self._item)
                    builder.store(builder.fadd(before, builder.load(place)), place)
                builder.store(builder.load(place), there, align=self._item)
            at = builder.add(at, stride)


_MANY_ROWS, _ONE_ROW, _ONE_SPARSE_ROW = _tile(_ROWS, False), _tile(1, False), _tile(1, True)
# Of fewer rows, each is multiplied by itself: a tile takes the time of three.
_LEAST_ROWS_FOR_A_TILE = 3


@compiled
def _multiply_dense(rows: Floats, panels: Floats, first: int, out: Floats) -> None:
    n, d = rows.shape
    width, k = panels.shape[2], out.shape[1]
    height = 1 if n < _LEAST_ROWS_FOR_A_TILE else _ROWS
    # The rows of a tile stand side by side for each coordinate; behind the last row there are zeros.
    beside = np.zeros(-(-n // height) * height * d, rows.dtype)
    for i in range(n):
        at = i // height * height * d + i % height
        for j in range(d):
            beside[at + j * height] = rows[i, j]
    # Takes the tiles that are not whole.
    edge = np.empty((height, width + 1), rows.dtype)[:, :width]
    lines = panels.reshape(-1)
    for p in range(-(-k // width)):
        at = (first + p) * d * width
        for i in range(0, n, height):
            whole = i + height <= n and (p + 1) * width <= k
            _multiply_tile(beside, i * d, height, lines, at, d, out if whole else edge, i if whole else 0, p * width if whole else 0)
            if not whole:
                for r in range(min(height, n - i)):
                    for c in range(min(width, k - p * width)):
                        out[i + r, p * width + c] = edge[r, c]


@compiled
def _multiply_tile(
    beside: Floats, start: int, height: int, lines: Floats, at: int, d: int, out: Floats, i: int, j: int
) -> None:
    """Products of one panel with the rows of a tile, or with one row."""
    width = 2 * _VECTOR_BYTES // lines.itemsize
    for first in range(0, d, DEPTH):
        depth, line = min(DEPTH, d - first), at + first * width
        if height == 1:
            _ONE_ROW(beside, start + first, beside, lines, line, out, i, j, depth, first > 0)
        else:
            _MANY_ROWS(beside, start + first * height, beside, lines, line, out, i, j, depth, first > 0)


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
    edge = np.empty((1, width + 1), values.dtype)[:, :width]
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
