"""Messages of an Arrow IPC stream: a schema, then record batches, each with a header and buffers.

Nothing in a stream is trusted. The headers of its messages count towards the limit on a request's options. The numbers
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
# Formats of Arrow's C data interface, in the order of the type numbers.
_FORMATS = (
    *("?none", "n", "?int", "?float", "z", "u", "b", "d", "td", "tt", "ts", "ti", "+l", "+s", "+u", "w"),
    *("+w", "+m", "tD", "Z", "U", "+L", "+r", "vz", "vu", "+vl", "+vL"),
)
_FLOATS = ("e", "f", "g")
_EXTENSION, _PANDAS = "ARROW:extension:name", "pandas"
# For a schema, and for each column: the longest metadata value that is read, and the most key-value pairs that are
# looked at. Limits are needed as all pairs, even those of different columns, may share the same bytes.
_OF_SCHEMA, _OF_COLUMN = (1 << 20, 64), (1 << 7, 4)


def field_of(table: Table, holds: bool = True) -> Field:
    """Read a `Field`, with the field of its lists' items if `holds`."""
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
    """Return the format of a type, given its number and the table that describes it."""
    if described is not None and code == INT and (bits := described.number(0, "i")) in (8, 16, 32, 64):
        return FORMATS[np.dtype(f"<{'i' if described.number(1, 'B') else 'u'}{bits // 8}")]
    if described is not None and code == FLOAT and 0 <= (precision := described.number(0, "h")) < len(_FLOATS):
        return _FLOATS[precision]
    if described is not None and code == FIXED_LIST:
        return f"+w:{described.number(0, 'i')}"
    return _FORMATS[code] if code < len(_FORMATS) else f"?type {code}"


def _metadata(table: Table, field: int, key: str, longest: int, most: int) -> str:
    """Return the beginning of a metadata value of a schema or a column; "" if the key is missing."""
    found = (pair for pair in table.tables(field, most) if pair.string(0) == key)
    return next((pair.string(1, longest) for pair in found), "")


Written = dict[int, Value]
"""A `Field`, in the form that `flatbuffers.write_message` takes."""


def number_field(name: str, dtype: np.dtype[Any]) -> Written:
    """Return the field of a column of numbers."""
    if dtype.kind == "f":
        return field(name, FLOAT, {0: Number("h", dtype.itemsize.bit_length() - 2)})
    return field(name, INT, {0: Number("i", 8 * dtype.itemsize), 1: Number("B", dtype.kind == "i")})


def field(name: str, code: int, described: Written, children: Sequence[Written] = ()) -> Written:
    """Return the field of a column; the table `described` describes its type, `children` are its child fields."""
    # Columns are marked as nullable, as readers expect, though they contain no nulls.
    return {0: name, 1: Number("B", 1), 2: Number("B", code), 3: described, 5: children}


CONTINUES = b"\xff\xff\xff\xff"
END = CONTINUES + bytes(4)
"""End-of-stream marker."""
_SCHEMA, _DICTIONARY, _RECORD_BATCH = 1, 2, 3
# Versions of the format since 0.8 (2017), up to the present one. The numbers are those of `Message.fbs`.
_VERSIONS = {3: "V4", 4: "V5"}
_CODECS = {0: "LZ4", 1: "ZSTD"}
_FILE = b"ARROW1"


class Batch(NamedTuple):
    """Record batch, or the values of a dictionary."""

    n: int
    """Number of rows."""
    lengths: list[list[int]]
    """Length and null count of each column and of its lists' items, in the order of the schema, parents first."""
    buffers: list[list[int]]
    """Start in the body and length in bytes of each buffer, in the same order."""
    variadic: list[int]
    """Number of additional buffers of each column whose type has a variable number of buffers."""
    body: memoryview
    dictionary: int | None
    """Number of the dictionary that these values define for the record batches after it; None for a record batch."""


def read(body: Body) -> tuple[Schema, list[Batch]]:
    """Return the schema of a stream, and its record batches and dictionaries, in stream order.

    Raises:
        InvalidInput: the body is not such a stream, or uses features that are not supported.
        TooLarge: the headers of its messages are longer than the body's limit on options.
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
    """Yield the header and the buffers of each message of a stream."""
    at = 0
    while at < len(whole):
        # Streams written by versions before 0.15 have no continuation marker in front of the length.
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
    # Without this check, a few bytes could serve as the numbers of any number of columns.
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
    """Return the int64 numbers of a vector, or of a vector of structs, as nested lists of this shape."""
    start, n = header.vector(field)
    found: list[Any] = np.frombuffer(header.message, "<i8", n * abs(prod(shape)), start).reshape(shape).tolist()
    return found


def schema_message(fields: Sequence[Value]) -> bytes:
    """Return the message of a schema."""
    return _message(_SCHEMA, {1: fields}, 0)


def batch_message(n: int, lengths: Sequence[int], sizes: Sequence[int]) -> bytes:
    """Return the message before the buffers of a batch of n rows; the buffers follow, each padded to eight bytes."""
    starts = np.cumsum([0, *(size + -size % 8 for size in sizes)])
    nodes = np.array([(length, 0) for length in lengths], "<i8").tobytes()
    buffers = np.array([*zip(starts, sizes, strict=False)], "<i8").tobytes()
    header: dict[int, Value] = {0: Number("q", n), 1: Structs(nodes, len(lengths)), 2: Structs(buffers, len(sizes))}
    return _message(_RECORD_BATCH, header, int(starts[-1]))


def _message(kind: int, header: dict[int, Value], nbytes: int) -> bytes:
    message = write_message({0: Number("h", 4), 1: Number("B", kind), 2: header, 3: Number("q", nbytes)})
    message += bytes(-len(message) % 8)
    return CONTINUES + len(message).to_bytes(4, "little") + message
