"""Messages of an Arrow IPC stream: a schema, then record batches, each with a header and buffers.

Nothing in a stream is trusted. The headers of its messages count towards the limit on a request's options. The numbers
of tables and fields are those of `Schema.fbs` and `Message.fbs` of the Arrow format, which never change.
"""

import struct
from collections.abc import Iterator, Sequence
from math import prod
from struct import unpack_from
from typing import Any, NamedTuple

import numpy as np

from app.core.errors import InvalidInput
from app.formats.base import Body
from bochner_client.tables import FORMATS, Field, Schema, index_columns

DAMAGED = (struct.error, IndexError, OverflowError, ValueError)
"""Exceptions that reading a damaged message may raise."""
# Most bytes that are read of a string. The limit is needed as many tables may refer to the same string.
_MOST_OF_STRING = 128


class Table:
    """Table of a received message. Missing fields have the default value."""

    def __init__(self, message: memoryview, at: int) -> None:
        self.message, self.at = message, at
        (back,) = struct.unpack_from("<i", message, at)
        self._vtable = _inside(message, at - back)
        (self._vtable_bytes,) = struct.unpack_from("<H", message, self._vtable)

    @classmethod
    def root(cls, message: memoryview) -> "Table":
        """Return the root table of a message."""
        return cls(message, struct.unpack_from("<I", message, 0)[0])

    def number(self, field: int, form: str, default: int = 0) -> int:
        """Return a number; `form` is its format character of `struct`."""
        place = self._place(field)
        return default if place is None else int(struct.unpack_from(f"<{form}", self.message, place)[0])

    def table(self, field: int) -> "Table | None":
        """Return the table that a field refers to, or None if the field is missing."""
        place = self._led_to(field)
        return None if place is None else Table(self.message, place)

    def string(self, field: int, most: int = _MOST_OF_STRING) -> str:
        """Return the first `most` bytes of a string, decoded; "" if the field is missing."""
        start, n = self.vector(field)
        return bytes(self.message[start : start + min(n, most)]).decode(errors="replace")

    def tables(self, field: int, most: int | None = None) -> list["Table"]:
        """Return the tables of a vector, or the first `most`; a table takes at least 32 bytes, including its contents.

        Raises:
            IndexError: the message is too short for this many tables.
        """
        start, n = self.vector(field)
        n = n if most is None else min(n, most)
        if n * 32 > len(self.message):
            raise IndexError(f"{n} tables in a message of {len(self.message)} bytes")
        places = (start + 4 * i for i in range(n))
        return [Table(self.message, place + struct.unpack_from("<I", self.message, place)[0]) for place in places]

    def vector(self, field: int) -> tuple[int, int]:
        """Return the position of a vector's first element in the message, and the number of elements."""
        place = self._led_to(field)
        if place is None:
            return 0, 0
        return place + 4, int(struct.unpack_from("<I", self.message, place)[0])

    def _place(self, field: int) -> int | None:
        entry = 4 + 2 * field
        if entry + 2 > self._vtable_bytes:
            return None
        (offset,) = struct.unpack_from("<H", self.message, self._vtable + entry)
        return self.at + offset if offset else None

    def _led_to(self, field: int) -> int | None:
        place = self._place(field)
        return None if place is None else place + int(struct.unpack_from("<I", self.message, place)[0])


def _inside(message: memoryview, at: int) -> int:
    """Check that a position lies in the message; `struct` would count a negative one from the end."""
    if not 0 <= at < len(message):
        raise IndexError(f"place {at} in a message of {len(message)} bytes")
    return at


class Number(NamedTuple):
    """Number to write; `form` is its format character of `struct`."""

    form: str
    value: int


class Structs(NamedTuple):
    """Vector of structs to write: its bytes, aligned to eight, and the number of structs."""

    content: bytes
    n: int


Value = Number | Structs | str | Sequence[Any] | dict[int, Any]
"""Value of a field to write: a dict is a table, its keys the numbers of fields; a sequence is a vector of tables."""


def write_message(root: dict[int, Value]) -> bytes:
    """Return the bytes of a message with this root table."""
    out = bytearray(4)
    struct.pack_into("<I", out, 0, _table(out, root))
    return bytes(out)


