"""Parquet: spans are runs of row groups; results are one column of lists."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pyarrow as pa
from fsspec.parquet import open_parquet_file
from pyarrow import parquet

from bochner.bulk.files import File, is_local, located, opened
from bochner.bulk.formats.base import Array, Batch, Format, Look, Reading, Shape, Span, Writer
from bochner.bulk.formats.columns import Columns, check_schema, matrix, result_type, results
from bochner_client.tables import schema_of

# Buffer size for each column of a remote file, as row groups may be of any size.
_READ_BYTES = 1 << 20
# Most bytes fetched from another machine before reading starts.
_AHEAD_BYTES = 512 << 20


class Parquet(Format):
    """`.parquet`: columns of numbers, or one column of lists, as the service accepts them."""

    suffixes = (".parquet", ".pq")

    def look(self, file: File, columns: Columns, most: int) -> Look:
        """Return spans of consecutive row groups with at most `most` rows; a larger row group is a span of its own."""
        with _opened(file.url) as table:
            schema = schema_of(table.schema_arrow)
            names, _ = columns.chosen(table.schema_arrow.names, schema.frame_index)
            check_schema(schema, names, columns.width)
            sizes = [table.metadata.row_group(group).num_rows for group in range(table.num_row_groups)]
        found = [Span(0, 0, 0)]
        for group, rows in enumerate(sizes):
            if found[-1].rows and found[-1].rows + rows > most:
                found.append(Span(group, group, 0))
            found[-1] = Span(found[-1].start, group + 1, found[-1].rows + rows)
        return Look(found, names if len(names) > 1 else None)  # a column of lists may have any name

    def read(self, file: File, span: Span, columns: Columns, batch_rows: int, threads: int) -> Reading:
        """Read row groups page by page."""
        with _opened(file.url) as table:
            _, ids = _chosen(table, columns)
            kind = table.schema_arrow.field(ids).type if ids else None
        if kind is not None and pa.types.is_dictionary(kind):
            kind = kind.value_type
        return Reading(span.rows, kind, self._batches(file, span, columns, batch_rows, threads > 1))

    def first_row(self, file: File, span: Span, columns: Columns) -> int:
        """Return the number of rows of the row groups before the span."""
        del columns
        with _opened(file.url) as table:
            return sum(table.metadata.row_group(group).num_rows for group in range(span.start))

    def _batches(self, file: File, span: Span, columns: Columns, batch_rows: int, threads: bool) -> Iterator[Batch]:
        first = 0
        with _opened(file.url) as table:
            names, ids = _chosen(table, columns)
        kept, groups = [*names, *([ids] if ids else [])], list(range(span.start, span.stop))
        with _span(file, span, kept) as table:
            read = table.iter_batches(batch_rows, row_groups=groups, columns=kept, use_threads=threads)
            for batch in read:
                beside = batch.column(ids) if ids else None
                if isinstance(beside, pa.DictionaryArray):
                    beside = beside.dictionary_decode()
                yield Batch(matrix(batch.select(names), columns.width, first), beside)
                first += len(batch)

    def check(self, shape: Shape) -> None:
        """Do nothing: Parquet can store all results."""

    @contextmanager
    def write(self, sink: Any, shape: Shape) -> Iterator[Writer]:
        """Write a row group for each batch, so that what is written leaves memory."""
        fields = [pa.field("id", shape.ids)] if shape.ids is not None else []
        schema = pa.schema([*fields, pa.field(shape.called, result_type(shape.of_row, shape.dtype), nullable=False)])
        is_code = shape.dtype.kind in "iu"
        # Features are incompressible noise. Codes have few distinct values; without a dictionary, small numbers take 32
        # bits.
        with parquet.ParquetWriter(
            sink,
            schema,
            compression="zstd" if is_code else "none",
            use_dictionary=is_code,
            write_statistics=[field.name for field in fields],
        ) as writer:

            def write(found: Array, ids: Any) -> None:
                arrays = [*([] if ids is None else [ids]), results(found)]
                writer.write_table(pa.table(arrays, schema=schema), row_group_size=max(1, len(found)))

            yield write

    def count(self, url: str) -> int | None:
        """Return the number of rows in the footer; None if the file is not valid Parquet."""
        try:
            with _opened(url) as table:
                return int(table.metadata.num_rows)
        except pa.ArrowInvalid:
            return None


def _chosen(table: parquet.ParquetFile, columns: Columns) -> tuple[list[str], str | None]:
    return columns.chosen(table.schema_arrow.names, schema_of(table.schema_arrow).frame_index)


@contextmanager
def _span(file: File, span: Span, kept: list[str]) -> Iterator[parquet.ParquetFile]:
    """Open the file for reading a span: a remote one with few requests, unless that takes much memory."""
    with _opened(file.url) as table:
        groups = [table.metadata.row_group(group) for group in range(span.start, span.stop)]
        nbytes = sum(
            group.column(column).total_compressed_size for group in groups for column in range(group.num_columns)
        )
        if is_local(file.url) or nbytes > _AHEAD_BYTES:
            yield table
            return
    filesystem, path = located(file.url)
    wanted = list(range(span.start, span.stop))
    with (
        open_parquet_file(path, fs=filesystem, columns=kept, row_groups=wanted, engine="pyarrow") as ahead,
        parquet.ParquetFile(ahead) as table,
    ):
        yield table


@contextmanager
def _opened(url: str) -> Iterator[parquet.ParquetFile]:
    """Open the file so that little of each column is in memory at a time; for a local file, a page."""
    with ExitStack() as stack:
        local = is_local(url)
        source = pa.memory_map(located(url)[1]) if local else stack.enter_context(opened(url))
        read_bytes = 0 if local else _READ_BYTES
        yield stack.enter_context(parquet.ParquetFile(source, buffer_size=read_bytes, pre_buffer=False))
