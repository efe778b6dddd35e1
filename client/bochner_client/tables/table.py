"""Conversion of the columns of a table to rows of numbers."""

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple, Protocol

import numpy as np

from bochner_client.tables.fields import Field, TableError
from bochner_client.tables.numbers import Array, check_exact

ID, TAG = "id", "tag"
"""Names of the columns of ids and tags."""
_EXPECTED = "expected one column of lists of numbers, or columns of numbers, beside ids in a column `id`"
# Numbers of one column that are copied into rows at a time.
_AT_A_TIME = 1 << 10


class AnyColumn(Protocol):
    """A column of a batch of rows."""

    @property
    def field(self) -> Field:
        """Name and type of the column."""

    @property
    def n(self) -> int:
        """Number of entries."""

    @property
    def first(self) -> int:
        """Number of the first entry among the rows of the table."""

    def part(self, start: int, n: int) -> "AnyColumn":
        """Return `n` of the entries, from `start` on."""

    def numbers(self) -> Array:
        """Return a column of numbers, `(n,)`, with NaN for missing ones."""

    def lists(self, width: int | None = None) -> Array:
        """Return a column of lists of numbers, `(n, width)`, with NaN for missing numbers."""


class Schema(NamedTuple):
    """Columns of a table."""

    fields: Sequence[Field]
    frame_index: frozenset[str] = frozenset()
    """Names of the columns that were an index of pandas."""

    def coordinates(self, beside: Sequence[str] = (ID,)) -> list[int]:
        """Return the positions of the vector's columns: all except an index of pandas and those named in `beside`."""
        others = self.frame_index.union(beside)
        return [place for place, field in enumerate(self.fields) if field.name not in others]

    def check(self, places: Sequence[int], beside: Sequence[str] = (ID,)) -> None:
        """Raise TableError unless the columns at `places` can form rows, and those in `beside` have valid types."""
        if not places:
            names = " and ".join(map(repr, beside))
            raise TableError(f"the table has {len(self.fields)} columns, and none beside {names}; {_EXPECTED}")
        for name in beside:
            if (n := sum(field.name == name for field in self.fields)) > 1:
                raise TableError(f"{n} columns are called {name!r}; expected one", name)
        of_rows = {*places}
        for place, field in enumerate(self.fields):
            if place in of_rows:
                _check_numbers(field, alone=len(places) == 1)
            elif field.name in beside:
                values = field.values or field
                if not (field.is_null or values.is_text or (field.name == ID and values.is_whole)):
                    wanted = "whole numbers or strings" if field.name == ID else "strings"
                    raise TableError(f"{field.quoted} is {field.called}; expected {wanted}", field.name)


def _check_numbers(field: Field, alone: bool) -> None:
    """Raise TableError for a column that cannot be part of rows."""
    if field.dtype is None and not field.is_null and not (alone and field.is_vector):
        beside = ", and not the only one" if field.is_vector else ""
        remedy = "; leave it out, or make it columns of 0 and 1" if "utf8" in field.called else ""
        raise TableError(f"{field.quoted} is {field.called}{beside}; {_EXPECTED}{remedy}", field.name)


class Table:
    """A table as rows of numbers: its columns of numbers side by side, or its one column of lists.

    A column `id`, or the former index of a pandas data frame, is not part of the rows. All other columns must have
    numbers.

    Args:
        schema: columns of the table.
        batches: columns of each batch.
        places: positions of the vector's columns, in order; None for all that are not excluded.
        beside: names of columns that are not part of the vectors.
        width: length of lists, used if there are no lists and their type does not tell.

    Raises:
        TableError: a column does not have numbers, or lists are of different lengths.
    """

    def __init__(
        self,
        schema: Schema,
        batches: Sequence[Sequence[AnyColumn]],
        places: Sequence[int] | None = None,
        beside: Sequence[str] = (ID,),
        width: int | None = None,
    ) -> None:
        self._places = schema.coordinates(beside) if places is None else places
        schema.check(self._places, beside)
        self.schema, self._batches = schema, batches
        self.fields = [schema.fields[place] for place in self._places]
        """Columns of the vectors."""
        self._starts = [0, *accumulate(batch[0].n for batch in batches)]
        self.n = self._starts[-1]
        """Number of rows."""
        self.is_of_lists = self.fields[0].is_list
        """Whether a row is one list."""
        self.d = self._width(width) if self.is_of_lists else len(self.fields)
        """Number of entries of a row."""

    def rows(self, start: int = 0, stop: int | None = None, check: Callable[[int], None] = lambda _: None) -> Array:
        """Return rows `(stop − start, d)`, with NaN for missing numbers; a single batch of lists is not copied.

        The rows of several columns of numbers get the narrowest dtype that can hold all of the columns' dtypes. `check`
        is called with the number of bytes of the rows before their memory is allocated.

        Raises:
            TableError: a whole number would be rounded, a list is missing, or lists are of different lengths.
        """
        stop = self.n if stop is None else stop
        parts = [
            [batch[place].part(low - begun, high - low) for place in self._places]
            for batch, begun, end in zip(self._batches, self._starts, self._starts[1:], strict=False)
            if (low := max(start, begun)) < (high := min(stop, end))
        ]
        if not self.is_of_lists:
            return _side_by_side([[one.numbers() for one in part] for part in parts], self.fields, stop - start, check)
        item = self.fields[0].item
        dtype = None if item is None else item.dtype
        # A list of missing numbers only has taken no memory so far.
        check((stop - start) * self.d * (4 if dtype is None else dtype.itemsize))
        lists = [part[0].lists(self.d) for part in parts]
        if not lists:
            return np.empty((0, self.d), dtype)
        return lists[0] if len(lists) == 1 else np.concatenate(lists)

    def _width(self, width: int | None) -> int:
        """Return the length of the lists: that of their type, else of the first list, else `width`."""
        if (size := self.fields[0].size) is not None:
            return max(0, size)
        first = next((batch[self._places[0]] for batch in self._batches if batch[0].n), None)
        return (width or 0) if first is None else int(first.part(0, 1).lists().shape[1])


def _side_by_side(parts: list[list[Array]], fields: Sequence[Field], n: int, check: Callable[[int], None]) -> Array:
    """Return the rows formed by columns of numbers, which are given for each batch."""
    # Without batches, the columns have the dtypes of their fields. A column of missing values has no dtype of its own.
    known = [place for place, field in enumerate(fields) if not field.is_null]
    every = {part[place].dtype for part in parts for place in known}
    every = every or {one.dtype for one in fields if one.dtype is not None} or {np.dtype(np.float64)}
    dtype = np.result_type(*every, *([np.float32] if len(known) < len(fields) else []))
    check(n * len(fields) * dtype.itemsize)
    rows, begun = np.empty((n, len(fields)), dtype), 0
    for part in parts:
        for field, numbers in zip(fields, part, strict=True):
            check_exact(numbers, dtype, field, begun)
        for start in range(0, len(part[0]), _AT_A_TIME):
            for place, numbers in enumerate(part):
                some = numbers[start : start + _AT_A_TIME]
                rows[begun + start : begun + start + len(some), place] = some
        begun += len(part[0])
    return rows
