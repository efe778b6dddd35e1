"""Tables from objects of any supported library."""

from typing import Any

from bochner_client.tables import c_data, frames
from bochner_client.tables.fields import TableError
from bochner_client.tables.table import Schema, Table


def as_table(x: Any) -> Table | None:
    """Return frames, tables and columns of pandas, polars or any Arrow library as a table; None for other objects.

    Raises:
        TableError: the table is lazy, or cannot be read.
    """
    if frames.is_frame(x):
        return _of_columns(frames.columns(x))
    if frames.is_series(x):
        alone = frames.column(x, str(x.name))
        return _of_columns([alone]) if alone.field.is_list else None
    if hasattr(x, "collect_schema") and not hasattr(x, "__arrow_c_stream__"):
        raise TableError(f"expected rows, got a {type(x).__name__}, whose rows are not there yet: collect() it first")
    if not (hasattr(x, "__arrow_c_stream__") or hasattr(x, "__arrow_c_array__")):
        return None
    fields, index, batches = c_data.read(x)
    is_alone = not (hasattr(x, "schema") or hasattr(x, "columns"))
    return None if is_alone and not fields[0].is_list else Table(Schema(fields, index), batches)


def table_of_all(x: Any, width: int) -> Table:
    """Return a pyarrow table whose columns all belong to vectors of this width."""
    fields, _, batches = c_data.read(x)
    return Table(Schema(fields), batches, range(len(fields)), (), width)


def _of_columns(found: list[frames.SeriesColumn]) -> Table:
    return Table(Schema([one.field for one in found]), [found])


def schema_of(source: Any) -> Schema:
    """Return the columns of a pyarrow schema."""
    return Schema(*c_data.read_schema(source))
