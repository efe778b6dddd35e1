"""Conversion between Arrow tables and matrices: which columns form the vector, and which one is copied."""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bochner.bulk.errors import Unreadable
from bochner_client.tables import ID, Schema, TableError, table_of_all

Array = NDArray[Any]


@dataclass(frozen=True)
class Columns:
    """Columns to read from a table.

    Args:
        width: number of entries of a row.
        names: columns of the vector; None for all columns but the one of ids.
        ids: column that is copied next to the results. None for the column `id`, if `names` is None and there is one.
        header: whether a CSV begins with a line of names; None to decide by its first line.
        order: order of the vector's columns in the files read before, used if `names` is None.
    """

    width: int
    names: tuple[str, ...] | None = None
    ids: str | None = None
    header: bool | None = None
    order: tuple[str, ...] | None = None

    def chosen(self, names: Sequence[str], frame_index: Set[str] = frozenset()) -> tuple[list[str], str | None]:
        """Return the columns of the vector and the column of ids of a table; an index of pandas is neither."""
        ids = self.ids or (ID if self.names is None and ID in names else None)
        wanted = (
            [one for one in names if one != ids and one not in frame_index] if self.names is None else [*self.names]
        )
        if self.order is not None and sorted(wanted) == sorted(self.order):
            wanted = [*self.order]
        missing = [one for one in (*wanted, *([ids] if ids else [])) if one not in names]
        if missing:
            raise Unreadable(f"there is no column {missing[0]!r}")
        for one in {*wanted, ids}:
            if list(names).count(one or "") > 1:
                raise Unreadable(f"several columns are called {one!r}")
        if not wanted:
            raise Unreadable("there is no column of numbers")
        return wanted, ids


def check_schema(schema: Schema, names: Sequence[str], width: int) -> None:
    """Raise Unreadable if the types of the columns show that they cannot form rows of this width."""
    by_name = {field.name: field for field in schema.fields}
    fields = [by_name[name] for name in names]
    try:
        Schema(fields).check(range(len(fields)), beside=())
    except TableError as error:
        raise Unreadable(f"{error}: name them with --columns") from None
    found = (width if fields[0].size is None else fields[0].size) if fields[0].is_list else len(fields)
    if found != width:
        raise Unreadable(f"rows have {found} entries; this map takes {width}")


def matrix(batch: pa.RecordBatch, width: int, first: int) -> Array:
    """Return the rows `(n, width)` of a batch that has only the vector's columns; NaN for missing values.

    `first` is the number of the batch's first row within the span.
    """
    try:
        return table_of_all(batch, width).rows()
    except TableError as error:
        raise Unreadable(error.detail, None if error.row is None else first + error.row) from None


def result_type(of_row: tuple[int, ...], dtype: np.dtype[Any]) -> pa.DataType:
    """Return the Arrow type of results: lists of a fixed length; complex numbers as a struct of `real` and `imag`."""
    if dtype.kind == "c":
        part = result_type(of_row, np.empty(0, dtype).real.dtype)
        return pa.struct([pa.field(name, part, nullable=False) for name in ("real", "imag")])
    made = pa.from_numpy_dtype(dtype)
    for length in reversed(of_row):
        # Declaring that no value is missing saves a fifth of the writing time.
        made = pa.list_(pa.field("element", made, nullable=False), length)
    return made


def results(found: Array) -> pa.Array:
    """Return results of rows as an array of `result_type`; memory is shared where possible."""
    if found.dtype.kind == "c":
        made = result_type(found.shape[1:], found.dtype)
        return pa.StructArray.from_arrays([results(part) for part in (found.real, found.imag)], fields=list(made))
    array = pa.array(np.ascontiguousarray(found).reshape(-1))
    for axis in range(found.ndim - 1, 0, -1):
        made = result_type(found.shape[axis:], found.dtype)
        array = pa.FixedSizeListArray.from_arrays(array, type=made)
    return array
