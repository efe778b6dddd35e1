"""Reading a snapshot of a store (an RDB file) key by key, without knowing what the values mean.

A snapshot is a header of nine bytes, entries, and a CRC-64 of all before it. An entry is a byte that says what it is;
most are keys: the byte is the type of the value, then come the name and the value. The snapshots of several servers may
stand one after the other, as in a backup of a cluster. This module knows where each value
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
    version: int
    """Of the format of its snapshot."""


def keys(data: mmap.mmap | bytes) -> Iterator[Key]:
    """Every key of all snapshots; SnapshotBroken where one cannot be read. Check-sums are not looked at."""
    walk = Walk(data, 0)
    while walk.at < len(data) or not walk.at:
        yield from _keys(walk)
        walk.skip(_SUM_BYTES)


def _version(walk: Walk) -> int:
    """Version of the format of the snapshot that begins here, moved on past its header."""
    found = _HEADER.match(walk.peek(HEADER_BYTES))
    if found is None or found.end() != HEADER_BYTES:
        raise SnapshotBroken(walk.at, "it is no snapshot of a store")
    walk.skip(HEADER_BYTES)
    return int(found[1])


def _keys(walk: Walk) -> Iterator[Key]:
    """Every key of the snapshot that begins here, up to its check-sum."""
    version = _version(walk)
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
            yield Key(name, expires, start, walk.at, code, database, version)
            expires = None
    if len(walk.peek(_SUM_BYTES)) < _SUM_BYTES:
        raise SnapshotBroken(walk.at, "it does not end with a check-sum")


def check(data: mmap.mmap) -> int:
    """Read whole snapshots, and compare their check-sums.

    Returns:
        The number of their keys.

    Raises:
        SnapshotBroken: one is none, or not what was written.
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
    """A value that is a string."""
    return Walk(data, key.start).text()


def as_payload(data: mmap.mmap, key: Key) -> bytes:
    """A value as the command RESTORE takes it."""
    body = bytes([key.type]) + data[key.start : key.end] + key.version.to_bytes(2, "little")
    return body + int(_CRC.calc(body)).to_bytes(_SUM_BYTES, "little")
