"""Between tables of Arrow and matrices: which columns are the vector, and which is kept."""

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
    """What is read of a table.

    Args:
        width: entries of a row.
        names: those of the vector; None for all but that of the ids.
        ids: the one that is kept beside the results. None for the one called `id`, where `names` is None and there is
            one.
        header: whether a CSV begins with a line of names; None for what its first line looks like.
        order: those of the vector in the files that were read before, where `names` is None.
    """

    width: int
    names: tuple[str, ...] | None = None
    ids: str | None = None
    header: bool | None = None
    order: tuple[str, ...] | None = None

    def chosen(self, names: Sequence[str], frame_index: Set[str] = frozenset()) -> tuple[list[str], str | None]:
        """Of the columns of a table, those of the vector and that of the ids; an index of pandas is neither."""
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
    """Raise Unreadable where columns make no rows of this width, as far as their types tell."""
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
    """The rows (n, width) of a batch whose columns are those of the vector; NaN for what is missing.

    `first` is the number of its first row in the span.
    """
    try:
        return table_of_all(batch, width).rows()
    except TableError as error:
        raise Unreadable(error.detail, None if error.row is None else first + error.row) from None


def result_type(of_row: tuple[int, ...], dtype: np.dtype[Any]) -> pa.DataType:
    """The type of results of a shape: lists of a fixed length; complex ones as a struct of `real` and `imag`."""
    if dtype.kind == "c":
        part = result_type(of_row, np.empty(0, dtype).real.dtype)
        return pa.struct([pa.field(name, part, nullable=False) for name in ("real", "imag")])
    made = pa.from_numpy_dtype(dtype)
    for length in reversed(of_row):
        # To say that nothing is missing saves a fifth of the time of writing.
        made = pa.list_(pa.field("element", made, nullable=False), length)
    return made


def results(found: Array) -> pa.Array:
    """Results of rows as an array of `result_type`; their memory is shared where it can be."""
    if found.dtype.kind == "c":
        made = result_type(found.shape[1:], found.dtype)
        return pa.StructArray.from_arrays([results(part) for part in (found.real, found.imag)], fields=list(made))
    array = pa.array(np.ascontiguousarray(found).reshape(-1))
    for axis in range(found.ndim - 1, 0, -1):
        made = result_type(found.shape[axis:], found.dtype)
        array = pa.FixedSizeListArray.from_arrays(array, type=made)
    return array
