"""Between tables of Arrow and matrices: which columns are the vector, and which is kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bochner.bulk.errors import Unreadable

Array = NDArray[Any]

_ID = "id"


@dataclass(frozen=True)
class Columns:
    """What is read of a table.

    Args:
        width: entries of a row.
        names: those of the vector; None for all but that of the ids.
        ids: the one that is kept beside the results. None for the one called `id`, where `names` is None and there is
            one.
        header: whether a CSV begins with a line of names; None for what its first line looks like.
    """

    width: int
    names: tuple[str, ...] | None = None
    ids: str | None = None
    header: bool | None = None

    def chosen(self, names: Sequence[str]) -> tuple[list[str], str | None]:
        """Of the columns of a table, those of the vector and that of the ids."""
        ids = self.ids or (_ID if self.names is None and _ID in names else None)
        wanted = [one for one in names if one != ids] if self.names is None else list(self.names)
        missing = [one for one in (*wanted, *([ids] if ids else [])) if one not in names]
        if missing:
            raise Unreadable(f"there is no column {missing[0]!r}")
        for one in {*wanted, ids}:
            if list(names).count(one or "") > 1:
                raise Unreadable(f"several columns are called {one!r}")
        if not wanted:
            raise Unreadable("there is no column of numbers")
        return wanted, ids


def check_schema(schema: pa.Schema, names: Sequence[str], width: int) -> None:
    """Raise Unreadable where columns make no rows of this width, as far as their types tell."""
    types = [schema.field(name).type for name in names]
    if len(types) == 1 and _is_list(types[0]):
        if not _is_number(types[0].value_type):
            raise Unreadable(f"column {names[0]!r} has lists of {types[0].value_type}; numbers are wanted")
        found = types[0].list_size if pa.types.is_fixed_size_list(types[0]) else width
    else:
        for name, one in zip(names, types, strict=True):
            if not _is_number(one):
                raise Unreadable(
                    f"column {name!r} is of type {one}; columns of numbers, or one of lists of numbers, are wanted: "
                    "name them with --columns"
                )
        found = len(types)
    if found != width:
        raise Unreadable(f"rows have {found} entries; this map takes {width}")


def matrix(batch: pa.RecordBatch, width: int, first: int) -> Array:
    """The rows (n, width) of a batch whose columns are those of the vector; NaN for what is missing.

    `first` is the number of its first row in the span.
    """
    if batch.num_columns == 1 and _is_list(batch.schema.types[0]):
        return _of_lists(batch.column(0), width, first)
    dtypes = [np.dtype(one.to_pandas_dtype()) for one in batch.schema.types]
    if any(column.null_count for column in batch.columns):
        dtypes.append(np.dtype(np.float32))
    dtype = np.result_type(*dtypes, *([np.float32] if np.float16 in dtypes else []))
    wanted = pa.schema([pa.field(name, pa.from_numpy_dtype(dtype)) for name in batch.schema.names])
    # A cast refuses whole numbers that it would round.
    rows: Array = batch.cast(wanted).to_tensor(null_to_nan=True, row_major=True).to_numpy()
    return rows


def _of_lists(column: pa.Array, width: int, first: int) -> Array:
    if column.null_count:
        raise Unreadable("it is missing", first + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False))))
    lengths = column.value_lengths().to_numpy(zero_copy_only=False)
    odd = np.flatnonzero(lengths != width)
    if odd.size:
        raise Unreadable(f"it has {lengths[odd[0]]} entries; this map takes {width}", first + int(odd[0]))
    values = column.flatten().to_numpy(zero_copy_only=False)
    rows: Array = values.reshape(len(column), width)
    return rows.astype(np.float32) if rows.dtype == np.float16 else rows


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


def _is_list(one: pa.DataType) -> bool:
    return any(of(one) for of in (pa.types.is_fixed_size_list, pa.types.is_list, pa.types.is_large_list))


def _is_number(one: pa.DataType) -> bool:
    return bool(pa.types.is_integer(one) or pa.types.is_floating(one))
