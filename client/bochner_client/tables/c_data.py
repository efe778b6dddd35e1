"""Tables of other libraries, read in place through the C data interface of Arrow; numbers are not copied.

All libraries, from polars data frames to results of DuckDB, export the same structures. Their members are named as in
the specification.
"""

from collections.abc import Mapping
from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    byref,
    c_char_p,
    c_int,
    c_int64,
    c_uint8,
    c_void_p,
    py_object,
    pythonapi,
    sizeof,
    string_at,
)
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bochner_client.tables.columns import Buffer, Column
from bochner_client.tables.fields import Field, TableError, index_columns

_INT_BYTES = sizeof(c_int)
_EXTENSION = b"ARROW:extension:name"


class _Schema(Structure):
    pass


class _Array(Structure):
    pass


class _Stream(Structure):
    pass


_Schema._fields_ = [
    *(("format", c_char_p), ("name", c_char_p), ("metadata", c_void_p), ("flags", c_int64), ("n_children", c_int64)),
    *(("children", POINTER(POINTER(_Schema))), ("dictionary", POINTER(_Schema))),
    *(("release", CFUNCTYPE(None, POINTER(_Schema))), ("private_data", c_void_p)),
]
_Array._fields_ = [
    *((name, c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")),
    *(("buffers", POINTER(c_void_p)), ("children", POINTER(POINTER(_Array))), ("dictionary", POINTER(_Array))),
    *(("release", CFUNCTYPE(None, POINTER(_Array))), ("private_data", c_void_p)),
]
_Stream._fields_ = [
    ("get_schema", CFUNCTYPE(c_int, POINTER(_Stream), POINTER(_Schema))),
    ("get_next", CFUNCTYPE(c_int, POINTER(_Stream), POINTER(_Array))),
    ("get_last_error", CFUNCTYPE(c_char_p, POINTER(_Stream))),
    *(("release", CFUNCTYPE(None, POINTER(_Stream))), ("private_data", c_void_p)),
]


class _Owner:
    """Keeps the memory of a batch until no array refers to it."""

    def __init__(self) -> None:
        self.array = _Array()

    def __del__(self) -> None:
        if self.array.release:
            self.array.release(byref(self.array))


def read_schema(source: Any) -> tuple[list[Field], frozenset[str]]:
    """Return the columns of a schema, and the names of those that were an index of pandas."""
    capsule = source.__arrow_c_schema__()
    return _fields(_Schema.from_address(_address(capsule, b"arrow_schema")))


def read(source: Any) -> tuple[list[Field], frozenset[str], list[list[Column]]]:
    """Return the columns of a table, the names of those that were an index of pandas, and the columns of each batch.

    A single column is read as a table of one column.
    """
    batches: list[list[Column]] = []
    if not hasattr(source, "__arrow_c_stream__"):
        of_schema, of_array = source.__arrow_c_array__()
        schema = _Schema.from_address(_address(of_schema, b"arrow_schema"))
        fields, index = _fields(schema)
        array = _Array.from_address(_address(of_array, b"arrow_array"))
        return fields, index, [_columns(schema, fields, array, of_array, 0)]
    capsule = source.__arrow_c_stream__()
    stream, schema, first = _Stream.from_address(_address(capsule, b"arrow_array_stream")), _Schema(), 0
    _check(stream, stream.get_schema(byref(stream), byref(schema)))
    try:
        fields, index = _fields(schema)
        while True:
            owner = _Owner()
            _check(stream, stream.get_next(byref(stream), byref(owner.array)))
            if not owner.array.release:
                return fields, index, batches
            batches.append(_columns(schema, fields, owner.array, owner, first))
            first += owner.array.length
    finally:
        schema.release(byref(schema))


def _address(capsule: Any, name: bytes) -> int:
    get = pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = c_void_p, [py_object, c_char_p]
    return int(get(capsule, name))


def _check(stream: Any, code: int) -> None:
    if code:
        said = stream.get_last_error(byref(stream)) or b"it gives no reason"
        raise TableError(f"the table cannot be read: {said.decode(errors='replace')}")


def _fields(schema: Any) -> tuple[list[Field], frozenset[str]]:
    inner = [schema.children[i].contents for i in range(schema.n_children)] if schema.format == b"+s" else [schema]
    return [*map(_field, inner)], index_columns(_metadata(schema))


def _field(schema: Any) -> Field:
    name, kind = (schema.name or b"").decode(), schema.format.decode()
    item = _field(schema.children[0].contents) if kind[:2] in ("+l", "+L", "+w") else None
    values = _field(schema.dictionary.contents) if schema.dictionary else None
    return Field(name, kind, item, values, _metadata(schema).get(_EXTENSION, b"").decode())


def _metadata(schema: Any) -> Mapping[bytes, bytes]:
    at, pieces = schema.metadata, list[bytes]()
    if not at:
        return {}
    for _ in range(2 * c_int.from_address(at).value):
        size = c_int.from_address(at := at + _INT_BYTES).value
        pieces.append(string_at(at + _INT_BYTES, size))
        at += size
    return dict(zip(pieces[::2], pieces[1::2], strict=True))


def _columns(schema: Any, fields: list[Field], array: Any, owner: Any, first: int) -> list[Column]:
    if schema.format != b"+s":
        return [_column(fields[0], array, owner, first)]
    inner = (array.children[i].contents for i in range(array.n_children))
    columns = [_column(field, one, owner, 0) for field, one in zip(fields, inner, strict=True)]
    return [replace(one.part(array.offset, array.length), first=first) for one in columns]


def _column(field: Field, array: Any, owner: Any, first: int) -> Column:
    item = _column(field.item, array.children[0].contents, owner, 0) if field.item is not None else None
    values = _column(field.values, array.dictionary.contents, owner, 0) if field.values is not None else None
    places = [array.buffers[i] for i in range(array.n_buffers)]
    views: list[NDArray[np.uint8]] = []
    if field.format == "vu":
        sizes = _bytes(places[-1], 8 * (len(places) - 3), owner).view(np.int64)
        views = [_bytes(place, int(size), owner) for place, size in zip(places[2:], sizes, strict=False)]
    # A null count of -1 means that it is unknown.
    may_miss = array.null_count != 0 and bool(places) and places[0] is not None
    buffers: list[Buffer] = [partial(_bytes, place, owner=owner) for place in places]
    return Column(field, array.length, may_miss, buffers, views, item, values, array.offset, first)


def _bytes(place: int | None, n: int, owner: Any) -> NDArray[np.uint8]:
    """Return `n` bytes at an address in memory, and keep `owner` alive as long as they are used."""
    if not n or place is None:
        return np.empty(0, np.uint8)
    raw: Any = (c_uint8 * n).from_address(place)
    raw.owner = owner
    found: NDArray[np.uint8] = np.frombuffer(raw, np.uint8)
    return found
