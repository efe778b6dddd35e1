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

from app.store.snapshot_walk import SnapshotBroken, Walk, pair

_HEADER = re.compile(rb"(?:REDIS|VALKEY)(\d{3,4})")
HEADER_BYTES = 9
_SUM_BYTES = 8
_NO_SUM = 0  # where the server was told to write none
_CHUNK_BYTES = 1 << 20
_CRC = anycrc.Model("CRC64-REDIS")
_END, _DATABASE, _SECONDS, _MILLISECONDS = 0xFF, 0xFE, 0xFD, 0xFC
_OTHERS: dict[int, Callable[[Walk], None]] = {
    0xFB: lambda walk: walk.numbers(2),  # how many keys there are
    0xFA: pair,  # a note of the server
    0xF9: lambda walk: walk.skip(1),  # how often a key was used
    0xF8: lambda walk: walk.numbers(1),  # when it was
    0xF5: Walk.string,  # a function
    0xF4: lambda walk: walk.numbers(3),  # a slot of a cluster
}
"""Entries that are no keys and say nothing here."""


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


def version(data: mmap.mmap | bytes) -> int:
    """Version of the format; SnapshotBroken if it is no snapshot."""
    found = _HEADER.match(data)
    if found is None or found.end() != HEADER_BYTES:
        raise SnapshotBroken(0, "it is no snapshot of a store")
    return int(found[1])


def keys(data: mmap.mmap | bytes) -> Iterator[Key]:
    """Every key of a snapshot; SnapshotBroken where it cannot be read. The check-sum at its end is not looked at."""
    version(data)
    walk = Walk(data, HEADER_BYTES)
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
    return Walk(data, key.start).text()


def as_payload(data: mmap.mmap, key: Key) -> bytes:
    """A value as the command RESTORE takes it."""
    body = bytes([key.type]) + data[key.start : key.end] + version(data).to_bytes(2, "little")
    return body + int(_CRC.calc(body)).to_bytes(_SUM_BYTES, "little")