def _table(out: bytearray, fields: dict[int, Value]) -> int:
    """Write a table, then everything that it refers to; return the position of the table."""
    form, places = "<i", {}
    for field, value in sorted(fields.items(), key=lambda one: -_size(one[1])):
        here = struct.calcsize(form)
        form += "x" * (-here % _size(value))
        places[field] = struct.calcsize(form)
        form += value.form if isinstance(value, Number) else "I"
    vtable = [places.get(field, 0) for field in range(max(fields, default=-1) + 1)]
    _align(out, 2)
    start_of_vtable = len(out)
    out += struct.pack(f"<HH{len(vtable)}H", 4 + 2 * len(vtable), struct.calcsize(form), *vtable)
    _align(out, 8)
    at = len(out)
    # In the order of the layout.
    numbers = [value.value if isinstance(value := fields[field], Number) else 0 for field in places]
    out += struct.pack(form, at - start_of_vtable, *numbers)
    for field, place in places.items():
        if not isinstance(fields[field], Number):
            struct.pack_into("<I", out, at + place, _led_to(out, fields[field]) - at - place)
    return at


def _led_to(out: bytearray, value: Value) -> int:
    """Write the value that a field refers to; return its position."""
    if isinstance(value, dict):
        return _table(out, value)
    _align(out, 8 if isinstance(value, Structs) else 4, ahead=4)
    at = len(out)
    if isinstance(value, str):
        out += struct.pack("<I", len(encoded := value.encode())) + encoded + b"\0"
    elif isinstance(value, Structs):
        out += struct.pack("<I", value.n) + value.content
    else:
        out += struct.pack(f"<I{4 * len(value)}x", len(value))
        for i, one in enumerate(value, 1):
            struct.pack_into("<I", out, at + 4 * i, _table(out, one) - at - 4 * i)
    return at


def _size(value: Value) -> int:
    return struct.calcsize(value.form) if isinstance(value, Number) else 4


def _align(out: bytearray, size: int, ahead: int = 0) -> None:
    """Pad `out` so that the position `ahead` bytes after its end is a multiple of `size`."""
    out += bytes(-(len(out) + ahead) % size)


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
"""A `Field`, in the form that `write_message` takes."""


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
        raise InvalidInput("expected an Arrow stream (pyarrow.ipc.new_stream, write_ipc_stream), got an Arrow file")
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
                raise InvalidInput("expected a schema first in the Arrow stream, and then record batches")
            if schema is None:
                schema = _schema(table, header)
            elif kind == _RECORD_BATCH:
                batches.append(_batch(header, content))
            elif kind == _DICTIONARY and (values := header.table(1)) is not None and not header.number(2, "B"):
                batches.append(_batch(values, content, header.number(0, "q")))
            else:
                what = "a change of a dictionary" if kind == _DICTIONARY else f"a message of type {kind}"
                raise InvalidInput(f"expected record batches in the Arrow stream, got {what}")
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
            raise InvalidInput(f"expected an Arrow message of {length} bytes as announced, got {len(whole) - at}")
        message = whole[at : at + length]
        at += length
        nbytes = Table.root(message).number(3, "q")
        if not 0 <= nbytes <= len(whole) - at:
            raise InvalidInput(f"the Arrow stream announces buffers of {nbytes} bytes, and has {len(whole) - at}")
        yield message, whole[at : at + nbytes]
        at += nbytes
    if at < len(whole):
        raise InvalidInput(f"{len(whole) - at} bytes follow the end of the Arrow stream")


def _schema(message: Table, schema: Table) -> Schema:
    version = message.number(0, "h")
    if version not in _VERSIONS:
        raise InvalidInput(f"expected an Arrow stream of version {' or '.join(_VERSIONS.values())}, got {version}")
    if schema.number(0, "h"):
        raise InvalidInput("expected a little-endian Arrow stream, got a big-endian one")
    index = index_columns({_PANDAS.encode(): _metadata(schema, 2, _PANDAS, *_OF_SCHEMA).encode()})
    return Schema([field_of(field) for field in schema.tables(1)], index)


def _batch(header: Table, body: memoryview, dictionary: int | None = None) -> Batch:
    compression = header.table(3)
    if compression is not None:
        codec = _CODECS.get(compression.number(0, "b"), "something")
        raise InvalidInput(f"expected uncompressed record batches, got {codec}")
    nodes, buffers = _numbers(header, 1, (-1, 2)), _numbers(header, 2, (-1, 2))
    for start, nbytes in buffers:
        if not (0 <= start <= len(body) and 0 <= nbytes <= len(body) - start):
            raise InvalidInput(f"a buffer of {nbytes} bytes at {start} is not within the {len(body)} of its batch")
    # Without this check, a few bytes could serve as the numbers of any number of columns.
    if (together := sum(nbytes for _, nbytes in buffers)) > len(body):
        raise InvalidInput(f"buffers of a record batch overlap: they have {together} bytes, and its body {len(body)}")
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
