"""Columns of a batch of rows in the Arrow layout: numbers, lists of numbers, strings, and dictionaries of these."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bochner_client.tables.fields import Field, TableError
from bochner_client.tables.numbers import Array, with_missing

Whole = NDArray[np.int64]
Buffer = Callable[[int], NDArray[np.uint8]]
"""Returns the first bytes of a buffer, as many as given; TableError if the buffer is shorter."""

# View of a string: its length, then the string itself if it has at most `_INLINE_BYTES` bytes; otherwise its first 4
# bytes, the number of its buffer, and its position there.
_VIEW = np.dtype([("length", "<i4"), ("beginning", "<i4"), ("buffer", "<i4"), ("place", "<i4")])
_INLINE_BYTES = 12


class Texts(NamedTuple):
    """Strings `(n,)` in UTF-8, given by their positions in one text."""

    text: NDArray[np.uint8]
    starts: Whole
    lengths: Whole


@dataclass(frozen=True)
class Column:
    """A column of a batch, `(n,)`, or the entries of the lists of such a column."""

    field: Field
    n: int
    may_miss: bool
    """Whether entries may be missing."""
    buffers: Sequence[Buffer]
    """Buffers of the column's type: the first has a bit for each entry, which says whether the entry is there."""
    views: Sequence[NDArray[np.uint8]] = ()
    """Further buffers of a column of views."""
    item: "Column | None" = None
    """Entries of the lists."""
    dictionary: "Column | None" = None
    """Values of a dictionary."""
    offset: int = 0
    """Position of the first entry in the buffers, in entries."""
    first: int = 0
    """Number of the first entry among the rows of the table."""

    def part(self, start: int, n: int) -> "Column":
        """Return `n` of the entries, from `start` on."""
        if start + n > self.n:
            raise TableError(f"{self.field.quoted} has {self.n} entries; expected {start + n}", self.field.name)
        if n == self.n:
            return self
        return replace(self, n=n, offset=self.offset + start, first=self.first + start)

    def numbers(self) -> Array:
        """Return a column of numbers, `(n,)`, with NaN for missing ones."""
        if self.field.is_null:
            return np.broadcast_to(np.float32(np.nan), self.n)  # takes no memory for any n
        return with_missing(self._values(), self.missing(), self.field, self.first)

    def lists(self, width: int | None = None) -> Array:
        """Return a column of lists of numbers, `(n, width)`, with NaN for missing numbers.

        Raises:
            TableError: a list is missing, or has another length than `width`, or than the first list if `width` is
                None.
        """
        item, n, name = self.item, self.n, self.field.name
        if item is None:
            raise TypeError(f"{self.field.quoted} has no lists")
        if (missing := self.missing()).size:
            raise TableError("is null; expected a list of numbers", name, self.first + int(missing[0]))
        if (size := self.field.size) is not None:
            start = self.offset * size
        else:
            offsets = self._offsets()
            sizes = np.diff(offsets)
            start, size = (int(offsets[0]), int(sizes[0]) if width is None else width) if n else (0, 0)
            if (sizes != size).any():
                row = int(np.argmax(sizes != size))
                raise TableError(f"has {sizes[row]} entries; expected {size}", name, self.first + row)
        if size < 0 or start < 0 or (n and not size):  # any number of empty lists fits into no bytes
            raise TableError(f"{self.field.quoted} has lists of {size} entries, from {start} on", name)
        inner = replace(item.part(start, n * size), field=item.field._replace(name=name), first=0)
        return inner.numbers().reshape(n, size)

    def whole(self) -> Array:
        """Return a column of whole numbers without missing ones, `(n,)`, as int64 or uint64."""
        if self.dictionary is not None:
            return self.dictionary.all_whole[self._places()]
        numbers = self._values()
        return numbers.astype(np.uint64 if numbers.dtype == np.uint64 else np.int64)

    def texts(self) -> Texts:
        """Return a column of strings, with "" for missing ones."""
        if self.field.is_null:
            return Texts(np.empty(0, np.uint8), np.zeros(self.n, np.int64), np.zeros(self.n, np.int64))
        if self.dictionary is not None:
            found, places = self.dictionary.all_texts, self._places()
            texts = Texts(found.text, found.starts[places], found.lengths[places])
        elif self.field.format == "vu":
            texts = self._viewed()
        else:
            offsets = self._offsets()
            text = self.buffers[2](int(offsets[-1])) if self.n else np.empty(0, np.uint8)
            texts = Texts(text, offsets[:-1], np.diff(offsets))
        if (missing := self.missing()).size:
            texts.lengths[missing] = 0  # missing strings may have bytes in the buffer
        return texts

    @cached_property
    def all_whole(self) -> Array:
        """Whole numbers of the column, cached, as many batches may share a dictionary."""
        return self.whole()

    @cached_property
    def all_texts(self) -> Texts:
        """Strings of the column, cached, as many batches may share a dictionary."""
        return self.texts()

    def missing(self) -> NDArray[np.intp]:
        """Return the positions of the entries that are null."""
        if self.field.is_null:
            return np.arange(self.n)
        if not self.may_miss:
            return np.empty(0, np.intp)
        return np.flatnonzero(~self._bits(0))

    def _bits(self, buffer: int) -> NDArray[np.bool_]:
        packed = self.buffers[buffer](-(-(self.offset + self.n) // 8))[self.offset // 8 :]
        within = self.offset % 8
        return np.unpackbits(packed, count=within + self.n, bitorder="little")[within:].astype(bool)

    def _values(self) -> Array:
        """Return the numbers, with arbitrary values for missing ones."""
        dtype = self.field.storage
        return self._bits(1) if dtype.kind == "b" else self._read(1, dtype, self.n)

    def _read(self, buffer: int, dtype: np.dtype[Any], n: int) -> Array:
        raw = self.buffers[buffer]((self.offset + n) * dtype.itemsize)
        return raw[self.offset * dtype.itemsize :].view(dtype)

    def _places(self) -> Whole:
        """Return the positions in the dictionary, 0 for missing entries."""
        places = self._values().astype(np.int64)
        places[self.missing()] = 0
        values = self.dictionary.n if self.dictionary is not None else 0
        if places.size and not 0 <= places.min() <= places.max() < values:
            raise TableError(f"{self.field.quoted} has places outside of its dictionary", self.field.name)
        return places

    def _offsets(self) -> Whole:
        """Return the positions at which lists or strings begin, and where the last one ends, `(n + 1,)`."""
        offsets = self._read(1, self.field.offsets, self.n + 1 if self.n else 0).astype(np.int64)
        if offsets.size and (offsets[0] < 0 or (np.diff(offsets) < 0).any()):
            raise TableError(f"{self.field.quoted} has offsets that do not increase", self.field.name)
        return offsets

    def _viewed(self) -> Texts:
        views, name = self._read(1, _VIEW, self.n), self.field.name
        raw = views.view(np.uint8)
        lengths = views["length"].astype(np.int64)
        lengths[self.missing()] = 0  # missing strings may have a view
        ends = np.cumsum([raw.size, *(one.size for one in self.views)])
        # Many views may refer to the same bytes, so that few bytes could stand for long texts.
        if (total := int(lengths[lengths > 0].sum())) > ends[-1]:
            raise TableError(f"{name}s of {total} bytes came in buffers of {ends[-1]}", name)
        starts = _VIEW.itemsize * np.arange(self.n, dtype=np.int64) + 4
        long = np.flatnonzero(lengths > _INLINE_BYTES)
        if long.size:
            which, at = views["buffer"][long], views["place"][long].astype(np.int64)
            if which.min() < 0 or which.max() >= len(self.views) or at.min() < 0:
                raise TableError(f"{self.field.quoted} has views outside of its buffers", name)
            if (at + lengths[long] > np.diff(ends)[which]).any():
                raise TableError(f"{self.field.quoted} has views past the end of a buffer", name)
            starts[long] = ends[which] + at
        return Texts(np.concatenate([raw, *self.views]), starts, lengths)
