"""Products of a few rows with some columns, held in registers, in LLVM's vector instructions.

A tile of rows × columns stays in registers while a loop runs through the coordinates (Goto and van de Geijn: Anatomy of
high-performance matrix multiplication, 2008). No compiler finds such a tile by itself.
"""

from collections.abc import Callable
from typing import Any, cast

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic


def has_avx_512() -> bool:
    """Return whether loops are compiled for AVX-512: as NUMBA_CPU_FEATURES says, else if the processor has it."""
    features: str | None = config.CPU_FEATURES  # type: ignore[attr-defined]
    return bool(llvm.get_host_cpu_features().get("avx512f")) if features is None else "+avx512f" in features.split(",")


# Bytes of a vector register, and the number of rows with which a tile fills the registers. All that depends on the
# width of registers is derived from these.
VECTOR_BYTES, ROWS = (64, 12) if has_avx_512() else (32, 6)
# Vector registers that one row of a tile takes.
_VECTORS = 2

COLUMN_BYTES = _VECTORS * VECTOR_BYTES
"""Bytes of one row of a tile."""


def tile(n_rows: int, gathers_lines: bool = False) -> Callable[..., None]:
    """Return the function that multiplies `n_rows` rows by one panel of columns.

    Its arguments: the values of the rows, side by side for each coordinate, and the position of the first; the
    coordinates to sum over, and the position of the first; the entries of the panel, line by line, and the position of
    the first; the result, and the row and column to begin at; the number of coordinates; whether to add to the result.

    By default, lines are read in order, and each is multiplied by the values at its coordinate. If `gathers_lines`,
    values are read in order, and each is multiplied by the line at its coordinate.
    """

    @intrinsic
    def multiply(
        _: Any,
        values: Any,
        start: Any,
        coordinates: Any,
        first: Any,
        panel: Any,
        at: Any,
        out: Any,
        i: Any,
        j: Any,
        depth: Any,
        adds: Any,
    ) -> tuple[Any, Any]:
        given = (values, start, coordinates, first, panel, at, out, i, j, depth, adds)

        def generate(context: Any, builder: Any, _: Any, passed: Any) -> Any:
            first_value, first_coordinate, first_entry = (
                place(context, builder, given[k], passed[k], passed[k + 1]) for k in (0, 2, 4)
            )
            vector = ir.VectorType(context.get_data_type(values.dtype), VECTOR_BYTES * 8 // values.dtype.bitwidth)
            sums = _Tile(builder, vector, n_rows)
            with cgutils.for_range(builder, passed[9]) as loop:
                coordinate = builder.load(builder.gep(first_coordinate, [loop.index]))
                value, line = (loop.index, coordinate) if gathers_lines else (coordinate, loop.index)
                of_line = builder.mul(line, line.type(vector.count * _VECTORS))
                of_value = builder.mul(value, value.type(n_rows))
                sums.add(builder.gep(first_entry, [of_line]), builder.gep(first_value, [of_value]))
            out_array = context.make_array(given[6])(context, builder, passed[6])
            sums.store(out_array, passed[7], passed[8], passed[10])
            return context.get_dummy_value()

        return types.void(*given), generate

    made: Callable[..., None] = multiply
    return made


class _Tile:
    """Generator of instructions on a tile of rows × vectors of columns, whose sums are kept in registers."""

    def __init__(self, builder: Any, vector: Any, n_rows: int) -> None:
        self._builder, self._vector = builder, vector
        self._item = VECTOR_BYTES // vector.count
        self._sums = [[_zeros(builder, vector) for _ in range(_VECTORS)] for _ in range(n_rows)]
        name = f"llvm.fma.v{vector.count}f{8 * self._item}"
        fma = ir.FunctionType(vector, [vector] * 3)
        self._fma = builder.module.globals.get(name) or ir.Function(builder.module, fma, name)

    def add(self, line: Any, values: Any) -> None:
        """Emit code that adds the products of one value of each row with a line of the panel."""
        builder, vector = self._builder, self._vector
        index = ir.IntType(32)
        columns = [
            builder.load(
                builder.bitcast(builder.gep(line, [index(k * vector.count)]), vector.as_pointer()), align=self._item
            )
            for k in range(_VECTORS)
        ]
        for row, of_row in enumerate(self._sums):
            everywhere = splat(builder, builder.load(builder.gep(values, [index(row)])), vector)
            for k, place in enumerate(of_row):
                builder.store(builder.call(self._fma, [everywhere, columns[k], builder.load(place)]), place)

    def store(self, out: Any, i: Any, j: Any, adds: Any) -> None:
        """Emit code that writes the sums to the result from row i and column j on, or adds them to it."""
        builder, vector = self._builder, self._vector
        stride = builder.extract_value(out.strides, 0)
        at = builder.add(builder.mul(i, stride), builder.mul(j, stride.type(self._item)))
        at = builder.add(builder.ptrtoint(out.data, stride.type), at)
        for of_row in self._sums:
            for k, place in enumerate(of_row):
                there = builder.inttoptr(builder.add(at, at.type(k * VECTOR_BYTES)), vector.as_pointer())
                with builder.if_then(adds):
                    before = builder.load(there, align=self._item)
                    builder.store(builder.fadd(before, builder.load(place)), place)
                builder.store(builder.load(place), there, align=self._item)
            at = builder.add(at, stride)


def place(context: Any, builder: Any, kind: Any, array: Any, number: Any) -> Any:
    """Return a pointer to the entry of this number in an array."""
    return builder.gep(context.make_array(kind)(context, builder, array).data, [number])


def splat(builder: Any, value: Any, vector: Any) -> Any:
    """Return a vector whose entries are all `value`."""
    undefined, index = vector(ir.Undefined), ir.IntType(32)
    alone = builder.insert_element(undefined, value, index(0))
    return builder.shuffle_vector(alone, undefined, ir.VectorType(index, vector.count)(None))


def _zeros(builder: Any, vector: Any) -> Any:
    """Return a variable that is zero at first and that the compiler keeps in a register."""
    with builder.goto_entry_block():
        place = builder.alloca(vector)
    builder.store(vector(None), place)
    return place


@intrinsic
def _write_transpose(
    _: Any, entries: Any, at: Any, stride: Any, factors: Any, first: Any, out: Any, i: Any, j: Any
) -> tuple[Any, Any]:
    given = (entries, at, stride, factors, first, out, i, j)

    def generate(context: Any, builder: Any, _: Any, passed: Any) -> Any:
        item = entries.dtype.bitwidth // 8
        n = VECTOR_BYTES // item
        vector, index = ir.VectorType(context.get_data_type(entries.dtype), n), ir.IntType(32)
        start, factor = place(context, builder, entries, *passed[:2]), place(context, builder, factors, *passed[3:5])
        rows = []
        for k in range(n):
            there = builder.gep(start, [builder.mul(passed[2], passed[2].type(k))])
            row = builder.load(builder.bitcast(there, vector.as_pointer()), align=item)
            scale = builder.load(builder.gep(factor, [index(k)]))
            rows.append(builder.fmul(row, splat(builder, scale, vector)))
        # Transpose: swap the off-diagonal squares of side `half` within squares of twice that side, for half = 1, 2, 4,
        # …
        half = 1
        while half < n:
            for k in (k for k in range(n) if not k & half):
                above, below = rows[k], rows[k + half]
                upper = [e if not e & half else n + e - half for e in range(n)]
                lower = [e + half if not e & half else n + e for e in range(n)]
                rows[k], rows[k + half] = (
                    builder.shuffle_vector(above, below, ir.Constant(ir.VectorType(index, n), mask))
                    for mask in (upper, lower)
                )
            half *= 2
        target = context.make_array(out)(context, builder, passed[5])
        columns = builder.extract_value(target.shape, 1)
        to = builder.gep(target.data, [builder.add(builder.mul(passed[6], columns), passed[7])])
        for k, row in enumerate(rows):
            there = builder.gep(to, [builder.mul(columns, columns.type(k))])
            builder.store(row, builder.bitcast(there, vector.as_pointer()), align=item)
        return context.get_dummy_value()

    return types.void(*given), generate


write_transposed = cast(Callable[..., None], _write_transpose)
"""Write a square block, as wide as a vector, to `out`, from row i and column j on, transposed; for compiled loops.

Its arguments: the entries, the position of the first one, and the distance between the beginnings of two rows; the
factors, and the position of the first row's factor; `out`, i and j. All arrays are C-contiguous. Each row is multiplied
by its factor.
"""
