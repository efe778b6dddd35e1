"""Plan of bulk work: which rows go into which new files, and the note in their folder that describes them."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from bochner.bulk.errors import Refused, Unreadable
from bochner.bulk.files import File, is_empty, is_local, located, read_json, said, swept, write_json
from bochner.bulk.formats import FORMATS, format_of
from bochner.bulk.formats.base import Look, Span
from bochner.bulk.formats.columns import Columns
from bochner.bulk.work import Part, Task

NOTE = "_bochner.json"
_LOCK = "_bochner.lock"
# Files are inspected in parallel, as each takes a moment in an object store.
_LOOKS = 32
_MOST_TOLD = 10


def planned(
    files: Sequence[File], columns: Columns, out: str, suffix: str | None, most: int
) -> tuple[list[Task], Columns]:
    """Return the tasks for files, and the columns to read.

    The new files are parts of at most `most` rows in the folder `out`, or one file `out` if `suffix` is None. Columns
    with names are in the order of the first file.

    Raises:
        Refused: files cannot be used, or two of them would become the same new file.
    """
    with ThreadPoolExecutor(_LOOKS) as pool:
        looked = list(pool.map(partial(_look, columns=columns, most=most), files))
    if refused := [one for one in looked if isinstance(one, str)]:
        raise Refused(listed(refused))
    looks = [one for one in looked if not isinstance(one, str)]
    spans = [one.spans for one in looks]
    columns = replace(columns, order=_order(files, looks))
    if suffix is None:
        ((file,), (of_file,)) = files, spans
        rows = sum(span.rows for span in of_file) if _counts(file) else None
        return [Task(file, tuple(of_file), (Part(out, rows),))], columns
    tasks = [task for file, found in zip(files, spans, strict=True) for task in _cut(file, found, out, suffix, most)]
    _check_names([(part.url, task.file.url) for task in tasks for part in task.parts])
    return tasks, columns


def _order(files: Sequence[File], looks: Sequence[Look]) -> tuple[str, ...] | None:
    """Return the names of the columns in the first file that has names; Refused if another file has other names."""
    named = [(file.name, look.names) for file, look in zip(files, looks, strict=True) if look.names is not None]
    if not named:
        return None
    first, names = named[0]
    odd = [f"{name}: its columns are {_words(other)}" for name, other in named if sorted(other) != sorted(names)]
    if odd:
        raise Refused(f"{listed(odd)}\nexpected those of {first}, in any order: {_words(names)}")
    return tuple(names)


def _words(names: Sequence[str]) -> str:
    return ", ".join(names[:_MOST_TOLD]) + (", …" if len(names) > _MOST_TOLD else "")


def _look(file: File, columns: Columns, most: int) -> Look | str:
    """Return what a first look at a file shows, or the message of an error."""
    try:
        return FORMATS[format_of(file.name) or ""].look(file, columns, most)
    except Unreadable as error:
        return error.told(file.name)
    except (OSError, ValueError) as error:
        return f"{file.name}: {said(error)}"


def _counts(file: File) -> bool:
    return FORMATS[format_of(file.name) or ""].counts_rows


def _cut(file: File, spans: list[Span], out: str, suffix: str, most: int) -> list[Task]:
    """Return the tasks of a file: one for each span, with several parts if the span is long."""
    stem = file.name.rpartition(".")[0]
    rows = [
        [min(most, span.rows - start) for start in range(0, max(1, span.rows), most)] if _counts(file) else [None]
        for span in spans
    ]
    alone = sum(map(len, rows)) == 1
    tasks, number = [], 0
    for span, of_span in zip(spans, rows, strict=True):
        parts = []
        for n in of_span:
            parts.append(Part(f"{out}/{stem}{suffix}" if alone else f"{out}/{stem}-{number:05}{suffix}", n))
            number += 1
        tasks.append(Task(file, (span,), tuple(parts)))
    return tasks


def _check_names(named: list[tuple[str, str]]) -> None:
    known: dict[str, str] = {}
    for url, name in named:
        if (other := known.setdefault(url, name)) is not name:
            raise Refused(f"{other} and {name} would both become {url}: rename one, or work on them apart")


def listed(complaints: Sequence[str]) -> str:
    """Return complaints as lines: the first ten, and the number of the rest."""
    more = len(complaints) - _MOST_TOLD
    return "\n".join([*complaints[:_MOST_TOLD], *([f"and {more} more"] if more > 0 else [])])


@contextmanager
def held(out: str, is_folder: bool) -> Iterator[None]:
    """Keep other runs on this machine from writing to `out`, and remove temporary files that killed runs have left.

    Object stores have no locks: simultaneous runs do the work twice there, with the same result.
    """
    if not is_local(out):
        yield
        return
    path = Path(located(out)[1])
    lock = path / _LOCK if is_folder else path.with_name(f".{path.name}.lock")
    lock.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(lock, timeout=0):
            swept(lock.parent, "*" if is_folder else path.name)
            yield
            if not is_folder:
                lock.unlink(missing_ok=True)
    except Timeout:
        raise Refused(f"another run is writing to {out}") from None


def noted(out: str, note: dict[str, Any], files: Sequence[File]) -> None:
    """Write a note into a folder that says what its files are made from.

    Raises:
        Refused: the folder has a different note already, or files but no note.
    """
    versions = {file.name: file.version for file in files}
    before = read_json(f"{out}/{NOTE}")
    if before is None and not is_empty(out):
        raise Refused(f"{out} has files already, which are of no run: name another output")
    if before is not None:
        before.setdefault("order", note.get("order"))  # missing in the notes of earlier versions
        known: dict[str, str] = before.pop("files")
        for name in sorted(note.keys() | before.keys()):
            if note.get(name) != before.get(name):
                raise Refused(
                    f"{out} was begun with {name} {before.get(name)}, and is now to go on with {note.get(name)}: "
                    "name another output, or remove it"
                )
        if changed := [name for name, version in known.items() if versions.get(name, version) != version]:
            raise Refused(f"{changed[0]} has changed since {out} was begun: name another output, or remove it")
        versions = known | versions
    write_json(f"{out}/{NOTE}", note | {"files": versions})
