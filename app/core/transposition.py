"""Transposed squares of a matrix, in LLVM's instructions for whole vectors: no compiler finds them by itself."""

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from app.core.tiles import VECTOR_BYTES, place, splat


@intrinsic
def _write_transposed(
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
        # Squares of two halves change places, within squares of twice the side each time.
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


write_transposed = cast(Callable[..., None], _write_transposed)
"""Write a square, as wide as a vector, into `out`, from row i and column j on, transposed; for compiled loops.

Its arguments: the entries, the number of the first, and how many lie between the beginnings of two rows; factors, and
the number of that of the first row; `out`, i and j. All is C-contiguous. Each row is multiplied by its factor.
"""
