"""JSON: rows are lists of numbers, or objects of indices and values; answers are written directly from arrays."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import orjson

from app.core.arrays import Answer, Array, NumberIds, OneHot, PostedRows, RowBlocks, TextIds, in_parts, row_blocks
from app.formats.base import Body, Encoded, Format, Posted
from app.formats.json.body import dimension, members, rows_in, rows_or_reference, vectors_or_dataset

_NUMBERS_PER_PIECE = 1 << 16
_IDS_PER_PIECE = 1 << 12


class Json(Format):
    """`application/json`."""

    media_type = "application/json"
    operations_per_number = 256

    def decode(self, body: Body, width: int, wanted: str, optional: Sequence[str] = ()) -> Posted:
        """Read an object whose members are lists of rows, or references to datasets."""
        if wanted != "vectors":
            posted = members(body, [wanted], optional)
            return {name: rows_or_reference(value, width, f"/{name}") for name, value in posted.items()}
        posted = members(body, [], ["vectors", "dataset", "rows", "seed"])
        return {wanted: vectors_or_dataset(posted, width)}

    def matrix(self, body: Body) -> PostedRows:
        """Read an object with `vectors`, and with `input_dim`, the length of a row, which only sparse rows need."""
        posted = members(body, ["vectors"], ["input_dim"])
        return rows_in(posted["vectors"], dimension(posted), "/vectors")

    def encode(self, answer: Answer, dtype: np.dtype[Any] | None = None, warnings: Sequence[str] = ()) -> Encoded:
        """Write one object with the arrays as members, in their own dtypes, and `warnings` if there are any.

        A complex array becomes an object of `real` and `imag`, one-hot rows become an object of `indptr`, `indices` and
        `shape`, ids become a list.
        """
        del dtype
        members: dict[str, _Value] = {name: _parts(array) for name, array in answer.items()}
        if warnings:
            members["warnings"] = orjson.dumps(list(warnings))
        return Encoded(_object(members))


_Member = Array | RowBlocks | NumberIds | TextIds
_Value = _Member | dict[str, _Member] | bytes
"""Value of a member: arrays, or bytes that are JSON already."""


def _parts(array: _Member | OneHot) -> _Member | dict[str, _Member]:
    if isinstance(array, NumberIds | TextIds):
        return array
    if isinstance(array, OneHot):
        shape = np.array([len(array.has_ones), array.n_columns])
        return {"indptr": array.indptr(), "indices": array.indices(), "shape": shape}
    if array.dtype.kind != "c":
        return array
    if isinstance(array, RowBlocks):  # every block is computed twice, as all real parts precede the imaginary parts
        return {"real": array.convert(lambda _, block: block.real), "imag": array.convert(lambda _, block: block.imag)}
    return {"real": array.real, "imag": array.imag}


def _object(members: Mapping[str, _Value]) -> Iterator[bytes]:
    before = b"{"
    for name, value in members.items():
        yield before + orjson.dumps(name) + b":"
        before = b","
        if isinstance(value, bytes):
            yield value
        else:
            yield from _object(value) if isinstance(value, dict) else _encode_array(value)
    yield b"}"


def _encode_array(array: _Member) -> Iterator[bytes]:
    """Write an array as a list, a block of rows at a time."""
    if isinstance(array, NumberIds | TextIds):
        return join_lists(array.take(block).to_list() for block in row_blocks(len(array), _IDS_PER_PIECE))
    if prod(array.shape[1:]) > _NUMBERS_PER_PIECE:
        return _join_rows(row for made in in_parts(array) for row in made)
    return join_lists(
        made[block]
        for made in in_parts(array)
        for block in row_blocks(len(made), _NUMBERS_PER_PIECE * max(1, len(made)) // max(1, made.size))
    )


def _join_rows(rows: Iterable[Array]) -> Iterator[bytes]:
    """Yield the pieces of one JSON list of long rows, each of which is written in pieces too."""
    before = b"["
    for row in rows:
        yield before
        yield from _encode_array(row)
        before = b","
    yield b"]" if before == b"," else b"[]"


def join_lists(parts: Iterable[Array | list[Any]]) -> Iterator[bytes]:
    """Yield the pieces of one JSON list with all items of these arrays and lists."""
    before = b"["
    for part in parts:
        array = np.ascontiguousarray(part) if isinstance(part, np.ndarray) else part
        yield before + orjson.dumps(array, option=orjson.OPT_SERIALIZE_NUMPY)[1:-1]
        before = b","
    yield b"]" if before == b"," else b"[]"
