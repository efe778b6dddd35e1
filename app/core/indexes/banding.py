"""Buckets of packed codes: two vectors are compared if all codes of a band are equal in both.

Codes are dealt, in an order drawn once and for all, to `bands` bands of r codes, and each band is mixed into a word of
16 bits. Vectors with equal words in a band are candidates: all that share the band, at the rate J^r where codes agree
at the rate J, and one in 65,536 others. Codes that follow each other would share bands less often: most samplers spread
each run of frequencies evenly. Words are sorted by segments of slots, so that a change of some vectors sorts no other
segments again.

`HeldCodes` keeps the codes of an index in memory: searches use a snapshot while changes are read and applied.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from math import ceil, log1p
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Array, Whole
from app.core.compiled import jit

Codes = NDArray[np.uint8]
Words = NDArray[np.uint16]
Mixed = NDArray[np.uint64]

SEGMENT = 1 << 14
"""Number of slots whose words are sorted together."""
CHANCE = 2.0**-16
"""Probability that words of a band are equal although its codes are not."""
MANY = 4
"""A search whose buckets hold more than one in this many vectors scans all vectors in order, which is faster.

So does a search whose buckets have more entries than there are vectors, a vector in several buckets counting in each:
finding the distinct ones takes as long. Of 1,000,000 vectors with codes of 128 bytes, comparing a fifth from buckets
takes as long as comparing all.
"""
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


_LEAST_SHARED = 1e-12


class Banding(NamedTuple):
    """How codes are cut into bands, which determine the buckets."""

    bands: int
    """Number of bands."""
    rows_per_band: int
    """Number of codes in a band."""


def banding_for(n_codes: int, rate: float, recall: float) -> tuple[Banding, bool]:
    """Return the bands of most codes that two vectors share with probability `recall` if their codes agree at a rate.

    Bands of most codes have the fewest candidates. Also return whether there are any; if not, each code is a band.
    """
    for rows_per_band in range(n_codes, 0, -1):
        shared = rate**rows_per_band
        if shared >= recall:
            return Banding(1, rows_per_band), True
        # A band of so many codes is hardly ever shared, where `shared` is 0 or nearly so.
        bands = ceil(log1p(-recall) / log1p(-shared)) if shared > _LEAST_SHARED else n_codes + 1
        if bands * rows_per_band <= n_codes:
            return Banding(bands, rows_per_band), True
    return Banding(n_codes, 1), False


def probability(banding: Banding, rate: float) -> float:
    """Return the probability that two vectors share a band if their codes agree at a rate: 1 − (1 − rate^r)^b."""
    return float(1 - (1 - rate**banding.rows_per_band) ** banding.bands)


class Segment(NamedTuple):
    """The words of some slots, sorted within each band."""

    words: Words
    """Sorted words, (bands, n)."""
    places: Words
    """Slots of the words, counted from the first slot of the segment, (bands, n)."""


def unwritable(array: Array) -> Array:
    """Return a read-only view of the array: loops are compiled for read-only codes alone."""
    found = array.view()
    found.flags.writeable = False
    return found


@lru_cache(maxsize=4)
def order_of_codes(s: int) -> Whole:
    """Return the order in which s codes are dealt to bands, (s,); nothing that is stored depends on it."""
    return unwritable(np.random.Generator(np.random.PCG64(s)).permutation(s))


def bucket_words(codes: Codes, s: int, bits: int, banding: Banding) -> Words:
    """Compute the words of packed codes, (n, ⌈s·bits/8⌉) to (bands, n); a code has 1, 2, 4, 8 or 16 bits."""
    words = np.empty((banding.bands, len(codes)), np.uint16)
    _write_words(unwritable(codes), bits, order_of_codes(s), banding.rows_per_band, words)
    return words


def mixed_codes(codes: Codes, rows: Whole, bits: int, first: int, last: int) -> Mixed:
    """Mix the codes `first` to `last` − 1 of some rows into words of 64 bits, (m,); equal codes have equal words."""
    found = np.empty(len(rows), np.uint64)
    _write_mixed_codes(unwritable(codes), rows, bits, unwritable(np.arange(first, last)), found)
    return found


def segment(codes: Codes, s: int, bits: int, banding: Banding) -> Segment:
    """Return the segment of these codes, of at most `SEGMENT` slots."""
    words = bucket_words(codes, s, bits, banding)
    found = Segment(words, np.empty_like(words))
    for of_band, places in zip(*found, strict=True):
        places[:] = np.argsort(of_band, kind="stable")
        of_band[:] = of_band[places]
    return found


class Candidates:
    """Finder of the candidates of a query among `size` slots, one query at a time; not for several threads at once."""

    def __init__(self, segments: tuple[Segment, ...], size: int) -> None:
        self._segments = segments
        self._seen = np.zeros(size, np.bool_)
        self._found = np.empty(size, np.int64)

    def buckets(self, words: Words) -> Whole:
        """Return the buckets of a query with the words (bands,).

        For each segment: where the bucket of each band begins and ends in the sorted words, (segments, 2, bands).
        """
        found = np.empty((len(self._segments), 2, len(words)), np.int64)
        for one, ends in zip(self._segments, found, strict=True):
            _find(one.words, words, ends)
        return found

    def of(self, buckets: Whole) -> Whole:
        """Return the slots in the buckets of a query, each once, in any order."""
        n = 0
        for number, (one, ends) in enumerate(zip(self._segments, buckets, strict=True)):
            n = _collect(one.places, ends, number * SEGMENT, self._seen, self._found, n)
        found = self._found[:n].copy()
        self._seen[found] = False
        return found


@jit
def _write_words(codes: Codes, bits: int, order: Whole, rows_per_band: int, words: Words) -> None:
    """Write the upper bits of the mixed codes of each band."""
    for i in range(len(codes)):
        for band in range(len(words)):
            of_band = order[band * rows_per_band : (band + 1) * rows_per_band]
            words[band, i] = np.uint16(_mix_codes(codes, i, bits, of_band) >> np.uint64(48))


@jit
def _write_mixed_codes(codes: Codes, rows: Whole, bits: int, some: Whole, found: Mixed) -> None:
    """Write the mixed codes of some rows."""
    for i in range(len(rows)):
        found[i] = _mix_codes(codes, rows[i], bits, some)


@jit
def _mix_codes(codes: Codes, i: int, bits: int, some: Whole) -> np.uint64:
    """Mix some codes of a row; the first code of a byte is in its lowest bits."""
    mixed = np.uint64(0)
    for code in some:
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
    """Write where the wanted word of each band begins and ends in a segment, (2, bands)."""
    for band in range(len(words)):
        for end in range(2):
            # A bucket ends where the next word would begin.
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
    """Add the slots of a segment that are in buckets and not yet seen to `found`; return their new number."""
    for band in range(len(places)):
        for at in range(ends[0, band], ends[1, band]):
            slot = first + places[band, at]
            if not seen[slot]:
                seen[slot] = True
                found[n] = slot
                n += 1
    return n


Marks = NDArray[np.uint64]
# Arrays that are too small get room for this many times the vectors.
_GROWTH = 1.25
# Seconds to wait for long searches that look at earlier states.
_PATIENCE_SECONDS = 1.0


class Layout(NamedTuple):
    """How an index stores its vectors."""

    s: int
    """Number of codes of a vector."""
    bits: int
    """Number of bits of a code."""
    banding: Banding | None
    """None if a search looks at all codes."""
    slots_per_block: int

    @property
    def code_bytes(self) -> int:
        """Bytes of the codes of a vector."""
        return -(-self.s * self.bits // 8)

    @property
    def bytes_per_vector(self) -> int:
        """Bytes of memory for a vector, without its id."""
        return 8 + self.code_bytes + (0 if self.banding is None else 4 * self.banding.bands)

    @property
    def most_bytes_per_vector(self) -> int:
        """Bytes of memory for a vector, without its id, if arrays have just grown and have the most spare room."""
        return self.bytes_per_vector + ceil((_GROWTH - 1) * (8 + self.code_bytes))


class Image(NamedTuple):
    """Snapshot of an index at one moment. Data of slots from `size` on is not part of it."""

    codes: Codes
    """Packed codes, (size, code bytes)."""
    marks: Marks
    """Marks of tags, (size,)."""
    ids: Sequence[bytes]
    """The ids of each block, each id after its length in two bytes."""
    segments: tuple[Segment, ...]
    tags: Mapping[int, bytes]
    """Sets of tags, as JSON lists, by their marks; more than these vectors have, perhaps."""

    @property
    def size(self) -> int:
        """Number of vectors."""
        return len(self.codes)


class ChangedBlock(NamedTuple):
    """Present contents of the slots of a block, from its first slot on."""

    marks: Marks
    codes: Codes
    ids: bytes


BYTES_PER_SET = 200
"""Bytes of memory for a set of tags, beside its text."""
_MANY_BYTES_OF_TAGS = 1 << 20


def _bytes_of_sets(tags: Mapping[int, bytes]) -> int:
    return sum(map(len, tags.values())) + BYTES_PER_SET * len(tags)


class _Arrays:
    """Codes and marks of all slots of an index, and how much of them is in use."""

    def __init__(self, codes: Codes, marks: Marks) -> None:
        self.codes, self.marks = codes, marks
        self.readers = 0
        """Snapshots in use."""
        self.looked_at = 0
        """Slots that are part of snapshots in use; may be more than the index has now."""

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.codes.nbytes + self.marks.nbytes


class InUse(Exception):
    """Earlier states of the codes, which long searches look at, take all the memory that they may."""


class HeldCodes:
    """The codes of an index, changed by one thread at a time while other threads use snapshots (`Image`).

    A snapshot never changes: new slots are written behind it, and changed slots into a copy while it is in use.

    Args:
        layout: how the index stores its vectors.
        most_bytes: memory that arrays of earlier states may take while snapshots of them are in use.
    """

    def __init__(self, layout: Layout, most_bytes: int) -> None:
        self.layout = layout
        self._arrays = _Arrays(np.empty((0, layout.code_bytes), np.uint8), np.empty(0, np.uint64))
        self._most_bytes, self._earlier = most_bytes, set[_Arrays]()
        self._image = Image(self._arrays.codes, self._arrays.marks, (), (), {})
        self._bytes_of_ids, self._bytes_of_tags, self._most_bytes_of_tags = 0, 0, _MANY_BYTES_OF_TAGS
        # Segments with slots that have changed since they were sorted.
        self._stale: set[int] = set()
        self._lock = threading.Condition()

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        image, banding = self._image, self.layout.banding
        ids = self._bytes_of_ids + 64 * len(image.ids)
        segments = 0 if banding is None else 4 * banding.bands * image.size
        return self._arrays.nbytes + segments + ids + self._bytes_of_tags

    @contextmanager
    def looked_at(self) -> Iterator[Image]:
        """Yield the snapshot of this moment, which stays unchanged while the context lasts."""
        with self._lock:
            image, arrays = self._sort_segments(self._image), self._arrays
            self._image = image
            arrays.readers += 1
            arrays.looked_at = max(arrays.looked_at, image.size)
        try:
            yield image
        finally:
            with self._lock:
                arrays.readers -= 1
                if not arrays.readers:
                    arrays.looked_at = 0
                    self._earlier.discard(arrays)
                    self._lock.notify()

    def change(self, blocks: Mapping[int, ChangedBlock], size: int, tags: Mapping[int, bytes] | None = None) -> None:
        """Replace the blocks of these numbers. There are `size` slots from now on.

        `tags` are the sets of tags of vectors in these blocks, as JSON lists, by their marks. Raises InUse, and changes
        nothing, if snapshots of earlier states are in use for longer than a moment and take too much memory.
        """
        with self._lock:
            before, per_block, room = self._image, self.layout.slots_per_block, len(self._arrays.codes)
            if size > room or size < room // 4:
                self._copy(before.size, int(size * _GROWTH))
            elif any(number * per_block < self._arrays.looked_at for number in blocks):
                self._copy(before.size, room)
            ids = [*before.ids[: -(-size // per_block)]]
            for number in sorted(blocks):
                self._write(number, blocks[number], ids)
            self._bytes_of_ids = sum(map(len, ids))
            self._stale |= {number * per_block // SEGMENT for number in blocks}
            codes, marks = self._arrays.codes[:size], self._arrays.marks[:size]
            self._image = Image(codes, marks, ids, before.segments, self._tags(marks, tags or {}))

    def _copy(self, size: int, room: int) -> None:
        """Go on with a copy of the first `size` slots, with room for `room`; raise InUse if there is no memory for it.

        The caller has the lock, which others may have meanwhile.
        """

        def fits() -> bool:
            return sum(one.nbytes for one in (*self._earlier, self._arrays) if one.readers) <= self._most_bytes

        if not self._lock.wait_for(fits, _PATIENCE_SECONDS):
            raise InUse
        before = self._arrays
        if before.readers:
            self._earlier.add(before)
        self._arrays = _Arrays(_grow(before.codes, size, room), _grow(before.marks, size, room))

    def forget_tags(self) -> None:
        """Drop sets of tags that no vector has any more."""
        with self._lock:
            self._image = self._image._replace(tags=self._used_tags(self._image.marks, self._image.tags))

    def _tags(self, marks: Marks, more: Mapping[int, bytes]) -> Mapping[int, bytes]:
        """Return the sets of tags with some more; those in use, if twice as many bytes as at the last look are held."""
        before = self._image.tags
        new = {mark: text for mark, text in more.items() if mark not in before}
        if not new:
            return before
        self._bytes_of_tags += _bytes_of_sets(new)
        found = {**before, **new}
        return self._used_tags(marks, found) if self._bytes_of_tags > self._most_bytes_of_tags else found

    def _used_tags(self, marks: Marks, tags: Mapping[int, bytes]) -> Mapping[int, bytes]:
        used = {*np.unique(marks).tolist()}
        found = {mark: text for mark, text in tags.items() if mark in used}
        self._bytes_of_tags = _bytes_of_sets(found)
        self._most_bytes_of_tags = max(_MANY_BYTES_OF_TAGS, 2 * self._bytes_of_tags)
        return found

    def _write(self, number: int, block: ChangedBlock, ids: list[bytes]) -> None:
        first = number * self.layout.slots_per_block
        codes, marks = self._arrays.codes, self._arrays.marks
        n = min(len(block.codes), len(codes) - first)
        slots = slice(first, first + n)
        codes[slots], marks[slots] = block.codes[:n], block.marks[:n]
        ids += [b""] * (number + 1 - len(ids))  # for blocks that come with a later change
        ids[number] = block.ids

    def _sort_segments(self, image: Image) -> Image:
        """Return the snapshot with its segments, sorted only when one is taken: a large index loads in many parts."""
        if self.layout.banding is None:
            return image
        found = []
        for number, first in enumerate(range(0, image.size, SEGMENT)):
            codes, before = image.codes[first : first + SEGMENT], image.segments[number : number + 1]
            if number in self._stale or not before or before[0].places.shape[1] != len(codes):
                found.append(segment(codes, self.layout.s, self.layout.bits, self.layout.banding))
            else:
                found.append(before[0])
        self._stale.clear()
        return image._replace(segments=tuple(found))


def _grow(old: NDArray[Any], size: int, room: int) -> NDArray[Any]:
    """Copy the first `size` rows of an array to a new array of `room` rows."""
    found = np.empty((room, *old.shape[1:]), old.dtype)
    found[: min(size, room)] = old[: min(size, room)]
    return found
