"""Reading a snapshot of a store (an RDB file) key by key, without knowing what the values mean.

A snapshot is a header of nine bytes, entries, and a CRC-64 of all before it. An entry is a byte that says what it is;
most are keys: the byte is the type of the value, then come the name and the value. This module knows where each value
ends, for every type that servers write up to version 11 of the format (Valkey 8, Redis 7.2) save those of modules. What
newer servers have added is refused by the number of its type.
"""

import mmap
import re
import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

import anycrc

from app.store import lzf

_HEADER = re.compile(rb"(?:REDIS|VALKEY)(\d{3,4})")
HEADER_BYTES = 9
_SUM_BYTES = 8
_NO_SUM = 0  # where the server was told to write none
_CHUNK_BYTES = 1 << 20
_CRC = anycrc.Model("CRC64-REDIS")
_END, _SELECT, _SECONDS, _MILLISECONDS, _SIZES, _NOTE, _FREQUENCY, _IDLE, _FUNCTION, _SLOT = (
    *(0xFF, 0xFE, 0xFD, 0xFC, 0xFB, 0xFA, 0xF9, 0xF8, 0xF5, 0xF4),
)
_NO_LENGTH = 0xC0  # from here on, the first byte of a string says how it is packed
_LZF = 3
_PACKED_INTEGERS = {0: 1, 1: 2, 2: 4}


class Key(NamedTuple):
    """A key of a snapshot."""

    name: bytes
    expires: int | None
    """When it expires, in milliseconds since 1970; None if it never does."""
    start: int
    """Where the value begins."""
    end: int
    """Where it ends."""
    type: int
    database: int


class SnapshotBroken(Exception):
    """A snapshot cannot be read any further than `at`."""

    def __init__(self, at: int, detail: str) -> None:
        super().__init__(detail)
        self.at = at


def version(data: mmap.mmap | bytes) -> int:
    """Version of the format; SnapshotBroken if it is no snapshot."""
    found = _HEADER.match(data)
    if found is None or found.end() != HEADER_BYTES:
        raise SnapshotBroken(0, "it is no snapshot of a store")
    return int(found[1])


def keys(data: mmap.mmap | bytes) -> Iterator[Key]:
    """Every key of a snapshot; SnapshotBroken where it cannot be read. The check-sum at its end is not looked at."""
    version(data)
    walk = _Walk(data, HEADER_BYTES)
    expires: int | None = None
    database = 0
    while (code := walk.byte()) != _END:
        match code:
            case 0xFE:
                database = walk.length()
            case 0xFD:
                expires = 1000 * int(struct.unpack("<i", walk.take(4))[0])
            case 0xFC:
                expires = int(struct.unpack("<q", walk.take(8))[0])
            case _ if code in _OTHERS:
                _OTHERS[code](walk)
            case _:
                name = walk.text()
                start = walk.at
                walk.value(code)
                yield Key(name, expires, start, walk.at, code, database)
                expires = None
    if walk.at + _SUM_BYTES != len(data):
        raise SnapshotBroken(walk.at, "it does not end with a check-sum")


def check(data: mmap.mmap) -> int:
    """Read a whole snapshot, and compare its check-sum.

    Returns:
        The number of its keys.

    Raises:
        SnapshotBroken: it is none, or not what was written.
    """
    n = sum(1 for _ in keys(data))
    end, crc = len(data) - _SUM_BYTES, 0
    for start in range(0, end, _CHUNK_BYTES):
        crc = _CRC.calc(data[start : min(end, start + _CHUNK_BYTES)], crc)
    if int.from_bytes(data[end:], "little") not in (crc, _NO_SUM):
        raise SnapshotBroken(end, "its check-sum is that of other bytes")
    return n


def text(data: mmap.mmap, key: Key) -> bytes:
    """A value that is a string."""
    return _Walk(data, key.start).text()


def as_payload(data: mmap.mmap, key: Key) -> bytes:
    """A value as the command RESTORE takes it."""
    body = bytes([key.type]) + data[key.start : key.end] + version(data).to_bytes(2, "little")
    return body + int(_CRC.calc(body)).to_bytes(_SUM_BYTES, "little")


