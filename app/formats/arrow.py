"""The Arrow IPC stream: rows are a column of lists or columns of numbers, answers are sent as record batches."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from math import prod
from typing import Any, NamedTuple

import numpy as np

from app.core.arrays import (
    IDS,
    SIGNATURE,
    Answer,
    Array,
    Identified,
    NumberIds,
    OneHot,
    RowBlocks,
    TextIds,
    dtype_of,
    narrow,
    octets,
    rows_of,
)
from app.formats.arrow_ipc.columns import rows_of as rows_of_stream
from app.formats.arrow_ipc.stream import (
    END,
    FIXED_LIST,
    LARGE_UTF8,
    STRUCT,
    Number,
    Written,
    batch_message,
    field,
    number_field,
    schema_message,
)
from app.formats.base import Body, Decoded, Encoded, Format
from app.formats.npy import Npy
from bochner_client.tables import ID


class Arrow(Format):
    """`application/vnd.apache.arrow.stream`.

    Rows:
        An Arrow IPC stream with one column of lists of numbers (FixedSizeList, or lists that are of one
        length), or with columns of numbers that make the row together: float16, float32, float64, whole numbers
        that are exact, or booleans. A column `id` of whole numbers or strings is kept with the rows; what was
        the index of a frame of pandas is left out. No compression.

    Answers:
        An Arrow IPC stream with a column for each array, of FixedSizeLists where it has rows; complex as a
        struct of `real` and `imag`; before them `id`, where the rows came with ids. `; dtype=float16` as of
        `.npy`.
    """

    media_type = "application/vnd.apache.arrow.stream"
    narrower = Npy.narrower
    expands = True

    def decode(self, body: Body, width: int, wanted: str, optional: Sequence[str] = ()) -> Decoded:
        """Read the rows of a stream; if it has none, lists without a fixed length count as lists of `width` numbers."""
        del optional
        return {wanted: rows_of_stream(body, width)}

    def matrix(self, body: Body) -> Array | Identified:
        """Read the rows of a stream."""
        return rows_of_stream(body)

    def encode(self, answer: Answer, dtype: np.dtype[Any] | None = None, warnings: Sequence[str] = ()) -> Encoded:
        """Write a schema, then one record batch for each block of rows."""
        del warnings
        return Encoded(stream(answer, dtype or dtype_of(answer)))


Piece = bytes | memoryview


class _Column(NamedTuple):
    """Column of an answer to write."""

    field: Written
    rows: Callable[[slice], Array | NumberIds | TextIds]
    """Returns the rows of a block; blocks are requested in order."""


def stream(answer: Answer, dtype: np.dtype[Any]) -> Iterator[Piece]:
    """Return the pieces of a stream; arrays of the answer's dtype are written as `dtype`, complex arrays as structs.

    The column of ids comes first.

    Raises:
        OutOfRange: numbers are too large for the dtype.
    """
    own, rows = dtype_of(answer), rows_of(answer)
    members = {name: array for name, array in answer.items() if name != SIGNATURE}
    found = [_column(name, array, dtype, own) for name, array in sorted(members.items(), key=lambda one: one[0] != IDS)]
    return _messages(found, rows.blocks if isinstance(rows, RowBlocks) else [slice(0, rows.shape[0])])


def _messages(found: Sequence[_Column], blocks: Sequence[slice]) -> Iterator[Piece]:
    yield schema_message([column.field for column in found])
    for block in blocks:
        lengths: list[int] = []
        buffers: list[Piece] = []
        for column in found:
            _add(column.rows(block), lengths, buffers)
        yield batch_message(block.stop - block.start, lengths, [*map(len, buffers)])
        padded = ((buffer, bytes(-len(buffer) % 8)) for buffer in buffers)
        yield from filter(len, chain.from_iterable(padded))
    yield END


def _column(
    name: str, member: Array | RowBlocks | OneHot | NumberIds | TextIds, dtype: np.dtype[Any], own: np.dtype[Any]
) -> _Column:
    if isinstance(member, NumberIds):
        return _Column(number_field(ID, member.numbers.dtype), member.take)
    if isinstance(member, TextIds):
        return _Column(field(ID, LARGE_UTF8, {}), member.take)
    array = member.columns if isinstance(member, OneHot) else member
    wanted = dtype if array.dtype == own else array.dtype
    described = _field(name, wanted, array.shape[1:])
    if isinstance(array, RowBlocks):
        made = array.narrow(wanted).generate()
        return _Column(described, lambda _: next(made))
    whole = narrow(array, wanted)
    return _Column(described, lambda block: whole[block])


def _field(name: str, dtype: np.dtype[Any], shape: Sequence[int]) -> Written:
    """Return the field of an array whose rows have this shape and dtype."""
    if dtype.kind == "c":
        part = np.dtype(f"f{dtype.itemsize // 2}")
        return field(name, STRUCT, {}, [_field("real", part, shape), _field("imag", part, shape)])
    if shape:
        return field(name, FIXED_LIST, {0: Number("i", shape[0])}, [_field("item", dtype, shape[1:])])
    return number_field(name, dtype)


def _add(rows: Array | NumberIds | TextIds, lengths: list[int], buffers: list[Piece]) -> None:
    """Append the lengths and buffers of rows; each column and each list level begins with an empty validity buffer."""
    if isinstance(rows, TextIds):
        lengths.append(len(rows))
        buffers += [b"", octets(np.concatenate([[0], rows.ends])), octets(rows.text)]
        return
    array = rows.numbers if isinstance(rows, NumberIds) else rows
    if array.dtype.kind == "c":
        lengths.append(len(array))
        buffers.append(b"")
        _add(array.real, lengths, buffers)
        _add(array.imag, lengths, buffers)
        return
    for depth in range(1, array.ndim + 1):
        lengths.append(prod(array.shape[:depth]))
        buffers.append(b"")
    buffers.append(octets(array))
