"""The columns of the record batches of an Arrow stream: numbers, lists of them, and ids; the rows they make."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Array, CheckBytes, Whole, first_rounded, row_blocks
from app.core.errors import InvalidInput
from app.core.ids import Identified, Ids, NumberIds, TextIds, check_lengths, check_text, gathered
from app.formats.arrow_ipc.stream import FIXED_LIST, NULL, TEXTS, UTF8_VIEW, Batch, Field, read
from app.formats.base import Body

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


ID, TAG = "id", "tag"
"""Names of the columns of ids and of tags."""
_WANTED = "one column of lists of numbers, or columns of numbers, are wanted, beside ids in a column `id`"
# Numbers of one column that are put into rows at a time.
_AT_A_TIME = 1 << 10


def rows_of(body: Body, width: int | None = None) -> Array | Identified:
    """The rows of a stream, with their ids where it has a column of these; raises what `columns_of` raises."""
    rows, beside = columns_of(body, width, (ID,))
    return Identified(rows, beside[ID]) if ID in beside else rows


def columns_of(body: Body, width: int | None, beside: Sequence[str]) -> tuple[Array, Mapping[str, Ids]]:
    """The rows of a stream, and its columns of these names, which are ids, or tags of strings.

    Numbers that are missing are NaN, tags that are missing are "". Columns of numbers become rows of the narrowest
    dtype that has room for all of their dtypes, which must round no whole number. Where there are none, lists of no
    stated length are of `width`.

    Raises:
        InvalidInput: the body is no stream; columns are of other types, or too short; lists are of different lengths; a
            whole number would be rounded; or an id is missing.
    """
    fields, batches = read(body)
    places = [place for place, field in enumerate(fields) if field.name not in beside]
    _check(fields, [fields[place] for place in places], beside)
    split = [*columns(fields, batches)]
    first = fields[places[0]]
    if first.item is None:
        parts = [[one[place].numbers() for one in split] for place in places]
        rows = _side_by_side(parts, [fields[place] for place in places], body.check_rows)
    else:
        rows = _joined([one[places[0]].lists() for one in split], first, width)
    others = {field.name: (field, place) for place, field in enumerate(fields) if place not in places}
    return rows, {name: _ids(field, [one[place] for one in split]) for name, (field, place) in others.items()}


def _check(fields: Sequence[Field], of_rows: Sequence[Field], beside: Sequence[str]) -> None:
    """Raise InvalidInput for columns that are no rows, those `of_rows`, and for all others that are not fit."""
    if not of_rows:
        names = " and ".join(map(repr, beside))
        raise InvalidInput(f"the Arrow stream has {len(fields)} columns, and none beside {names}; {_WANTED}")
    for name in beside:
        if (n := sum(field.name == name for field in fields)) > 1:
            raise InvalidInput(f"{n} columns are called {name!r}; one is wanted", f"/{name}")
    for field in fields:
        if field.name not in beside:
            _check_numbers(field, alone=len(of_rows) == 1)
            continue
        are_whole = field.dtype is not None and field.dtype.kind in "iu"
        if field.code not in TEXTS and not (are_whole if field.name == ID else field.code == NULL):
            wanted = "whole numbers or strings" if field.name == ID else "strings"
            raise InvalidInput(f"{field.quoted} is {field.called}; {wanted} are wanted", field.pointer)


def _check_numbers(field: Field, alone: bool) -> None:
    """Raise InvalidInput for a column that can be no part of rows."""
    if field.dtype is not None or (alone and field.item is not None and field.item.dtype is not None):
        return
    of = f" of {field.item.called}" if field.item is not None else ""
    beside = "" if alone else ", and not the only one"
    raise InvalidInput(f"{field.quoted} is {field.called}{of}{beside}; {_WANTED}", field.pointer)


def _joined(parts: list[Array], field: Field, width: int | None) -> Array:
    """Rows of all batches, one after the other; those of a batch alone are not copied."""
    parts = [part for part in parts if len(part)]
    if not parts:
        size = field.size if field.code == FIXED_LIST else width or 0
        return np.empty((0, max(0, size)), field.item and field.item.dtype)
    sizes = [part.shape[1] for part in parts]
    if len({*sizes}) > 1:
        odd = next(place for place, size in enumerate(sizes) if size != sizes[0])
        row = sum(map(len, parts[:odd]))
        detail = f"row {row} has {sizes[odd]} entries; {sizes[0]} are wanted, as in those before it"
        raise InvalidInput(detail, field.pointer)
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _side_by_side(parts: list[list[Array]], fields: Sequence[Field], check: CheckBytes) -> Array:
    """The rows that columns of numbers make together; each is given by its parts, one of each batch."""
    # Without batches the columns have the dtypes of their fields.
    every = {part.dtype for one in parts for part in one} or {one.dtype for one in fields if one.dtype is not None}
    dtype = np.result_type(*every)
    n = sum(len(part) for part in parts[0])
    check(n * len(parts) * dtype.itemsize)
    rows = np.empty((n, len(parts)), dtype)
    begun = 0
    for batch in zip(*parts, strict=True):
        for field, part in zip(fields, batch, strict=True):
            check_exact(part, dtype, field, begun)
        for block in row_blocks(len(batch[0]), _AT_A_TIME):
            for place, part in enumerate(batch):
                rows[begun + block.start : begun + block.stop, place] = part[block]
        begun += len(batch[0])
    return rows


def _ids(field: Field, parts: Sequence[Column]) -> Ids:
    """The ids of all batches, or their tags, one after the other."""
    every = [part.ids() if field.name == ID else part.texts() for part in parts]
    if field.code in (*TEXTS, NULL):
        texts = [one for one in every if isinstance(one, TextIds)]
        begun = np.cumsum([0, *(one.text.size for one in texts)])
        ends = [one.ends + start for one, start in zip(texts, begun, strict=False)]
        whole = [one.text for one in texts]
        ids = TextIds(np.concatenate([np.empty(0, np.int64), *ends]), np.concatenate([np.empty(0, np.uint8), *whole]))
        check_text(ids, field.name)
        return ids
    numbers = [one.numbers for one in every if isinstance(one, NumberIds)]
    return NumberIds(np.concatenate(numbers) if numbers else np.empty(0, np.int64))
