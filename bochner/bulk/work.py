"""One task: reads rows of a file in order and writes them to one or more new files. Runs the same on any machine."""

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from bochner.bulk.computing import Computing
from bochner.bulk.errors import Refused, Unreadable, Unwritable
from bochner.bulk.files import File, exists, said, written
from bochner.bulk.formats import FORMATS, format_of
from bochner.bulk.formats.base import Batch, Format, Reading, Shape, Span, Writer
from bochner.bulk.formats.columns import Columns

# Bytes in memory at a time for each running task, of the larger of rows and results.
_BATCH_BYTES = 16 << 20
_LARGEST_NUMBER = 8

Told = Callable[[int, bool], None]
"""Callback for progress: number of rows written, and whether they were written before this run."""


class Part(NamedTuple):
    """A file to be written: its address, and its number of rows; None if the number is known only after reading."""

    url: str
    rows: int | None


class Task(NamedTuple):
    """Spans of a file to be read in order, and the files to be written from them."""

    file: File
    spans: tuple[Span, ...]
    parts: tuple[Part, ...]


class Outcome(NamedTuple):
    """Result of a task."""

    rows: int
    """Rows in its new files, including rows written by earlier runs."""
    new: int
    """Rows written by this run."""
    files: int
    complaint: str | None = None
    """Error in its file, with the row if it concerns one."""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Work:
    """The work that is done for every task. Can be pickled for other processes.

    Args:
        computing: the computation on rows.
        columns: the columns to read.
        target: format of the new files.
    """

    computing: Computing
    columns: Columns
    target: str

    def __call__(self, task: Task, told: Told) -> Outcome:
        """Run a task; existing files that have the right number of rows are kept.

        Raises:
            Unwritable: a file cannot be written.
        """
        source = FORMATS[format_of(task.file.name) or ""]
        counts = [self._count(part) for part in task.parts]
        before = sum(count or 0 for count in counts)
        told(before, True)
        if None not in counts:
            return Outcome(before, 0, len(counts))
        try:
            new, warnings = self._write(task, source, counts, told)
        except Unreadable as error:
            return Outcome(before, 0, len(counts) - counts.count(None), error.told(task.file.name))
        except OSError as error:  # reading raises Unreadable
            raise Unwritable(f"{task.parts[0].url}: {said(error)}") from error
        return Outcome(before + new, new, len(counts), None, tuple(sorted(warnings)))

    def check(self, task: Task) -> None:
        """Raise Refused if the new files cannot store the results of a task; Unreadable if its file cannot be read."""
        source = FORMATS[format_of(task.file.name) or ""]
        with self._named(task, source, task.spans[0]):
            ids = self._reading(task, source, task.spans[0]).ids
        try:
            FORMATS[self.target].check(self._shape(lambda: 0, ids))
        except Refused as error:
            raise Refused(f"{task.file.name}: {error}") from None

    def _shape(self, rows: Callable[[], int], ids: Any) -> Shape:
        """Return the layout of a new file."""
        found = self.computing.of_no_rows
        return Shape(self.computing.called, rows, found.shape[1:], found.dtype, ids)

    def _count(self, part: Part) -> int | None:
        """Return the number of rows of a new file that exists and is complete; None if it still has to be written."""
        found = FORMATS[self.target].count(part.url) if exists(part.url) else None
        return found if part.rows in (None, found) else None

    def _write(self, task: Task, source: Format, counts: list[int | None], told: Told) -> tuple[int, set[str]]:
        """Write the missing files; return the number of rows written, and warnings about them."""
        with self._named(task, source, task.spans[0]):
            first = self._reading(task, source, task.spans[0])
        batches, new, warnings = _Cut(self._batches(task, source, first)), 0, set[str]()
        for part, count in zip(task.parts, counts, strict=True):
            if count is not None:
                for _ in batches.taken(part.rows):
                    pass
                continue
            begun = new
            with written(part.url) as sink, self._writer(sink, task, source, part, first) as write:
                for at, batch in batches.taken(part.rows):
                    with self._named(task, source, task.spans[0]):
                        found = self.computing(batch.rows, at)
                    warnings |= {*self.computing.warnings(batch.rows)}
                    write(found, batch.ids)
                    told(len(found), False)
                    new += len(found)
                if part.rows not in (None, new - begun):
                    raise Unreadable(f"it has lost rows since it was looked at: {new - begun} came of {part.rows}")
        return new, warnings

    def _writer(
        self, sink: Any, task: Task, source: Format, part: Part, first: Reading
    ) -> AbstractContextManager[Writer]:
        def rows() -> int:
            if part.rows is not None:
                return part.rows
            return first.rows + sum(self._reading(task, source, span).rows for span in task.spans[1:])

        return FORMATS[self.target].write(sink, self._shape(rows, first.ids))

    def _reading(self, task: Task, source: Format, span: Span) -> Reading:
        row_bytes = max(_LARGEST_NUMBER * self.columns.width, self.computing.computed_bytes)
        return source.read(task.file, span, self.columns, max(1, _BATCH_BYTES // row_bytes), self.computing.threads)

    def _batches(self, task: Task, source: Format, first: Reading) -> Iterator[Batch]:
        for span in task.spans:
            with self._named(task, source, span):
                reading = first if span is task.spans[0] else self._reading(task, source, span)
                yield from reading.batches

    @contextmanager
    def _named(self, task: Task, source: Format, span: Span) -> Iterator[None]:
        """Turn errors of the file into Unreadable; row numbers within the span become row numbers of the file."""
        try:
            yield
        except Unreadable as error:
            raise error if error.row is None else error.later(source.first_row(task.file, span, self.columns)) from None
        except (OSError, ValueError) as error:  # errors of pyarrow are among these
            raise Unreadable(said(error)) from error


class _Cut:
    """Batches, split where a file ends."""

    def __init__(self, batches: Iterator[Batch]) -> None:
        self._batches, self._at = batches, 0
        self._rest: Batch | None = None

    def taken(self, rows: int | None) -> Iterator[tuple[int, Batch]]:
        """Yield the next `rows` rows, or all for None, in batches, with the number of rows before each batch."""
        left = math.inf if rows is None else rows
        while left > 0 and (batch := self._rest or next(self._batches, None)) is not None:
            n = int(min(left, len(batch.rows)))
            self._rest = batch.after(n) if n < len(batch.rows) else None
            yield self._at, batch.before(n)
            self._at, left = self._at + n, left - n
