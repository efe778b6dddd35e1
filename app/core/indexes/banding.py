"""Buckets of packed codes: two vectors are compared where all codes of a band are equal in both.

A band of r codes, of which `bands` stand one behind the other, becomes a word of 16 bits. Vectors whose words are equal
in a band are candidates: all that share the band, at the rate J^r of their similarity J, and one in 65,536 others.
Words are sorted by segments of slots, so that a change of some vectors sorts no others.

The codes of an index are in memory as they were at one moment, for who searches, and as they become, for who reads.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Array, Whole
from app.core.compiled import jit

Codes = NDArray[np.uint8]
Words = NDArray[np.uint16]
Mixed = NDArray[np.uint64]

SEGMENT = 1 << 14
"""Slots whose words are sorted together."""
CHANCE = 2.0**-16
"""How often words of a band are equal where its codes are not."""
MANY = 4
"""A search whose buckets have more than one of so many vectors looks at all of them in their order, which takes less.

So does one whose buckets have as many entries as there are vectors, one that is in several counting in each: to tell
them apart takes as long. Of 1,000,000 vectors with codes of 128 bytes, a fifth in buckets take as long as all.
"""
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


class Banding(NamedTuple):
    """How codes are put into buckets."""

    bands: int
    rows_per_band: int


class Segment(NamedTuple):
    """The words of some slots in order, band by band."""

    words: Words
    """Sorted, (bands, n)."""
    places: Words
    """The slots that have them, counted from the first of the segment, (bands, n)."""


def unwritable(array: Array) -> Array:
    """The array, not to be written to: loops are compiled for such codes alone."""
    found = array.view()
    found.flags.writeable = False
    return found


def bucket_words(codes: Codes, bits: int, banding: Banding) -> Words:
    """The words of packed codes, (n, ⌈s·bits/8⌉) to (bands, n); bits of a code are 1, 2, 4, 8 or 16."""
    words = np.empty((banding.bands, len(codes)), np.uint16)
    _write_words(unwritable(codes), bits, banding.rows_per_band, words)
    return words


def mixed_codes(codes: Codes, rows: Whole, bits: int, first: int, last: int) -> Mixed:
    """A word of 64 bits for the codes from `first` to `last` of some rows, (m,); where these are equal, it is."""
    found = np.empty(len(rows), np.uint64)
    _write_mixed_codes(unwritable(codes), rows, bits, first, last, found)
    return found


def segment(codes: Codes, bits: int, banding: Banding) -> Segment:
    """The segment of at most `SEGMENT` slots of these codes."""
    words = bucket_words(codes, bits, banding)
    found = Segment(words, np.empty_like(words))
    for of_band, places in zip(*found, strict=True):
        places[:] = np.argsort(of_band, kind="stable")
        of_band[:] = of_band[places]
    return found


class Candidates:
    """Finds the candidates of one query after the other among so many slots; not for several threads at once."""

    def __init__(self, segments: tuple[Segment, ...], size: int) -> None:
        self._segments = segments
        self._seen = np.zeros(size, np.bool_)
        self._found = np.empty(size, np.int64)

    def buckets(self, words: Words) -> Whole:
        """The buckets of a query, whose words are (bands,).

        Of each segment: where the bucket of each band begins in its order, and where it has ended, (·, 2, bands).
        """
        found = np.empty((len(self._segments), 2, len(words)), np.int64)
        for one, ends in zip(self._segments, found, strict=True):
            _find(one.words, words, ends)
        return found

    def of(self, buckets: Whole) -> Whole:
        """The slots in the buckets of a query, each once, in any order."""
        n = 0
        for number, (one, ends) in enumerate(zip(self._segments, buckets, strict=True)):
            n = _collect(one.places, ends, number * SEGMENT, self._seen, self._found, n)
        found = self._found[:n].copy()
        self._seen[found] = False
        return found


@jit
def _write_words(codes: Codes, bits: int, rows_per_band: int, words: Words) -> None:
    """Write the upper bits of the mixed codes of each band."""
    for i in range(len(codes)):
        for band in range(len(words)):
            first = band * rows_per_band
            words[band, i] = np.uint16(_mix_codes(codes, i, bits, first, first + rows_per_band) >> np.uint64(48))


@jit
def _write_mixed_codes(codes: Codes, rows: Whole, bits: int, first: int, last: int, found: Mixed) -> None:
    """Write the mixed codes of some rows."""
    for i in range(len(rows)):
        found[i] = _mix_codes(codes, rows[i], bits, first, last)


@jit
def _mix_codes(codes: Codes, i: int, bits: int, first: int, last: int) -> np.uint64:
    """Mix some codes of a row, the lowest bits of a byte being its first code."""
    mixed = np.uint64(0)
    for code in range(first, last):
        at = code * bits
        if bits == 16:
            value = np.uint64(codes[i, at >> 3]) | np.uint64(codes[i, (at >> 3) + 1]) << np.uint64(8)
        else:
            value = np.uint64(codes[i, at >> 3] >> (at & 7)) & np.uint64((1 << bits) - 1)
        mixed = (mixed ^ value) * _MULTIPLIER
        mixed ^= mixed >> np.uint64(32)
    return mixed


@jit
def _find(words: Words, wanted: Words, ends: Whole) -> None:
    """Write where the wanted word of each band begins in a segment, and where it has ended, (2, bands)."""
    for band in range(len(words)):
        for end in range(2):
            # A bucket has ended where the next word would begin.
            least = np.int64(wanted[band]) + end
            low, high = 0, words.shape[1]
            while low < high:
                middle = (low + high) >> 1
                if words[band, middle] < least:
                    low = middle + 1
                else:
                    high = middle
            ends[end, band] = low


@jit
def _collect(places: Words, ends: Whole, first: int, seen: NDArray[np.bool_], found: Whole, n: int) -> int:
    """Note the slots of a segment that are in buckets and were not seen; gives how many there are by now."""
    for band in range(len(places)):
        for at in range(ends[0, band], ends[1, band]):
            slot = first + places[band, at]
            if not seen[slot]:
                seen[slot] = True
                found[n] = slot
                n += 1
    return n


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
            image = self._image = self._sort_segments(self._image)
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
                self._codes, self._marks = (_grow(old, before.size, room) for old in (self._codes, self._marks))
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

    def _sort_segments(self, image: Image) -> Image:
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


def _grow(old: NDArray[Any], size: int, room: int) -> NDArray[Any]:
    """The first `size` rows of an array in a new one of so many."""
    found = np.empty((room, *old.shape[1:]), old.dtype)
    found[: min(size, room)] = old[: min(size, room)]
    return found
