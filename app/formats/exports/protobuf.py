"""Messages of Protocol Buffers, written in pieces: large arrays in them are neither held nor copied.

A field is its number and the kind of its value, then the value: a whole number in groups of seven bits, the lowest
first, or bytes behind their count. A message within a message is such bytes.
"""

from collections.abc import Iterator
from typing import Self

from app.core.answers import RowBlocks
from app.core.arrays import Array
from app.formats.exports.base import numbers

_NUMBER, _BYTES = 0, 2


class Message:
    """A message, whose fields stand in the order in which they were added."""

    def __init__(self) -> None:
        self.nbytes = 0
        """Its length."""
        self._parts: list[bytes | Message | Array | RowBlocks] = []

    def number(self, field: int, *values: int) -> Self:
        """Add whole numbers, none below 0."""
        for value in values:
            self._add(_varint(field << 3 | _NUMBER) + _varint(value))
        return self

    def text(self, field: int, *values: str) -> Self:
        """Add texts."""
        for value in values:
            encoded = value.encode()
            self._add(_start(field, len(encoded)) + encoded)
        return self

    def message(self, field: int, *values: "Message") -> Self:
        """Add messages, to which nothing is added any more."""
        for value in values:
            self._add(_start(field, value.nbytes))
            self._parts.append(value)
            self.nbytes += value.nbytes
        return self

    def numbers(self, field: int, array: Array | RowBlocks) -> Self:
        """Add the numbers of an array, as bytes in C order, little-endian."""
        self._add(_start(field, array.nbytes))
        self._parts.append(array)
        self.nbytes += array.nbytes
        return self

    def pieces(self) -> Iterator[bytes | memoryview]:
        """The bytes of the message, one piece after the other."""
        for part in self._parts:
            if isinstance(part, bytes):
                yield part
            elif isinstance(part, Message):
                yield from part.pieces()
            else:
                yield from numbers(part)

    def _add(self, encoded: bytes) -> None:
        self._parts.append(encoded)
        self.nbytes += len(encoded)


def _start(field: int, nbytes: int) -> bytes:
    """What stands before so many bytes."""
    return _varint(field << 3 | _BYTES) + _varint(nbytes)


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
