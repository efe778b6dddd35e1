"""Bulk work from end to end: planning, running the tasks, and the report."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass, replace
from threading import Event
from typing import Any

from app.processors import available
from bochner.bulk import files
from bochner.bulk.computing import Computing
from bochner.bulk.errors import Refused, Stopped, Unreadable, Unwritable
from bochner.bulk.files import File
from bochner.bulk.formats import FORMATS, SUFFIXES, format_of
from bochner.bulk.formats.columns import Columns
from bochner.bulk.plan import held, noted, planned
from bochner.bulk.progress import Progress
from bochner.bulk.work import Outcome, Task, Told, Work

# Default size of a new file: bytes of its results, or of the rows that they are computed from.
_PART_BYTES = 256 << 20
_NUMBER_BYTES = 4

Runner = Callable[[Work, list[Task], Told], Iterator[Outcome]]
"""Function that runs tasks and yields their outcomes, in any order."""


@dataclass(frozen=True)
class Report:
    """Result of a run."""

    rows: int
    """Rows in the new files, including rows written by earlier runs."""
    new: int
    """Rows written by this run."""
    read: int
    """Number of files that were read."""
    written: int
    """Number of files that exist now."""
    seconds: float
    complaints: tuple[str, ...]
    """Errors of files that were not written completely, each with the file's name and, if to blame, the row."""
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        before = f", {self.new:,} of them now" if self.new != self.rows else ""
        return (
            f"{self.rows:,} rows of {_files(self.read)} are in {_files(self.written)}{before}: "
            f"{self.seconds:.1f} s, {self.new / max(self.seconds, 1e-9):,.0f} rows a second"
        )


def run(
    source: str,
    out: str,
    computing: Computing,
    columns: Columns,
    note: dict[str, Any],
    *,
    file_format: str | None = None,
    rows_per_file: int | None = None,
    runner: Runner | None = None,
) -> Report:
    """Write the results of all rows of `source`, a file or a folder, to `out`.

    `out` is a folder, in which a killed run can be continued; or a single file, if `source` is a file and the name of
    `out` ends like a file's.

    Args:
        source: address of the input, in a form that fsspec supports.
        out: address of the output, in the same form.
        computing: the computation on rows.
        columns: the columns to read.
        note: description of the computation, stored next to the files. A folder with another note is refused.
        file_format: `parquet`, `csv` or `npy`; None for the format of the input.
        rows_per_file: most rows of a new file; None for about 256 MiB.
        runner: runs the tasks; None for threads of this process.

    Returns:
        The numbers of rows and files, and errors and warnings.

    Raises:
        Refused: the run cannot begin.
        Unwritable: a file cannot be written.
    """
    begun = time.monotonic()
    source, out = files.absolute(source), files.absolute(out)
    found = files.found(source, SUFFIXES)
    target, is_folder = _target(source, out, found, file_format)
    most = rows_per_file or max(1, _PART_BYTES // max(computing.row_bytes, columns.width * _NUMBER_BYTES))
    tasks, columns = planned(found, columns, out, FORMATS[target].suffixes[0] if is_folder else None, most)
    work = Work(computing, columns, target)
    try:
        work.check(tasks[0])
    except Unreadable as error:
        raise Refused(error.told(tasks[0].file.name)) from None
    try:
        with held(out, is_folder):
            if is_folder:
                noted(
                    out,
                    note | {"format": target, "rows_per_file": most, "order": columns.order and [*columns.order]},
                    found,
                )
            elif files.exists(out):
                raise Refused(f"{out} is there already: remove it, or name another")
            with closing(Progress(sum(span.rows for task in tasks for span in task.spans))) as told:
                outcomes = list((runner or here)(work, tasks, told))
    except (OSError, NotImplementedError) as error:  # NotImplementedError comes from read-only filesystems
        raise Unwritable(f"{out}: {files.said(error)}") from error
    return Report(
        sum(one.rows for one in outcomes),
        sum(one.new for one in outcomes),
        len(found),
        sum(one.files for one in outcomes),
        time.monotonic() - begun,
        tuple(sorted(one.complaint for one in outcomes if one.complaint)),
        tuple(sorted({warning for one in outcomes for warning in one.warnings})),
    )


def here(work: Work, tasks: list[Task], told: Told) -> Iterator[Outcome]:
    """Run tasks in threads of this process, one for each processor; if there are fewer tasks, each uses several."""
    processors = available()
    workers = min(processors, len(tasks))
    work = replace(work, computing=replace(work.computing, threads=processors // workers))
    work.computing.of_no_rows  # noqa: B018 - opens the map, once for all threads
    stop = Event()

    def told_unless_stopped(rows: int, before: bool) -> None:
        if stop.is_set():
            raise Stopped
        told(rows, before)

    with ThreadPoolExecutor(workers) as pool:
        begun = [pool.submit(work, task, told_unless_stopped) for task in tasks]
        try:
            for one in as_completed(begun):
                yield one.result()
        finally:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)


def _target(source: str, out: str, found: list[File], file_format: str | None) -> tuple[str, bool]:
    """Return the format of new files, and whether they go into a folder."""
    within, around = f"{out.rstrip('/')}/", f"{source.rstrip('/')}/"
    if within.startswith(around) or around.startswith(within):
        raise Refused(f"{out} and {source} lie within each other: what is written is not to be read")
    of_out = format_of(out)
    if not files.is_file(source) or of_out is None:
        if files.is_file(out):
            raise Refused(f"{out} is a file; a folder is wanted")
        formats = sorted({format_of(one.name) or "" for one in found})
        if file_format is None and len(formats) > 1:
            raise Refused(f"there are files of {' and '.join(formats)}: choose one for the new ones with --format")
        return file_format or formats[0], True
    if file_format not in (None, of_out):
        raise Refused(f"--format is {file_format}, and {out} is called as a file of {of_out}")
    return of_out, False


def _files(n: int) -> str:
    return f"{n:,} file" if n == 1 else f"{n:,} files"
