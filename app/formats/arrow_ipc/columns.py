"""The columns of the record batches of an Arrow stream: numbers, lists of them, and ids."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Array, Whole, first_rounded
from app.core.errors import InvalidInput
from app.core.ids import Ids, NumberIds, TextIds, check_lengths, gathered
from app.formats.arrow_ipc.stream import Batch
from app.formats.arrow_ipc.types import FIXED_LIST, NULL, TEXTS, UTF8_VIEW, Field

# Of a string: its length, and itself where it has up to so many bytes, else 4 bytes of it, its buffer, and its place.
_VIEW = np.dtype([("length", "<i4"), ("beginning", "<i4"), ("buffer", "<i4"), ("place", "<i4")])
_INLINE_BYTES = 12


class Column(NamedTuple):
    """A column of a batch. Its row 0 is row `first` of the stream."""

    field: Field
    batch: Batch
    node: int
    """The place of its length among those of the batch; that of what its lists hold is the next."""
    buffer: int
    """The place of its first buffer, of nulls; the others follow."""
    n_views: int
    """Its further buffers, if it is a UTF8_VIEW."""
    first: int

    @property
    def n(self) -> int:
        """How many rows it has."""
        return self.batch.n

    def numbers(self) -> Array:
        """A column of numbers, (n,), NaN where they are missing."""
        return self._filled(self.node, self.buffer, self.field, self.n)

    def lists(self) -> Array:
        """A column of lists of numbers, which must be of one length, (n, length), NaN where numbers are missing."""
        item, n = self.field.item, self.n
        if item is None:
            raise TypeError(f"{self.field.quoted} has no lists")
        self._refuse_null(self._missing(self.node, self.buffer, n), "is null; a list of numbers is wanted")
        if self.field.code == FIXED_LIST:
            start, size, after = 0, self.field.size, 1
        else:
            offsets = self._offsets()
            sizes, after = np.diff(offsets), 2
            start, size = (int(offsets[0]), int(sizes[0])) if n else (0, 0)
            if (sizes != size).any():
                row = int(np.argmax(sizes != size))
                said = f"row {self.first + row} has {sizes[row]} entries; {size} are wanted, as in those before it"
                raise InvalidInput(said, self.field.pointer)
        if size < 0 or start < 0 or (n and not size):  # of no entries any number would come in no bytes
            raise InvalidInput(f"{self.field.quoted} has lists of {size} entries, from {start} on")
        filled = self._filled(self.node + 1, self.buffer + after, item, start + n * size)
        return filled[start:].reshape(n, size)

    def ids(self) -> Ids:
        """A column of ids."""
        field, n = self.field, self.n
        self._refuse_null(self._missing(self.node, self.buffer, n), f"has no {field.name}")
        if field.code in TEXTS:
            return self.texts()
        numbers = self._values(self.buffer, field, n)
        return NumberIds(numbers.astype(np.uint64 if numbers.dtype == np.uint64 else np.int64))

    def texts(self) -> TextIds:
        """A column of strings, "" where they are missing."""
        if self.field.code == NULL:  # pyarrow's type of a column of nothing else
            return TextIds(np.zeros(self.n, np.int64), np.empty(0, np.uint8))
        missing = self._missing(self.node, self.buffer, self.n)
        return self._views(missing) if self.field.code == UTF8_VIEW else self._text(missing)

    def _filled(self, node: int, buffer: int, field: Field, n: int) -> Array:
        """The first n numbers at a place; with NaN for those that are missing, in a dtype that has it."""
        numbers, missing = self._values(buffer, field, n), self._missing(node, buffer, n)
        if not missing.size:
            return numbers.astype(np.float32) if numbers.dtype == np.float16 else numbers
        known = numbers.copy()
        known[missing] = 0
        filled = known.astype(np.result_type(numbers, np.float32))
        check_exact(known, filled.dtype, self.field, self.first)
        filled[missing] = np.nan
        return filled

    def _values(self, buffer: int, field: Field, n: int) -> Array:
        """The first n numbers of a field, where its buffers begin with this one, whatever stands for null ones."""
        if field.dtype is None:
            raise TypeError(f"{field.quoted} has no numbers")
        return self.batch.buffer(buffer + 1, field.dtype, n)

    def _missing(self, node: int, buffer: int, n: int) -> NDArray[np.intp]:
        """Which of the first n rows at a place are null."""
        length, nulls = self.batch.lengths[node]
        if length < n:
            raise InvalidInput(f"{self.field.quoted} has {length} entries; {n} are wanted")
        if not nulls:
            return np.empty(0, np.intp)
        bits = self.batch.buffer(buffer, np.dtype(np.uint8), -(-n // 8))
        return np.flatnonzero(np.unpackbits(bits, count=n, bitorder="little") == 0)

    def _refuse_null(self, missing: NDArray[np.intp], complaint: str) -> None:
        if missing.size:
            raise InvalidInput(f"row {self.first + int(missing[0])} {complaint}", self.field.pointer)

    def _offsets(self) -> Whole:
        """Where lists or strings begin, and where the last one ends, (n + 1,), none before the one in front of it."""
        offsets = self.batch.buffer(self.buffer + 1, self.field.offsets, self.n + 1 if self.n else 0).astype(np.int64)
        if offsets.size and (offsets[0] < 0 or (np.diff(offsets) < 0).any()):
            raise InvalidInput(f"{self.field.quoted} has offsets that do not increase", self.field.pointer)
        return offsets

    def _text(self, missing: NDArray[np.intp]) -> TextIds:
        offsets = self._offsets()
        if not offsets.size:
            return TextIds(np.empty(0, np.int64), np.empty(0, np.uint8))
        text = self.batch.buffer(self.buffer + 2, np.dtype(np.uint8), int(offsets[-1]))
        lengths = np.diff(offsets)
        lengths[missing] = 0  # there may be bytes of them all the same
        check_lengths(lengths, self.first, self.field.name)
        if missing.size:
            return gathered(text, offsets[:-1], lengths)
        return TextIds(offsets[1:] - offsets[0], text[int(offsets[0]) :])

    def _views(self, missing: NDArray[np.intp]) -> TextIds:
        batch, n = self.batch, self.n
        views = batch.buffer(self.buffer + 1, _VIEW, n)
        lengths = views["length"].astype(np.int64)
        lengths[missing] = 0  # there may be a view all the same
        check_lengths(lengths, self.first, self.field.name)
        # Any number of views may be of the same bytes.
        if (total := int(lengths.sum())) > len(batch.body):
            raise InvalidInput(
                f"{self.field.name}s of {total} bytes came in a record batch of {len(batch.body)}", self.field.pointer
            )
        starts = batch.buffers[self.buffer + 1][0] + _VIEW.itemsize * np.arange(n) + 4 if n else np.empty(0, np.int64)
        long = np.flatnonzero(lengths > _INLINE_BYTES)
        if long.size:
            places = np.array(batch.buffers[self.buffer + 2 :][: self.n_views], np.int64).reshape(-1, 2)
            which, at = views["buffer"][long], views["place"][long].astype(np.int64)
            if which.min() < 0 or which.max() >= len(places) or at.min() < 0:
                raise InvalidInput(f"{self.field.quoted} has views outside of its buffers", self.field.pointer)
            if (at + lengths[long] > places[which, 1]).any():
                raise InvalidInput(f"{self.field.quoted} has views past the end of a buffer", self.field.pointer)
            starts[long] = places[which, 0] + at
        return gathered(np.frombuffer(batch.body, np.uint8), starts, lengths)


def check_exact(numbers: Array, dtype: np.dtype[Any], field: Field, first: int) -> None:
    """Raise InvalidInput if a dtype rounds one of these whole numbers, the first of which is in row `first`."""
    if numbers.dtype.kind in "iu" and dtype.kind == "f":
        rounded = first_rounded(numbers, dtype)
        if rounded is not None:
            row = first + rounded // max(1, field.size)
            detail = f"{field.quoted} has {numbers[rounded]} in row {row}, which {dtype} would round"
            raise InvalidInput(detail, field.pointer)


def columns(fields: Sequence[Field], batches: Sequence[Batch]) -> Iterator[list[Column]]:
    """The columns of each batch; InvalidInput if a batch is not of these fields."""
    first = 0
    for batch in batches:
        found, node, buffer, views = [], 0, 0, iter(batch.variadic)
        for field in fields:
            n_views = next(views, 0) if field.code == UTF8_VIEW else 0
            found.append(Column(field, batch, node, buffer, n_views, first))
            node += 1 + (field.item is not None)
            buffer += field.n_buffers + n_views
        if (node, buffer) != (len(batch.lengths), len(batch.buffers)):
            came = f"{len(batch.lengths)} lengths and {len(batch.buffers)} buffers"
            raise InvalidInput(f"a record batch has {came}; its schema wants {node} and {buffer}")
        first += batch.n
        yield found
