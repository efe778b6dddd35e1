"""Names and types of columns, in terms of Arrow."""

import json
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

# Formats of numbers in Arrow's C data interface.
_NUMBERS = dict(
    zip("bcCsSiIlLefg", ("?", "i1", "u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8"), strict=True)
)
FORMATS = {np.dtype(dtype): kind for kind, dtype in _NUMBERS.items()}
"""Formats by dtype."""
# Names of all other types, by the beginnings of their formats.
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
    """A table does not have rows of numbers, or has other content than expected.

    Attributes:
        detail: what was received and what was expected.
        column: name of the column that is wrong; None if it is not a single one.
        row: number of the row that is wrong; None if it is not a single one.
    """

    def __init__(self, detail: str, column: str | None = None, row: int | None = None) -> None:
        super().__init__(detail if row is None else f"row {row} {detail}")
        self.detail, self.column, self.row = detail, column, row


class Field(NamedTuple):
    """Name and type of a column."""

    name: str
    format: str
    """Format in the C data interface; for a dictionary, the format of its indices."""
    item: "Field | None" = None
    """Type of the entries of lists."""
    values: "Field | None" = None
    """Type of the values of a dictionary."""
    extension: str = ""
    """Name of the extension type."""
    dictionary: int = 0
    """Number of the dictionary in a stream."""

    @property
    def dtype(self) -> np.dtype[np.generic] | None:
        """Dtype of a column of numbers; None for other columns."""
        is_number = self.values is None and self.format in _NUMBERS and not self.extension
        return np.dtype(_NUMBERS[self.format]) if is_number else None

    @property
    def called(self) -> str:
        """Name of the type, for messages."""
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
        """Name of the column, for messages."""
        return f"column {self.name[:80]!r}"

    @property
    def is_null(self) -> bool:
        """Whether all entries of the column are missing by its type."""
        return self.format == "n"

    @property
    def is_text(self) -> bool:
        """Whether the column has strings."""
        return self.format in _TEXTS and self.values is None

    @property
    def is_list(self) -> bool:
        """Whether the column has lists."""
        return self.format in ("+l", "+L") or self.size is not None

    @property
    def is_whole(self) -> bool:
        """Whether the column has whole numbers."""
        return self.dtype is not None and self.dtype.kind in "iu"

    @property
    def is_vector(self) -> bool:
        """Whether the column has lists of numbers."""
        return self.is_list and self.item is not None and (self.item.dtype is not None or self.item.is_null)

    @property
    def size(self) -> int | None:
        """Length of the lists of a fixed-size type; None for other types."""
        return int(self.format[3:]) if self.format.startswith("+w:") else None

    @property
    def storage(self) -> np.dtype[np.generic]:
        """Dtype of the numbers of a column, or of the indices of a dictionary."""
        return np.dtype(_NUMBERS[self.format])

    @property
    def offsets(self) -> np.dtype[np.generic]:
        """Dtype of the positions at which lists or strings begin."""
        return np.dtype("<i8" if self.format in ("+L", "U") else "<i4")


def index_columns(metadata: Mapping[bytes, bytes]) -> frozenset[str]:
    """Return the names of the columns that were the index of a pandas data frame, given the metadata of its schema."""
    try:
        said = json.loads(metadata.get(b"pandas") or b"{}")
        return frozenset(name for name in said.get("index_columns", ()) if isinstance(name, str))
    except (ValueError, AttributeError, TypeError, RecursionError):  # another program may have written anything there
        return frozenset()
