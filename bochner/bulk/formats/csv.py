"""CSV in UTF-8. Spans are ranges of bytes that end with a line, so cells must not contain line breaks."""

import csv
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BytesIO, StringIO
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv

from bochner.bulk.errors import Refused, Unreadable
from bochner.bulk.files import File, located, taken
from bochner.bulk.formats.base import Array, Batch, Format, Look, Reading, Shape, Span, Writer
from bochner.bulk.formats.columns import Columns, matrix
from bochner_client.tables import ID

# Largest span, in bytes of text; a span is read as a whole.
_SPAN_BYTES = 32 << 20
_LOOK_BYTES = 1 << 16


@dataclass(frozen=True)
class _Head:
    """Properties of a file that its first lines show."""

    names: list[str]
    begins: int
    """Position of the first row, in bytes."""
    line_bytes: float
    """Approximate length of a row, in bytes."""


class Csv(Format):
    """`.csv`: a line of names, then lines of numbers separated by commas; ids are strings."""

    suffixes = (".csv",)
    counts_rows = False

    def look(self, file: File, columns: Columns, most: int) -> Look:
        """Return spans of lines of about 32 MiB at most, each of which can be read without the others."""
        head = _head(file, columns)
        names, _ = columns.chosen(head.names)
        if len(names) != columns.width:
            raise Unreadable(f"rows have {len(names)} entries; this map takes {columns.width}")
        size = max(1, min(_SPAN_BYTES, int(most * head.line_bytes)))
        ends = [head.begins]
        while ends[-1] < file.size:
            ends.append(_line_end(file, ends[-1] + size))
        ends = ends if len(ends) > 1 else [head.begins, head.begins]
        spans = [Span(ends[i], stop, round((stop - ends[i]) / head.line_bytes)) for i, stop in enumerate(ends[1:])]
        return Look(spans, names if head.begins else None)

    def read(self, file: File, span: Span, columns: Columns, batch_rows: int, threads: int) -> Reading:
        """Read a span as a whole; its rows are returned in batches."""
        head = _head(file, columns)
        names, ids = columns.chosen(head.names)
        table = _table(taken(file.url, span.start, span.stop), head.names, names, ids, threads > 1)
        return Reading(len(table), pa.string() if ids else None, _batches(table, names, ids, batch_rows, columns.width))

    def first_row(self, file: File, span: Span, columns: Columns) -> int:
        """Return the number of lines before the span; empty lines are not rows."""
        return _lines(file, _head(file, columns).begins, span.start)

    def check(self, shape: Shape) -> None:
        """Refuse complex numbers, and ids that cannot be written as text."""
        if shape.dtype.kind == "c":
            raise Refused("CSV has no complex numbers: take --format parquet or npy")
        if shape.ids is not None and (pa.types.is_nested(shape.ids) or "binary" in str(shape.ids)):
            raise Refused(f"CSV has no ids of type {shape.ids}: take --format parquet")

    @contextmanager
    def write(self, sink: Any, shape: Shape) -> Iterator[Writer]:
        """Write a line of names, and a line for each row; float16 is written as float32, without loss."""
        dtype = np.dtype(np.float32) if shape.dtype == np.float16 else shape.dtype
        names = [f"{shape.called}_{'_'.join(map(str, place))}" for place in np.ndindex(*shape.of_row)]
        fields = [pa.field(name, pa.from_numpy_dtype(dtype)) for name in names]
        schema = pa.schema([*([pa.field("id", shape.ids)] if shape.ids is not None else []), *fields])
        with arrow_csv.CSVWriter(sink, schema) as writer:

            def write(found: Array, ids: Any) -> None:
                cells = found.reshape(len(found), len(names)).astype(dtype, copy=False)
                arrays = [pa.array(np.ascontiguousarray(cells[:, column])) for column in range(len(names))]
                writer.write(pa.table([*([] if ids is None else [ids]), *arrays], schema=schema))

            yield write

    def count(self, url: str) -> int | None:
        """Return the number of lines, without the line of names."""
        filesystem, path = located(url)
        size = filesystem.info(path)["size"]
        return _lines(File(url, url, size, ""), 0, size) - 1 if size else None


