"""The messages of an Arrow IPC stream: a schema, then record batches, each of which is some numbers and its buffers.

Nothing in a stream is trusted. What it says beside its buffers counts as what a request says beside its rows. Numbers
of tables and fields are those of `Schema.fbs` and `Message.fbs` of the Arrow format, which never change.
"""

from collections.abc import Iterator, Sequence
from math import prod
from struct import unpack_from
from typing import Any, NamedTuple

import numpy as np

from app.core.errors import InvalidInput
from app.formats.arrow_ipc.flatbuffers import DAMAGED, Number, Structs, Table, Value, write_message
from app.formats.base import Body
from bochner_client.tables import FORMATS, Field, Schema, index_columns

INT, FLOAT, STRUCT, FIXED_LIST, LARGE_UTF8 = 2, 3, 13, 16, 20
# The formats of Arrow's C data interface, by the numbers of types.
_FORMATS = (
    *("?none", "n", "?int", "?float", "z", "u", "b", "d", "td", "tt", "ts", "ti", "+l", "+s", "+u", "w"),
    *("+w", "+m", "tD", "Z", "U", "+L", "+r", "vz", "vu", "+vl", "+vL"),
)
_FLOATS = ("e", "f", "g")
_EXTENSION, _PANDAS = "ARROW:extension:name", "pandas"
# The longest value of metadata that is read, and how many pairs are looked at, of a schema, and of each column: all of
# them, and those of all columns, may be one.
_OF_SCHEMA, _OF_COLUMN = (1 << 20, 64), (1 << 7, 4)


def field_of(table: Table, holds: bool = True) -> Field:
    """Read a `Field`, and that of what its lists hold, if they may hold something."""
    name, described, encoded = table.string(0), table.table(3), table.table(4)
    extension = _metadata(table, 6, _EXTENSION, *_OF_COLUMN)
    kind = _format(table.number(2, "B"), described)
    item = None
    if holds and kind[:2] in ("+w", "+l", "+L"):
        (held,) = table.tables(5)
        item = field_of(held, holds=False)
    values = Field(name, kind, item, extension=extension)
    if encoded is None:
        return values
    index = encoded.table(1)
    places = "i" if index is None else _format(INT, index)
    return Field(name, places, values=values, dictionary=encoded.number(0, "q"))


def _format(code: int, described: Table | None) -> str:
    """The format of a type, which has a number and is described by a table."""
    if described is not None and code == INT and (bits := described.number(0, "i")) in (8, 16, 32, 64):
        return FORMATS[np.dtype(f"<{'i' if described.number(1, 'B') else 'u'}{bits // 8}")]
    if described is not None and code == FLOAT and 0 <= (precision := described.number(0, "h")) < len(_FLOATS):
        return _FLOATS[precision]
    if described is not None and code == FIXED_LIST:
        return f"+w:{described.number(0, 'i')}"
    return _FORMATS[code] if code < len(_FORMATS) else f"?type {code}"


def _metadata(table: Table, field: int, key: str, longest: int, most: int) -> str:
    """The beginning of a value of the metadata of a schema or a column, "" where there is none."""
    found = (pair for pair in table.tables(field, most) if pair.string(0) == key)
    return next((pair.string(1, longest) for pair in found), "")


Written = dict[int, Value]
"""A `Field` as `flatbuffers.write_message` takes it."""


def number_field(name: str, dtype: np.dtype[Any]) -> Written:
    """A column of numbers."""
    if dtype.kind == "f":
        return field(name, FLOAT, {0: Number("h", dtype.itemsize.bit_length() - 2)})
    return field(name, INT, {0: Number("i", 8 * dtype.itemsize), 1: Number("B", dtype.kind == "i")})


def field(name: str, code: int, described: Written, children: Sequence[Written] = ()) -> Written:
    """A column of a type that is described by a table; `children` are the fields that it holds."""
    # Nulls are allowed, as readers expect of a column, though there are none.
    return {0: name, 1: Number("B", 1), 2: Number("B", code), 3: described, 5: children}


CONTINUES = b"\xff\xff\xff\xff"
END = CONTINUES + bytes(4)
"""What a stream ends with."""
_SCHEMA, _DICTIONARY, _RECORD_BATCH = 1, 2, 3
# Versions of the format since 0.8, of 2017, up to the present one. The numbers are those of `Message.fbs`.
_VERSIONS = {3: "V4", 4: "V5"}
_CODECS = {0: "LZ4", 1: "ZSTD"}
_FILE = b"ARROW1"


class Batch(NamedTuple):
    """A record batch, or the values of a dictionary."""

    n: int
    """How many rows it has."""
    lengths: list[list[int]]
    """Length and nulls of each column and of what it holds, in the order of the schema, the holder first."""
    buffers: list[list[int]]
    """Where in the body each of its buffers begins, and its bytes, in the same order."""
    variadic: list[int]
    """Further buffers of each column of a type that has any number of them."""
    body: memoryview
    dictionary: int | None
    """The number of the dictionary whose values it has, for the record batches after it; None for a record batch."""


