"""FlatBuffers, the encoding of Arrow's message headers: tables of numbered fields, read and written here.

`struct` checks the bounds of every read, so that no bytes of a client can lead outside the message. A damaged message
raises one of `DAMAGED`.
"""

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

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
