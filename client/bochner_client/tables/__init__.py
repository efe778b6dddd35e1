"""Conversion of tables to rows of numbers, with the same rules for frames, Arrow and Parquet in client and service."""

from bochner_client.tables.columns import Column, Texts
from bochner_client.tables.fields import FORMATS, Field, TableError, index_columns
from bochner_client.tables.numbers import check_exact, is_missing, objects_as_numbers, unmasked
from bochner_client.tables.sources import as_table, schema_of, table_of_all
from bochner_client.tables.table import ID, TAG, Schema, Table

__all__ = [
    "FORMATS",
    "ID",
    "TAG",
    "Column",
    "Field",
    "Schema",
    "Table",
    "TableError",
    "Texts",
    "as_table",
    "check_exact",
    "index_columns",
    "is_missing",
    "objects_as_numbers",
    "schema_of",
    "table_of_all",
    "unmasked",
]