class _Walk:
    """A place in a snapshot, moved on by what is read or passed over."""

    def __init__(self, data: mmap.mmap | bytes, at: int) -> None:
        self._data = data
        self.at = at

    def take(self, n: int) -> bytes:
        """The next bytes."""
        self.skip(n)
        return bytes(self._data[self.at - n : self.at])

    def skip(self, n: int) -> None:
        """Pass over bytes."""
        if self.at + n > len(self._data):
            raise SnapshotBroken(self.at, "it ends inside an entry")
        self.at += n

    def byte(self) -> int:
        """The next byte."""
        self.skip(1)
        return self._data[self.at - 1]

    def length(self) -> int:
        """A length, or another number that is written like one."""
        first = self.byte()
        if first < 0x40:
            return first
        if first < 0x80:
            return (first & 0x3F) << 8 | self.byte()
        if first in (0x80, 0x81):
            return int.from_bytes(self.take(4 if first == 0x80 else 8), "big")
        raise SnapshotBroken(self.at - 1, "a length is none")

    def string(self) -> None:
        """Pass over a string, however it is packed."""
        if self.at < len(self._data) and self._data[self.at] >= _NO_LENGTH:
            packed = self.byte() & 0x3F
            if packed == _LZF:
                length = self.length()
                self.length()
                self.skip(length)
            elif packed in _PACKED_INTEGERS:
                self.skip(_PACKED_INTEGERS[packed])
            else:
                raise SnapshotBroken(self.at - 1, "a string is packed in a way that is not known")
        else:
            self.skip(self.length())

    def text(self) -> bytes:
        """The next string, unpacked."""
        start = self.at
        first = self._data[start] if start < len(self._data) else 0
        if first >= _NO_LENGTH:
            self.string()
            return _unpacked(bytes(self._data[start : self.at]))
        return self.take(self.length())

    def value(self, kind: int) -> None:
        """Pass over a value of a type."""
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
        """Pass over so many numbers."""
        for _ in range(n):
            self.length()


def _unpacked(string: bytes) -> bytes:
    """A packed string as it was."""
    walk = _Walk(string, 0)
    packed = walk.byte() & 0x3F
    if packed != _LZF:
        return str(int.from_bytes(walk.take(_PACKED_INTEGERS[packed]), "little", signed=True)).encode()
    n, _ = walk.length(), walk.length()
    return lzf.unpacked(walk.take(n))


def _pair(walk: _Walk) -> None:
    walk.string()
    walk.string()


def _scored(walk: _Walk) -> None:
    walk.string()
    walk.skip(8)


def _scored_in_words(walk: _Walk) -> None:
    walk.string()
    length = walk.byte()
    walk.skip(length if length < 253 else 0)  # from there on it is an infinity, or no number


def _node(walk: _Walk) -> None:
    walk.length()
    walk.string()


def _stream(walk: _Walk, kind: int) -> None:
    for _ in range(walk.length()):
        _pair(walk)
    walk.numbers(3 if kind == 15 else 8)  # length and last id; then first id, greatest deleted one, and count
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


_OTHERS: dict[int, Callable[[_Walk], None]] = {
    _SIZES: lambda walk: walk.numbers(2),
    _NOTE: _pair,
    _FREQUENCY: lambda walk: walk.skip(1),
    _IDLE: lambda walk: walk.numbers(1),
    _FUNCTION: _Walk.string,
    _SLOT: lambda walk: walk.numbers(3),
}
"""Entries that are no keys and say nothing here."""
_STRINGS = (0, 9, 10, 11, 12, 13, 16, 17, 20)
"""Types of values that are one string."""
_MANY: dict[int, Callable[[_Walk], None]] = {
    1: _Walk.string,
    2: _Walk.string,
    3: _scored_in_words,
    4: _pair,
    5: _scored,
    14: _Walk.string,
    18: _node,
}
"""Types of values that are a count, and so many of something."""
STREAMS = (15, 19, 21)
