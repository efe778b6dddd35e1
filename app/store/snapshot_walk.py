"""A place in a snapshot of a store, and where each value there ends, of whatever type it is."""

import mmap
from collections.abc import Callable

from app.store import lzf

_NO_LENGTH = 0xC0  # from here on, the first byte of a string says how it is packed
_LZF = 3
_PACKED_INTEGERS = {0: 1, 1: 2, 2: 4}


class SnapshotBroken(Exception):
    """A snapshot cannot be read any further than `at`."""

    def __init__(self, at: int, detail: str) -> None:
        super().__init__(detail)
        self.at = at


class Walk:
    """A place in a snapshot, moved on by what is read or passed over."""

    def __init__(self, data: mmap.mmap | bytes, at: int) -> None:
        self._data = data
        self.at = at

    def peek(self, n: int) -> bytes:
        """The next bytes, or as many as there are."""
        return bytes(self._data[self.at : self.at + n])

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
    walk = Walk(string, 0)
    packed = walk.byte() & 0x3F
    if packed != _LZF:
        return str(int.from_bytes(walk.take(_PACKED_INTEGERS[packed]), "little", signed=True)).encode()
    n, _ = walk.length(), walk.length()
    try:
        return lzf.unpacked(walk.take(n))
    except IndexError as error:
        raise SnapshotBroken(walk.at, "a packed string is damaged") from error


def pair(walk: Walk) -> None:
    """Pass over two strings."""
    walk.string()
    walk.string()


def _scored(walk: Walk) -> None:
    walk.string()
    walk.skip(8)


def _scored_in_words(walk: Walk) -> None:
    walk.string()
    length = walk.byte()
    walk.skip(length if length < 253 else 0)  # from there on it is an infinity, or no number


def _node(walk: Walk) -> None:
    walk.length()
    walk.string()


def _stream(walk: Walk, kind: int) -> None:
    for _ in range(walk.length()):
        pair(walk)
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


_STRINGS = (0, 9, 10, 11, 12, 13, 16, 17, 20)
"""Types of values that are one string."""
_MANY: dict[int, Callable[[Walk], None]] = {
    1: Walk.string,
    2: Walk.string,
    3: _scored_in_words,
    4: pair,
    5: _scored,
    14: Walk.string,
    18: _node,
}
"""Types of values that are a count, and so many of something."""
STREAMS = (15, 19, 21)
