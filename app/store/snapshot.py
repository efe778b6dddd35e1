"""Reader of snapshots of a store (RDB files), key by key, without interpreting the values.

A snapshot is a header of nine bytes, entries, and a CRC-64 of all bytes before it. An entry starts with a byte for its
kind. Most entries are keys: the byte is the type of the value, then follow the name and the value. The snapshots of
several servers may follow each other, as in a backup of a cluster. This module knows where a value ends for every type
that servers write up to version 11 of the format (Valkey 8, Redis 7.2), except those of modules. Types that newer
servers have added are refused; the error names the type's number.
"""

import mmap
import re
import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

import anycrc

_HEADER = re.compile(rb"(?:REDIS|VALKEY)(\d{3,4})")
HEADER_BYTES = 9
_SUM_BYTES = 8
_NO_SUM = 0  # written by a server whose check-sums are switched off
_CHUNK_BYTES = 1 << 20
_CRC = anycrc.Model("CRC64-REDIS")
_END, _DATABASE, _SECONDS, _MILLISECONDS = 0xFF, 0xFE, 0xFD, 0xFC
_NO_LENGTH = 0xC0  # at or above this value, the first byte of a string says how the string is packed
_LZF = 3
_PACKED_INTEGERS = {0: 1, 1: 2, 2: 4}


class SnapshotBroken(Exception):
    """A snapshot cannot be read beyond the offset `at`."""

    def __init__(self, at: int, detail: str) -> None:
        super().__init__(detail)
        self.at = at


class Walk:
    """Read position in a snapshot; methods move it past what they read or skip."""

    def __init__(self, data: mmap.mmap | bytes, at: int) -> None:
        self._data = data
        self.at = at

    def peek(self, n: int) -> bytes:
        """Return the next `n` bytes, or fewer at the end, without moving."""
        return bytes(self._data[self.at : self.at + n])

    def take(self, n: int) -> bytes:
        """Return the next `n` bytes."""
        self.skip(n)
        return bytes(self._data[self.at - n : self.at])

    def skip(self, n: int) -> None:
        """Skip `n` bytes; SnapshotBroken if there are fewer."""
        if self.at + n > len(self._data):
            raise SnapshotBroken(self.at, "it ends inside an entry")
        self.at += n

    def byte(self) -> int:
        """Return the next byte."""
        self.skip(1)
        return self._data[self.at - 1]

    def length(self) -> int:
        """Return a length, or another number in the same encoding."""
        first = self.byte()
        if first < 0x40:
            return first
        if first < 0x80:
            return (first & 0x3F) << 8 | self.byte()
        if first in (0x80, 0x81):
            return int.from_bytes(self.take(4 if first == 0x80 else 8), "big")
        raise SnapshotBroken(self.at - 1, "a length is none")

    def string(self) -> None:
        """Skip a string, however it is packed."""
        _, n = self._string_packing()
        self.skip(n)

    def text(self) -> bytes:
        """Return the next string, unpacked."""
        packed, n = self._string_packing()
        found = self.take(n)
        if packed is None:
            return found
        if packed != _LZF:
            return str(int.from_bytes(found, "little", signed=True)).encode()
        try:
            return _decompress(found)
        except IndexError as error:
            raise SnapshotBroken(self.at, "a packed string is damaged") from error

    def _string_packing(self) -> tuple[int | None, int]:
        """Return the packing of the next string (None if not packed) and its number of bytes; move to its start."""
        if self.peek(1) < bytes([_NO_LENGTH]):
            return None, self.length()
        packed = self.byte() & 0x3F
        if packed == _LZF:
            n, _ = self.length(), self.length()
            return packed, n
        if packed in _PACKED_INTEGERS:
            return packed, _PACKED_INTEGERS[packed]
        raise SnapshotBroken(self.at - 1, "a string is packed in a way that is not known")

    def value(self, kind: int) -> None:
        """Skip a value of type `kind`."""
        if kind in _STRINGS:
            self.string()
        elif kind in _MANY:
            for _ in range(self.length()):
                _MANY[kind](self)
        elif kind in STREAMS:
            _stream(self, kind)
        else:
            raise SnapshotBroken(self.at, f"a value is of type {kind}, which is not known")

    def numbers(self, n: int) -> None:
        """Skip `n` numbers."""
        for _ in range(n):
            self.length()


def _decompress(packed: bytes) -> bytes:
    """Return bytes unpacked from LZF, which has runs of new bytes and copies of earlier ones; IndexError if damaged."""
    out, at = bytearray(), 0
    while at < len(packed):
        control, at = packed[at], at + 1
        if control < 32:
            out += packed[at : at + control + 1]
            at += control + 1
            continue
        length = control >> 5
        if length == 7:
            length, at = length + packed[at], at + 1
        back, at = ((control & 31) << 8 | packed[at]) + 1, at + 1
        for _ in range(length + 2):
            out.append(out[-back])
    return bytes(out)


def pair(walk: Walk) -> None:
    """Skip two strings."""
    walk.string()
    walk.string()


