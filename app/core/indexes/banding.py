"""Buckets of packed codes: two vectors are compared where all codes of a band are equal in both.

A band of r codes, of which `bands` stand one behind the other, becomes a word of 16 bits. Vectors whose words are equal
in a band are candidates: all that share the band, at the rate J^r of their similarity J, and one in 65,536 others.
Words are sorted by segments of slots, so that a change of some vectors sorts no others.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Array, Whole
from app.core.compiled import compiled

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
    _write_mixed(unwritable(codes), rows, bits, first, last, found)
    return found


def segment(codes: Codes, bits: int, banding: Banding) -> Segment:
    """The segment of at most `SEGMENT` slots of these codes."""
    words = bucket_words(codes, bits, banding)
    found = Segment(np.empty_like(words), np.empty_like(words))
    _sort(words, found.words, found.places)
    return found


class Buckets(NamedTuple):
    """Where the buckets of a query are."""

    ends: Whole
    """Of each segment: where the bucket of each band begins in its order, and where it has ended, (·, 2, bands)."""

    @property
    def size(self) -> int:
        """How many slots they have; one that is in several counts in each."""
        return int((self.ends[:, 1] - self.ends[:, 0]).sum())


class Candidates:
    """Finds the candidates of one query after the other among so many slots; not for several threads at once."""

    def __init__(self, segments: tuple[Segment, ...], size: int) -> None:
        self._segments = segments
        self._seen = np.zeros(size, np.bool_)
        self._found = np.empty(size, np.int64)

    def buckets(self, words: Words) -> Buckets:
        """Those of a query, whose words are (bands,)."""
        found = Buckets(np.empty((len(self._segments), 2, len(words)), np.int64))
        for one, ends in zip(self._segments, found.ends, strict=True):
            _find(one.words, words, ends)
        return found

    def of(self, buckets: Buckets) -> Whole:
        """The slots in the buckets of a query, each once, in any order."""
        n = 0
        for number, (one, ends) in enumerate(zip(self._segments, buckets.ends, strict=True)):
            n = _collect(one.places, ends, number * SEGMENT, self._seen, self._found, n)
        found = self._found[:n].copy()
        self._seen[found] = False
        return found


@compiled
def _write_words(codes: Codes, bits: int, rows_per_band: int, words: Words) -> None:
    """Write the upper bits of the mixed codes of each band."""
    for i in range(len(codes)):
        for band in range(len(words)):
            first = band * rows_per_band
            words[band, i] = np.uint16(_mixed(codes, i, bits, first, first + rows_per_band) >> np.uint64(48))


@compiled
def _write_mixed(codes: Codes, rows: Whole, bits: int, first: int, last: int, found: Mixed) -> None:
    """Write the mixed codes of some rows."""
    for i in range(len(rows)):
        found[i] = _mixed(codes, rows[i], bits, first, last)


@compiled
def _mixed(codes: Codes, i: int, bits: int, first: int, last: int) -> np.uint64:
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


@compiled
def _sort(words: Words, found: Words, places: Words) -> None:
    """Sort the words of each band, and note where each stood: by their lower bytes, then by their upper ones."""
    n = words.shape[1]
    half, places_of_half = np.empty(n, np.uint16), np.empty(n, np.uint16)
    for band in range(len(words)):
        ends = np.zeros((2, 257), np.int64)
        for i in range(n):
            ends[0, (words[band, i] & 255) + 1] += 1
            ends[1, (words[band, i] >> 8) + 1] += 1
        for j in range(256):
            ends[0, j + 1] += ends[0, j]
            ends[1, j + 1] += ends[1, j]
        for i in range(n):
            low = words[band, i] & 255
            at = ends[0, low]
            half[at], places_of_half[at] = words[band, i], i
            ends[0, low] = at + 1
        for i in range(n):
            high = half[i] >> 8
            at = ends[1, high]
            found[band, at], places[band, at] = half[i], places_of_half[i]
            ends[1, high] = at + 1


@compiled
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


@compiled
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
