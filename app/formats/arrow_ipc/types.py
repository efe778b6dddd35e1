"""The types of Arrow's columns: as a schema that came names them, and as a schema of ours says them.

Numbers of tables and fields are those of `Schema.fbs` and `Message.fbs` of the Arrow format, which never change.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from app.core.errors import InvalidInput
from app.formats.arrow_ipc.flatbuffers import Number, Table, Value
from app.formats.json_body import pointer_to

NULL, INT, FLOAT, UTF8, LIST, STRUCT = 1, 2, 3, 5, 12, 13
FIXED_LIST, LARGE_UTF8, LARGE_LIST, UTF8_VIEW = 16, 20, 21, 24
TEXTS = (UTF8, LARGE_UTF8, UTF8_VIEW)
_NAMES = dict(
    enumerate(
        (
            *("none", "null", "int", "float", "binary", "utf8", "bool", "decimal", "date", "time", "timestamp"),
            *("interval", "list", "struct", "union", "fixed_size_binary", "fixed_size_list", "map", "duration"),
            *("large_binary", "large_utf8", "large_list", "run_end_encoded", "binary_view", "utf8_view", "list_view"),
            "large_list_view",
        )
    )
)
_FLOATS = ("<f2", "<f4", "<f8")


class Field(NamedTuple):
    """A column of a schema that came, or what the lists of one hold."""

    name: str
    code: int
    """Which type it is of."""
    called: str
    """The type, in words."""
    dtype: np.dtype[Any] | None
    """Of numbers; None for all else."""
    size: int
    """Length of the lists of a FIXED_LIST."""
    item: "Field | None"
    """What lists hold."""

    @property
    def offsets(self) -> np.dtype[Any]:
        """The dtype of where its lists or strings begin."""
        return np.dtype("<i8" if self.code in (LARGE_LIST, LARGE_UTF8) else "<i4")

    @property
    def n_buffers(self) -> int:
        """Buffers of it and of what its lists hold, those of views aside."""
        if self.code == NULL:
            return 0
        own = 1 if self.code == FIXED_LIST else 3 if self.code in (UTF8, LARGE_UTF8) else 2
        return own + (self.item.n_buffers if self.item is not None else 0)

    @property
    def quoted(self) -> str:
        """The column, for an error."""
        return f"column {self.name[:80]!r}"

    @property
    def pointer(self) -> str:
        """The place of the column, for an error."""
        return pointer_to(self.name[:80])


def field_of(table: Table, holds: bool = True) -> Field:
    """Read a `Field`, and that of what its lists hold, if they may hold something."""
    name, code = table.string(0), table.number(2, "B")
    called = _NAMES.get(code, f"type {code}")
    if table.table(4) is not None:
        raise InvalidInput(f"column {name[:80]!r} is a dictionary of {called}; plain values are wanted: cast it first")
    described = table.table(3)
    dtype, size = None, 0
    if described is not None and code == INT:
        bits, signed = described.number(0, "i"), described.number(1, "B")
        dtype = np.dtype(f"<{'i' if signed else 'u'}{bits // 8}") if bits in (8, 16, 32, 64) else None
    elif described is not None and code == FLOAT:
        precision = described.number(0, "h")
        dtype = np.dtype(_FLOATS[precision]) if 0 <= precision < len(_FLOATS) else None
    elif described is not None and code == FIXED_LIST:
        size = described.number(0, "i")
    item = None
    if holds and code in (FIXED_LIST, LIST, LARGE_LIST):
        item = field_of(_only(table.tables(5)), holds=False)
    return Field(name, code, dtype.name if dtype is not None else called, dtype, size, item)


def _only(tables: list[Table]) -> Table:
    if len(tables) != 1:
        raise IndexError(f"a list of {len(tables)} things")
    return tables[0]


Written = dict[int, Value]
"""A `Field` as `flatbuffers.written` takes it."""


def number_field(name: str, dtype: np.dtype[Any]) -> Written:
    """A column of numbers."""
    if dtype.kind == "f":
        return _field(name, FLOAT, {0: Number("h", dtype.itemsize.bit_length() - 2)})
    return _field(name, INT, {0: Number("i", 8 * dtype.itemsize), 1: Number("B", dtype.kind == "i")})


def list_field(name: str, size: int, item: Written) -> Written:
    """A column of lists of one length."""
    return _field(name, FIXED_LIST, {0: Number("i", size)}, [item])


def struct_field(name: str, members: Sequence[Written]) -> Written:
    """A column of structs."""
    return _field(name, STRUCT, {}, members)


def text_field(name: str) -> Written:
    """A column of strings."""
    return _field(name, LARGE_UTF8, {})


def _field(name: str, code: int, described: Written, children: Sequence[Written] = ()) -> Written:
    # Nulls are allowed, as readers expect of a column, though there are none.
    return {0: name, 1: Number("B", 1), 2: Number("B", code), 3: described, 5: children}