def read(body: Body) -> tuple[Schema, list[Batch]]:
    """The columns of a stream, and its record batches and dictionaries, in their order.

    Raises:
        InvalidInput: the body is no such stream, or uses what is not read here.
        TooLarge: what it says beside its buffers is longer than the body allows.
    """
    whole = memoryview(body.content).toreadonly()
    if body.content[:6] == _FILE:
        raise InvalidInput("an Arrow file came; an Arrow stream is wanted (pyarrow.ipc.new_stream, write_ipc_stream)")
    schema: Schema | None = None
    batches: list[Batch] = []
    said = 0
    try:
        for message, content in _messages(whole):
            said += len(message)
            body.check_options(said, 0)
            table = Table.root(message)
            kind, header = table.number(1, "B"), table.table(2)
            if header is None or (schema is None) != (kind == _SCHEMA):
                raise InvalidInput("a schema first, and then record batches, are wanted in an Arrow stream")
            if schema is None:
                schema = _schema(table, header)
            elif kind == _RECORD_BATCH:
                batches.append(_batch(header, content))
            elif kind == _DICTIONARY and (values := header.table(1)) is not None and not header.number(2, "B"):
                batches.append(_batch(values, content, header.number(0, "q")))
            else:
                what = "a change of a dictionary" if kind == _DICTIONARY else f"a message of type {kind}"
                raise InvalidInput(f"{what} came in the Arrow stream; expected record batches")
    except DAMAGED as error:
        raise InvalidInput(f"the body is not an Arrow stream: {str(error)[:200]}") from error
    if schema is None:
        raise InvalidInput("the body is not an Arrow stream: it has no schema")
    return schema, batches


def _messages(whole: memoryview) -> Iterator[tuple[memoryview, memoryview]]:
    """Each message of a stream: its header, and its buffers."""
    at = 0
    while at < len(whole):
        # Streams of before 0.15 have no mark in front of the length.
        at += 4 if whole[at : at + 4] == CONTINUES else 0
        (length,) = unpack_from("<i", whole, at)
        at += 4
        if length == 0:
            break
        if not 0 < length <= len(whole) - at:
            raise InvalidInput(f"an Arrow message of {length} bytes is announced, and {len(whole) - at} came")
        message = whole[at : at + length]
        at += length
        nbytes = Table.root(message).number(3, "q")
        if not 0 <= nbytes <= len(whole) - at:
            raise InvalidInput(
                f"buffers of {nbytes} bytes are announced in the Arrow stream, and {len(whole) - at} came"
            )
        yield message, whole[at : at + nbytes]
        at += nbytes
    if at < len(whole):
        raise InvalidInput(f"{len(whole) - at} bytes came after the end of the Arrow stream")


def _schema(message: Table, schema: Table) -> Schema:
    version = message.number(0, "h")
    if version not in _VERSIONS:
        raise InvalidInput(f"the Arrow stream is of version {version}; {' or '.join(_VERSIONS.values())} is wanted")
    if schema.number(0, "h"):
        raise InvalidInput("the Arrow stream is big-endian; little-endian is wanted")
    index = index_columns({_PANDAS.encode(): _metadata(schema, 2, _PANDAS, *_OF_SCHEMA).encode()})
    return Schema([field_of(field) for field in schema.tables(1)], index)


def _batch(header: Table, body: memoryview, dictionary: int | None = None) -> Batch:
    compression = header.table(3)
    if compression is not None:
        codec = _CODECS.get(compression.number(0, "b"), "something")
        raise InvalidInput(f"the record batches are compressed with {codec}; uncompressed buffers are wanted")
    nodes, buffers = _numbers(header, 1, (-1, 2)), _numbers(header, 2, (-1, 2))
    for start, nbytes in buffers:
        if not (0 <= start <= len(body) and 0 <= nbytes <= len(body) - start):
            raise InvalidInput(f"a buffer of {nbytes} bytes at {start} is not within the {len(body)} of its batch")
    # A few bytes would be the numbers of any number of columns.
    if (together := sum(nbytes for _, nbytes in buffers)) > len(body):
        raise InvalidInput(f"buffers of {together} bytes overlap in the {len(body)} of a record batch")
    n = header.number(0, "q")
    if n < 0:
        raise InvalidInput(f"a record batch has {n} rows")
    variadic = _numbers(header, 4)
    if variadic and min(variadic) < 0:
        raise InvalidInput(f"a record batch has {min(variadic)} buffers of views")
    return Batch(n, nodes, buffers, variadic, body, dictionary)


def _numbers(header: Table, field: int, shape: tuple[int, ...] = (-1,)) -> list[Any]:
    """The int64 of a vector, or of a vector of structs of some of them."""
    start, n = header.vector(field)
    found: list[Any] = np.frombuffer(header.message, "<i8", n * abs(prod(shape)), start).reshape(shape).tolist()
    return found


def schema_message(fields: Sequence[Value]) -> bytes:
    """The message of a schema."""
    return _message(_SCHEMA, {1: fields}, 0)


def batch_message(n: int, lengths: Sequence[int], sizes: Sequence[int]) -> bytes:
    """What stands before the buffers of a batch of n rows; these follow with so many bytes each, padded to eight."""
    starts = np.cumsum([0, *(size + -size % 8 for size in sizes)])
    nodes = np.array([(length, 0) for length in lengths], "<i8").tobytes()
    buffers = np.array([*zip(starts, sizes, strict=False)], "<i8").tobytes()
    header: dict[int, Value] = {0: Number("q", n), 1: Structs(nodes, len(lengths)), 2: Structs(buffers, len(sizes))}
    return _message(_RECORD_BATCH, header, int(starts[-1]))


def _message(kind: int, header: dict[int, Value], nbytes: int) -> bytes:
    message = write_message({0: Number("h", 4), 1: Number("B", kind), 2: header, 3: Number("q", nbytes)})
    message += bytes(-len(message) % 8)
    return CONTINUES + len(message).to_bytes(4, "little") + message
