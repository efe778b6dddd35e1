"""What a kind of file can do."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bochner.bulk.files import File
from bochner.bulk.formats.columns import Columns

Array = NDArray[Any]


class Span(NamedTuple):
    """Rows of a file that are read from one end to the other.

    `start` and `stop` are in what the format counts by: row groups, rows, bytes.
    """

    start: int
    stop: int
    rows: int
    """How many; an estimate where the format cannot tell without reading them."""


class Look(NamedTuple):
    """What a first look at a file shows."""

    spans: list[Span]
    names: list[str] | None = None
    """Of the columns of the vector, where they have some."""


class Batch(NamedTuple):
    """Rows (n, d), and what is in the column of ids beside them, an array of Arrow or None."""

    rows: Array
    ids: Any = None

    def before(self, n: int) -> "Batch":
        """The first n rows."""
        return self if n == len(self.rows) else Batch(self.rows[:n], None if self.ids is None else self.ids[:n])

    def after(self, n: int) -> "Batch":
        """The others."""
        return Batch(self.rows[n:], None if self.ids is None else self.ids[n:])


@dataclass(frozen=True)
class Reading:
    """A span that is being read. Rows in what it raises are counted from its own first."""

    rows: int
    """How many there are."""
    ids: Any
    """Type of the ids in Arrow; None where there are none."""
    batches: Iterator[Batch]


@dataclass(frozen=True)
class Shape:
    """What is written: a column of this name, rows of this shape and dtype, and ids of a type of Arrow, or None.

    How many rows there are may take long to tell.
    """

    called: str
    rows: Callable[[], int]
    of_row: tuple[int, ...]
    dtype: np.dtype[Any]
    ids: Any


class Writer(Protocol):
    """Takes results, batch by batch."""

    def __call__(self, found: Array, ids: Any) -> None:
        """Write the results of some rows, and their ids."""


class Format(ABC):
    """A kind of file."""

    suffixes: tuple[str, ...]
    """How names of such files end; the first is given to those that are written."""
    counts_rows = True
    """Whether the spans of a file tell exactly how many rows they have."""

    @abstractmethod
    def look(self, file: File, columns: Columns, most: int) -> Look:
        """The file in spans of about `most` rows, at least one, and the names of its columns.

        Raises:
            Unreadable, OSError, ValueError: it is no such file, or its rows have another width.
        """

    @abstractmethod
    def read(self, file: File, span: Span, columns: Columns, batch_rows: int, threads: int) -> Reading:
        """Begin to read a span, so many rows at a time. Raises as `look` does, and while it is read."""

    @abstractmethod
    def write(self, sink: Any, shape: Shape) -> AbstractContextManager[Writer]:
        """What writes a file to a sink, for the length of a with block."""

    @abstractmethod
    def count(self, url: str) -> int | None:
        """Rows of a file that is there; None if it is not whole."""

    @abstractmethod
    def check(self, shape: Shape) -> None:
        """Raise Refused where the format has no room for such results."""

    @abstractmethod
    def first_row(self, file: File, span: Span, columns: Columns) -> int:
        """The number of the first row of a span in its file. It may take long to tell."""
