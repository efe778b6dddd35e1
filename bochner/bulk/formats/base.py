"""Interface of file formats."""

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
    """Part of a file that is read from one end to the other.

    The unit of `start` and `stop` depends on the format: row groups, rows or bytes.
    """

    start: int
    stop: int
    rows: int
    """Number of rows; an estimate if the format has to read the rows to count them."""


class Look(NamedTuple):
    """Result of a first look at a file."""

    spans: list[Span]
    names: list[str] | None = None
    """Names of the vector's columns, if they have names."""


class Batch(NamedTuple):
    """Rows `(n, d)`, and the column of their ids, as an Arrow array or None."""

    rows: Array
    ids: Any = None

    def before(self, n: int) -> "Batch":
        """Return the first `n` rows."""
        return self if n == len(self.rows) else Batch(self.rows[:n], None if self.ids is None else self.ids[:n])

    def after(self, n: int) -> "Batch":
        """Return the rows after the first `n`."""
        return Batch(self.rows[n:], None if self.ids is None else self.ids[n:])


@dataclass(frozen=True)
class Reading:
    """A span being read. Row numbers in the errors that it raises count from the span's first row."""

    rows: int
    """Number of rows."""
    ids: Any
    """Arrow type of the ids; None if there are no ids."""
    batches: Iterator[Batch]


@dataclass(frozen=True)
class Shape:
    """Layout of a file to be written: column name, number of rows, shape and dtype of a row, Arrow type of ids or None.

    Calling `rows` may take long.
    """

    called: str
    rows: Callable[[], int]
    of_row: tuple[int, ...]
    dtype: np.dtype[Any]
    ids: Any


class Writer(Protocol):
    """Function that takes results, batch by batch."""

    def __call__(self, found: Array, ids: Any) -> None:
        """Write the results of some rows, and their ids."""


class Format(ABC):
    """A file format."""

    suffixes: tuple[str, ...]
    """Suffixes of file names of this format; written files get the first one."""
    counts_rows = True
    """Whether the spans of a file know their exact number of rows."""

    @abstractmethod
    def look(self, file: File, columns: Columns, most: int) -> Look:
        """Return the file cut into at least one span, each of about `most` rows, and the names of its columns.

        Raises:
            Unreadable, OSError, ValueError: the file is not of this format, or its rows have another width.
        """

    @abstractmethod
    def read(self, file: File, span: Span, columns: Columns, batch_rows: int, threads: int) -> Reading:
        """Begin to read a span in batches of `batch_rows` rows. Raises as `look` does, also while batches are read."""

    @abstractmethod
    def write(self, sink: Any, shape: Shape) -> AbstractContextManager[Writer]:
        """Open a writer of a file to a sink, for the duration of a with block."""

    @abstractmethod
    def count(self, url: str) -> int | None:
        """Return the number of rows of an existing file; None if the file is incomplete."""

    @abstractmethod
    def check(self, shape: Shape) -> None:
        """Raise Refused if the format cannot store such results."""

    @abstractmethod
    def first_row(self, file: File, span: Span, columns: Columns) -> int:
        """Return the number, within the file, of the first row of a span. This may take long."""
