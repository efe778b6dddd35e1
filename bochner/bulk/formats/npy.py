"""`.npy`: one array, memory-mapped if the file is local, and written row after row."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.lib import format as npy_format

from bochner.bulk.errors import Refused, Unreadable
from bochner.bulk.files import File, is_local, located, opened, taken
from bochner.bulk.formats.base import Array, Batch, Format, Look, Reading, Shape, Span, Writer
from bochner.bulk.formats.columns import Columns

_READERS = {(1, 0): npy_format.read_array_header_1_0, (2, 0): npy_format.read_array_header_2_0}


class Npy(Format):
    """`.npy`: one array (rows, input_dim)."""

    suffixes = (".npy",)

    def look(self, file: File, columns: Columns, most: int) -> Look:
        """Return spans of equal numbers of rows, each of which can be read without the others."""
        if columns.names is not None or columns.ids is not None:
            raise Unreadable("a .npy has no columns with names")
        shape, fortran_order, dtype, start = _header(file.url)
        if len(shape) != 2:
            raise Unreadable(f"the array has shape {shape}; (rows, {columns.width}) is wanted")
        if shape[1] != columns.width:
            raise Unreadable(f"rows have {shape[1]} entries; this map takes {columns.width}")
        if dtype.kind not in "biuf":
            raise Unreadable(f"the array has dtype {dtype}; numbers are wanted")
        if (wanted := start + shape[0] * shape[1] * dtype.itemsize) > file.size:
            raise Unreadable(f"it has {file.size} bytes; its header announces {wanted}")
        if fortran_order and not is_local(file.url):
            raise Unreadable("its array is in Fortran order, which is read on this machine only")
        stops = [*range(most, shape[0], most), shape[0]]
        return Look([Span(i * most, stop, stop - i * most) for i, stop in enumerate(stops)])

    def read(self, file: File, span: Span, columns: Columns, batch_rows: int, threads: int) -> Reading:
        """Read rows in blocks."""
        del columns, threads
        return Reading(span.stop - span.start, None, self._batches(file.url, span, batch_rows))

    def first_row(self, file: File, span: Span, columns: Columns) -> int:
        """Return the first row of the span; spans count rows."""
        del file, columns
        return span.start

    def _batches(self, url: str, span: Span, batch_rows: int) -> Iterator[Batch]:
        shape, _, dtype, begun = _header(url)
        mapped = np.load(located(url)[1], mmap_mode="r", allow_pickle=False) if is_local(url) and shape[0] else None
        for start in range(span.start, span.stop, batch_rows):
            stop = min(span.stop, start + batch_rows)
            if mapped is not None:
                rows = np.asarray(mapped[start:stop])
            else:
                row_bytes = shape[1] * dtype.itemsize
                read = taken(url, begun + start * row_bytes, begun + stop * row_bytes)
                rows = np.frombuffer(read, dtype).reshape(stop - start, shape[1])
            yield Batch(rows.astype(np.float32) if rows.dtype == np.float16 else rows)

    def check(self, shape: Shape) -> None:
        """Refuse ids, which the format cannot store."""
        if shape.ids is not None:
            raise Refused("a .npy has no room for ids: take --format parquet or csv, or name the columns of the vector")

    @contextmanager
    def write(self, sink: Any, shape: Shape) -> Iterator[Writer]:
        """Write the header, then the numbers in C order."""
        fields = {
            "descr": npy_format.dtype_to_descr(shape.dtype),
            "fortran_order": False,
            "shape": (shape.rows(), *shape.of_row),
        }
        npy_format.write_array_header_1_0(sink, fields)

        def write(found: Array, ids: Any) -> None:
            del ids
            sink.write(np.ascontiguousarray(found).reshape(-1).view(np.uint8).data)

        yield write

    def count(self, url: str) -> int | None:
        """Return the number of rows in the header; None if the file's length does not match the header."""
        try:
            shape, _, dtype, start = _header(url)
        except (Unreadable, ValueError, OSError):
            return None
        filesystem, path = located(url)
        whole = start + int(np.prod(shape, dtype=object)) * dtype.itemsize
        return shape[0] if filesystem.info(path)["size"] == whole else None


def _header(url: str) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Return the shape, whether the array is in Fortran order, the dtype, and the position of the first number."""
    with opened(url) as file:
        version = npy_format.read_magic(file)
        if version not in _READERS:
            raise Unreadable(f"it is a .npy of version {version[0]}.{version[1]}; 1.0 or 2.0 is wanted")
        shape, fortran_order, dtype = _READERS[version](file)
        return shape, fortran_order, dtype, file.tell()