def _head(file: File, columns: Columns) -> _Head:
    """Read the first lines; Unreadable if it is unclear whether the first one has names or numbers."""
    length = _LOOK_BYTES
    while b"\n" not in (look := taken(file.url, 0, min(file.size, length))) and length < file.size:
        length *= 4
    if not look.strip():
        if columns.header is False:
            return _Head([str(column) for column in range(columns.width)], 0, 1.0)
        raise Unreadable("it is empty; a line of names is wanted (or --no-header)")
    line, _, rest = look.partition(b"\n")
    cells = _cells(line)
    lines = rest.count(b"\n")
    line_bytes = (rest.rfind(b"\n") + 1) / lines if lines else float(max(len(rest), len(line)) + 1)
    if columns.header is None:
        _refuse_numbers(cells)
    if columns.header is not False:
        return _Head(cells, min(len(line) + 1, file.size), line_bytes)
    return _Head([str(column) for column in range(len(cells))], 0, line_bytes)


def _cells(line: bytes) -> list[str]:
    try:
        return next(csv.reader([line.decode("utf-8-sig").rstrip("\r")]), [""])
    except (UnicodeDecodeError, csv.Error) as error:
        raise Unreadable(f"its first line cannot be read: {error}") from None


def _refuse_numbers(cells: list[str]) -> None:
    """Raise Unreadable if there is a number, and no name of ids: 0, 1, 2 may be names, and may be a row."""
    number = next(filter(_is_number, cells), None)
    if number is not None and ID not in cells:
        raise Unreadable(f"its first line has the number {number}: say --no-header if it is a row, or --header")


def _is_number(cell: str) -> bool:
    with suppress(pa.ArrowInvalid):
        return bool(pa.scalar(cell.strip()).cast(pa.float64()).is_valid)
    return False


def _line_end(file: File, at: int) -> int:
    """Return the position after the line that contains the byte before `at`."""
    at -= 1
    while at < file.size:
        look = taken(file.url, at, min(file.size, at + _LOOK_BYTES))
        if (found := look.find(b"\n")) >= 0:
            return at + found + 1
        at += _LOOK_BYTES
    return file.size


def _lines(file: File, start: int, stop: int) -> int:
    """Return the number of non-empty lines that begin between two positions."""
    found, rest = 0, b""
    for at in range(start, stop, _SPAN_BYTES):
        *lines, rest = (rest + taken(file.url, at, min(stop, at + _SPAN_BYTES))).split(b"\n")
        found += sum(1 for line in lines if line.strip())
    return found + bool(rest.strip())


def _table(text: bytes, every: list[str], names: list[str], ids: str | None, threads: bool) -> pa.Table:
    types = {name: pa.float64() for name in names} | ({ids: pa.string()} if ids else {})
    kept = [*names, *([ids] if ids else [])]
    if not text.strip():
        return pa.table({name: pa.array([], types[name]) for name in kept})
    try:
        return arrow_csv.read_csv(
            BytesIO(text),
            arrow_csv.ReadOptions(column_names=every, use_threads=threads),
            arrow_csv.ParseOptions(newlines_in_values=False),
            arrow_csv.ConvertOptions(column_types=types, include_columns=kept),
        )
    except pa.ArrowInvalid:
        _refuse(text, every, names)
        raise


def _refuse(text: bytes, every: list[str], names: list[str]) -> None:
    """Raise Unreadable for the first row that cannot be read as numbers."""
    places = [every.index(name) for name in names]
    rows = (row for row in csv.reader(StringIO(text.decode(errors="replace"))) if row)
    for number, row in enumerate(rows):
        if len(row) != len(every):
            raise Unreadable(f"it has {len(row)} cells; {len(every)} are wanted", number)
        for place in places:
            if not _is_number(row[place]) and row[place] not in _MISSING:
                raise Unreadable(f"column {every[place]!r} is {row[place][:40]!r}; a number is wanted", number)


_MISSING = frozenset(arrow_csv.ConvertOptions().null_values)


def _batches(table: pa.Table, names: list[str], ids: str | None, batch_rows: int, width: int) -> Iterator[Batch]:
    for start in range(0, len(table), batch_rows):
        some = table.slice(start, batch_rows).combine_chunks()
        (batch,) = some.to_batches()
        yield Batch(matrix(batch.select(names), width, start), batch.column(ids) if ids else None)
