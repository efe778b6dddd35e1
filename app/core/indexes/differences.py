"""How many hashes of two rows of packed codes differ, in LLVM's instructions for whole vectors."""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from app.core.tiles import place

# Bytes that are compared at a time, as long as there are so many; then hash by hash, or byte by byte.
_WIDTHS = (64, 8)
_WHOLE = ir.IntType(64)


def differences(bits: int) -> Callable[..., int]:
    """The function that counts in how many hashes of `bits` bits, 1, 2, 4, 8 or 16, two rows differ.

    Its arguments: the bytes of rows, (any,) uint8, and where to begin; those of others, and where; how many bytes.
    """

    @intrinsic
    def count(_: Any, x: Any, of_x: Any, y: Any, of_y: Any, n_bytes: Any) -> tuple[Any, Any]:
        given = (x, of_x, y, of_y, n_bytes)

        def generate(context: Any, builder: Any, _: Any, passed: Any) -> Any:
            rows = [place(context, builder, given[k], passed[k], passed[k + 1]) for k in (0, 2)]
            with builder.goto_entry_block():
                total = builder.alloca(_WHOLE)
            builder.store(_WHOLE(0), total)
            done = _WHOLE(0)
            for width in (*_WIDTHS, max(1, bits // 8)):
                steps = builder.udiv(builder.sub(passed[4], done), _WHOLE(width))
                with cgutils.for_range(builder, steps) as loop:
                    at = builder.add(done, builder.mul(loop.index, _WHOLE(width)))
                    found = _unequal(builder, bits, *(_loaded(builder, row, at, bits, width) for row in rows))
                    builder.store(builder.add(builder.load(total), found), total)
                done = builder.add(done, builder.mul(steps, _WHOLE(width)))
            return builder.load(total)

        return types.int64(*given), generate

    made: Callable[..., int] = count
    return made


def _loaded(builder: Any, row: Any, at: Any, bits: int, width: int) -> Any:
    """Some bytes of a row: a vector of hashes, or of words where a byte has more hashes than one; or a single one."""
    lane = bits if bits >= 8 else min(64, 8 * width)
    count = 8 * width // lane
    kind = ir.IntType(lane) if count == 1 else ir.VectorType(ir.IntType(lane), count)
    return builder.load(builder.bitcast(builder.gep(row, [at]), kind.as_pointer()), align=1)


def _unequal(builder: Any, bits: int, x: Any, y: Any) -> Any:
    """How many hashes differ."""
    if bits >= 8:
        unequal = builder.icmp_unsigned("!=", x, y)
        if isinstance(x.type, ir.VectorType):
            unequal = builder.bitcast(unequal, ir.IntType(x.type.count))
        return _as_whole(builder, _ones(builder, unequal))
    found = builder.xor(x, y)
    # The lowest bit of a hash becomes 1 where any of its bits is.
    for shift in (1, 2)[: bits.bit_length() - 1]:
        found = builder.or_(found, builder.lshr(found, _everywhere(found.type, shift)))
    word = getattr(found.type, "element", found.type)
    lowest = sum(1 << at for at in range(0, word.width, bits))
    found = _ones(builder, builder.and_(found, _everywhere(found.type, lowest)))
    if isinstance(found.type, ir.VectorType):
        name = f"llvm.vector.reduce.add.{_name(found.type)}"
        found = builder.call(_function(builder, name, word, found.type), [found])
    return _as_whole(builder, found)


def _ones(builder: Any, x: Any) -> Any:
    """How many bits of a word are 1, or of each word of a vector."""
    return builder.call(_function(builder, f"llvm.ctpop.{_name(x.type)}", x.type, x.type), [x])


def _as_whole(builder: Any, count: Any) -> Any:
    return count if count.type == _WHOLE else builder.zext(count, _WHOLE)


def _everywhere(kind: Any, value: int) -> Any:
    return kind([value] * kind.count if isinstance(kind, ir.VectorType) else value)


def _function(builder: Any, name: str, gives: Any, takes: Any) -> Any:
    return builder.module.globals.get(name) or ir.Function(builder.module, ir.FunctionType(gives, [takes]), name)


def _name(kind: Any) -> str:
    return f"v{kind.count}i{kind.element.width}" if isinstance(kind, ir.VectorType) else f"i{kind.width}"
