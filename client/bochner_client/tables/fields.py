"""What a column of a table holds, in the words of Arrow."""

import json
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

# Of the formats of Arrow's C data interface, those of numbers.
_NUMBERS = dict(
    zip("bcCsSiIlLefg", ("?", "i1", "u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8"), strict=True)
)
FORMATS = {np.dtype(dtype): kind for kind, dtype in _NUMBERS.items()}
"""The formats of dtypes."""
# By how the formats of all other types begin.
_NAMES = {
    "+vl": "list_view",
    "+vL": "large_list_view",
    "+u": "union",
    "+l": "list",
    "+L": "large_list",
    "+w": "fixed_size_list",
    "+s": "struct",
    "+m": "map",
    "+r": "run_end_encoded",
    "td": "date",
    "tt": "time",
    "ts": "timestamp",
    "tD": "duration",
    "ti": "interval",
    "vz": "binary_view",
    "z": "binary",
    "Z": "large_binary",
    "w": "fixed_size_binary",
    "d": "decimal",
    "vu": "utf8_view",
    "u": "utf8",
    "U": "large_utf8",
    "n": "null",
}
_TEXTS = ("u", "U", "vu")


class TableError(ValueError):
    """A table that holds no rows of numbers, or something else than was expected.

    Attributes:
        detail: what came, and what was expected.
        column: name of the column to blame; None for no single one.
        row: number of the row to blame; None for no single one.
    """

    def __init__(self, detail: str, column: str | None = None, row: int | None = None) -> None:
        super().__init__(detail if row is None else f"row {row} {detail}")
        self.detail, self.column, self.row = detail, column, row


class Field(NamedTuple):
    """Name and type of a column."""

    name: str
    format: str
    """Of the C data interface; of a dictionary, that of its indices."""
    item: "Field | None" = None
    """What lists hold."""
    values: "Field | None" = None
    """What a dictionary holds."""
    extension: str = ""
    """Name of the extension type."""
    dictionary: int = 0
    """Number of the dictionary in a stream."""

    @property
    def dtype(self) -> np.dtype[np.generic] | None:
        """The dtype of numbers; None for all else."""
        is_number = self.values is None and self.format in _NUMBERS and not self.extension
        return np.dtype(_NUMBERS[self.format]) if is_number else None

    @property
    def called(self) -> str:
        """Its type, in words."""
        if self.values is not None:
            return f"dictionary of {self.values.called}"
        if self.extension and not self.is_list:
            return self.extension
        name = np.dtype(_NUMBERS[self.format]).name if self.format in _NUMBERS else ""
        name = name or next((name for start, name in _NAMES.items() if self.format.startswith(start)), self.format)
        name = name.removeprefix("?")
        return f"{name} of {self.item.called}" if self.item is not None else name

    @property
    def quoted(self) -> str:
        """The column, for a message."""
        return f"column {self.name[:80]!r}"

    @property
    def is_null(self) -> bool:
        """Whether it is a column of which every entry is missing."""
        return self.format == "n"

    @property
    def is_text(self) -> bool:
        """Whether it holds strings."""
        return self.format in _TEXTS and self.values is None

    @property
    def is_list(self) -> bool:
        """Whether it holds lists."""
        return self.format in ("+l", "+L") or self.size is not None

    @property
    def is_whole(self) -> bool:
        """Whether it holds whole numbers."""
        return self.dtype is not None and self.dtype.kind in "iu"

    @property
    def is_vector(self) -> bool:
        """Whether it holds lists of numbers."""
        return self.is_list and self.item is not None and (self.item.dtype is not None or self.item.is_null)

    @property
    def size(self) -> int | None:
        """Length of lists that have one length by their type."""
        return int(self.format[3:]) if self.format.startswith("+w:") else None

    @property
    def storage(self) -> np.dtype[np.generic]:
        """The dtype of the numbers of a column, or of the indices of a dictionary."""
        return np.dtype(_NUMBERS[self.format])

    @property
    def offsets(self) -> np.dtype[np.generic]:
        """The dtype of the places at which lists or strings begin."""
        return np.dtype("<i8" if self.format in ("+L", "U") else "<i4")


def index_columns(metadata: Mapping[bytes, bytes]) -> frozenset[str]:
    """Names of the columns that were the index of a frame of pandas, by the metadata of its schema."""
    try:
        said = json.loads(metadata.get(b"pandas") or b"{}")
        return frozenset(name for name in said.get("index_columns", ()) if isinstance(name, str))
    except (ValueError, AttributeError, TypeError, RecursionError):  # whatever another program has written there
        return frozenset()