def _skip_scored(walk: Walk) -> None:
    walk.string()
    walk.skip(8)


def _scored_in_words(walk: Walk) -> None:
    walk.string()
    length = walk.byte()
    walk.skip(length if length < 253 else 0)  # lengths from 253 on stand for NaN and the infinities


def _node(walk: Walk) -> None:
    walk.length()
    walk.string()


def _stream(walk: Walk, kind: int) -> None:
    for _ in range(walk.length()):
        pair(walk)
    walk.numbers(3 if kind == 15 else 8)  # length and last id; in later types first id, greatest deleted id, and count
    for _ in range(walk.length()):
        walk.string()
        walk.numbers(2 if kind == 15 else 3)
        for _ in range(walk.length()):
            walk.skip(16 + 8)
            walk.length()
        for _ in range(walk.length()):
            walk.string()
            walk.skip(16 if kind == 21 else 8)
            walk.skip(16 * walk.length())


_STRINGS = (0, 9, 10, 11, 12, 13, 16, 17, 20)
"""Types of values that are stored as one string."""
_MANY: dict[int, Callable[[Walk], None]] = {
    1: Walk.string,
    2: Walk.string,
    3: _scored_in_words,
    4: pair,
    5: _skip_scored,
    14: Walk.string,
    18: _node,
}
"""Types of values that are a count followed by this many elements, with the function that skips an element."""
STREAMS = (15, 19, 21)


_OTHERS: dict[int, Callable[[Walk], None]] = {
    0xFB: lambda walk: walk.numbers(2),  # how many keys there are
    0xFA: pair,  # a note of the server
    0xF9: lambda walk: walk.skip(1),  # how often a key was used
    0xF8: lambda walk: walk.numbers(1),  # when a key was last used
    0xF5: Walk.string,  # a function
    0xF4: lambda walk: walk.numbers(3),  # a slot of a cluster
}
"""Entries that are no keys and are skipped, with the function that skips each."""


class Key(NamedTuple):
    """Key in a snapshot."""

    name: bytes
    expires: int | None
    """Time of expiry, in milliseconds since 1970; None for never."""
    start: int
    """Offset where the value begins."""
    end: int
    """Offset where the value ends."""
    type: int
    database: int
    version: int
    """Format version of the key's snapshot."""


def keys(data: mmap.mmap | bytes) -> Iterator[Key]:
    """Yield every key of all snapshots; SnapshotBroken if one cannot be read. Check-sums are not verified."""
    walk = Walk(data, 0)
    while walk.at < len(data) or not walk.at:
        yield from _keys(walk)
        walk.skip(_SUM_BYTES)


def _keys(walk: Walk) -> Iterator[Key]:
    """Yield every key of the snapshot at the read position, and stop before its check-sum."""
    head = _HEADER.fullmatch(walk.peek(HEADER_BYTES))
    if head is None:
        raise SnapshotBroken(walk.at, "it is no snapshot of a store")
    walk.skip(HEADER_BYTES)
    expires: int | None = None
    database = 0
    while (code := walk.byte()) != _END:
        if code == _DATABASE:
            database = walk.length()
        elif code == _SECONDS:
            expires = 1000 * int(struct.unpack("<i", walk.take(4))[0])
        elif code == _MILLISECONDS:
            expires = int(struct.unpack("<q", walk.take(8))[0])
        elif code in _OTHERS:
            _OTHERS[code](walk)
        else:
            name = walk.text()
            start = walk.at
            walk.value(code)
            yield Key(name, expires, start, walk.at, code, database, int(head[1]))
            expires = None
    if len(walk.peek(_SUM_BYTES)) < _SUM_BYTES:
        raise SnapshotBroken(walk.at, "it does not end with a check-sum")


def check(data: mmap.mmap) -> int:
    """Read whole snapshots and verify their check-sums.

    Returns:
        The number of keys in all snapshots.

    Raises:
        SnapshotBroken: one is no snapshot, or not what was written.
    """
    n, walk = 0, Walk(data, 0)
    while walk.at < len(data) or not walk.at:
        begin = walk.at
        n += sum(1 for _ in _keys(walk))
        end, crc = walk.at, 0
        for start in range(begin, end, _CHUNK_BYTES):
            crc = _CRC.calc(data[start : min(end, start + _CHUNK_BYTES)], crc)
        if int.from_bytes(walk.take(_SUM_BYTES), "little") not in (crc, _NO_SUM):
            raise SnapshotBroken(end, "its check-sum is that of other bytes")
    return n


def text(data: mmap.mmap, key: Key) -> bytes:
    """Return the value of a key of type string."""
    return Walk(data, key.start).text()


def as_payload(data: mmap.mmap, key: Key) -> bytes:
    """Return the value of a key in the form that the command RESTORE takes."""
    body = bytes([key.type]) + data[key.start : key.end] + key.version.to_bytes(2, "little")
    return body + int(_CRC.calc(body)).to_bytes(_SUM_BYTES, "little")
