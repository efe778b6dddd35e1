"""The codes of an index in memory: as they were at one moment, for who searches, and as they become, for who reads."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.core.indexes.banding import SEGMENT, Banding, Codes, Segment, segment

Marks = NDArray[np.uint64]
# Of the room that there is already: so much more is taken when it is not enough.
_GROWTH = 1.25


class Layout(NamedTuple):
    """How an index keeps its vectors."""

    s: int
    """Codes of a vector."""
    bits: int
    """Of a code."""
    banding: Banding | None
    """None where a search looks at all codes."""
    slots_per_block: int

    @property
    def code_bytes(self) -> int:
        """Bytes of the codes of a vector."""
        return -(-self.s * self.bits // 8)

    @property
    def bytes_per_vector(self) -> int:
        """Memory that a vector takes, without its id."""
        return 8 + self.code_bytes + (0 if self.banding is None else 4 * self.banding.bands)

    @property
    def most_bytes_per_vector(self) -> int:
        """Likewise, where room is taken for more vectors."""
        return self.bytes_per_vector + ceil((_GROWTH - 1) * (8 + self.code_bytes))


class Image(NamedTuple):
    """An index at one moment. What it has of more slots than `size` is not of it."""

    codes: Codes
    """Packed, (size, code bytes)."""
    marks: Marks
    """Of tags, (size,)."""
    ids: Sequence[bytes]
    """The ids of each block, each id after its length in two bytes."""
    segments: tuple[Segment, ...]

    @property
    def size(self) -> int:
        """How many vectors there are."""
        return len(self.codes)


class ChangedBlock(NamedTuple):
    """The slots of a block as they are now, from its first on."""

    marks: Marks
    codes: Codes
    ids: bytes


class HeldCodes:
    """The codes of an index, which one thread changes at a time while others look at images of them.

    An image never changes: new slots are written behind it, and others into a copy while somebody looks.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._codes = np.empty((0, layout.code_bytes), np.uint8)
        self._marks = np.empty(0, np.uint64)
        self._image = Image(self._codes, self._marks, (), ())
        self._bytes_of_ids = 0
        # Segments with slots that have changed since they were sorted.
        self._stale: set[int] = set()
        self._readers = 0
        # Slots that somebody looks at; not more than there were when they began, but maybe more than there are now.
        self._looked_at = 0
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Memory that is taken."""
        image, banding = self._image, self.layout.banding
        ids = self._bytes_of_ids + 64 * len(image.ids)
        segments = 0 if banding is None else 4 * banding.bands * image.size
        return self._codes.nbytes + self._marks.nbytes + segments + ids

    @contextmanager
    def looked_at(self) -> Iterator[Image]:
        """The image of this moment."""
        with self._lock:
            image = self._image = self._sorted(self._image)
            self._readers += 1
            self._looked_at = max(self._looked_at, image.size)
        try:
            yield image
        finally:
            with self._lock:
                self._readers -= 1
                if not self._readers:
                    self._looked_at = 0

    def change(self, blocks: Mapping[int, ChangedBlock], size: int) -> None:
        """Put blocks in the place of those of these numbers. There are `size` slots from now on."""
        with self._lock:
            before, per_block = self._image, self.layout.slots_per_block
            if size > len(self._codes) or size < len(self._codes) // 4:
                room = int(size * _GROWTH) + per_block
                self._codes, self._marks = (_moved(old, before.size, room) for old in (self._codes, self._marks))
                self._looked_at = 0
            elif any(number * per_block < self._looked_at for number in blocks):
                self._codes, self._marks = self._codes.copy(), self._marks.copy()
                self._looked_at = 0
            ids = [*before.ids[: -(-size // per_block)]]
            for number in sorted(blocks):
                self._write(number, blocks[number], ids)
            self._bytes_of_ids = sum(map(len, ids))
            self._stale |= {number * per_block // SEGMENT for number in blocks}
            self._image = Image(self._codes[:size], self._marks[:size], ids, before.segments)

    def _write(self, number: int, block: ChangedBlock, ids: list[bytes]) -> None:
        first = number * self.layout.slots_per_block
        n = min(len(block.codes), len(self._codes) - first)
        slots = slice(first, first + n)
        self._codes[slots], self._marks[slots] = block.codes[:n], block.marks[:n]
        ids += [b""] * (number + 1 - len(ids))  # of blocks that come with a later change
        ids[number] = block.ids

    def _sorted(self, image: Image) -> Image:
        """The image with its segments. They are sorted when it is looked at, as a large index comes in many parts."""
        if self.layout.banding is None:
            return image
        found = []
        for number, first in enumerate(range(0, image.size, SEGMENT)):
            codes, before = image.codes[first : first + SEGMENT], image.segments[number : number + 1]
            if number in self._stale or not before or before[0].places.shape[1] != len(codes):
                found.append(segment(codes, self.layout.bits, self.layout.banding))
            else:
                found.append(before[0])
        self._stale.clear()
        return image._replace(segments=tuple(found))


def _moved(old: NDArray[Any], size: int, room: int) -> NDArray[Any]:
    """The first `size` rows of an array in a new one of so many."""
    found = np.empty((room, *old.shape[1:]), old.dtype)
    found[: min(size, room)] = old[: min(size, room)]
    return found
