"""Columns of pandas data frames, which export Arrow data only if pyarrow is installed."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bochner_client.tables.fields import FORMATS, Field, TableError
from bochner_client.tables.numbers import Array, check_exact, objects_as_numbers, with_missing

_SEQUENCES = (list, tuple, np.ndarray)


def is_frame(x: Any) -> bool:
    """Whether `x` is a pandas data frame."""
    return _is_pandas(x) and hasattr(x, "columns")


def is_series(x: Any) -> bool:
    """Whether `x` is a pandas series."""
    return _is_pandas(x) and hasattr(x, "dtype") and hasattr(x, "iloc")


def _is_pandas(x: Any) -> bool:
    return type(x).__module__.partition(".")[0] == "pandas"


@dataclass(frozen=True)
class SeriesColumn:
    """A column of a pandas data frame, with the interface of `Column`."""

    field: Field
    series: Any
    first: int = 0

    @property
    def n(self) -> int:
        """Number of entries."""
        return len(self.series)

    def part(self, start: int, n: int) -> "SeriesColumn":
        """Return `n` of the entries, from `start` on."""
        return replace(self, series=self.series.iloc[start : start + n], first=self.first + start)

    def numbers(self) -> Array:
        """Return a column of numbers, `(n,)`, with NaN for missing ones."""
        if self.series.dtype == np.object_:
            return objects_as_numbers(self.series.to_numpy(), self.field, self.first)
        dtype = self.field.storage
        if isinstance(self.series.dtype, np.dtype):
            return with_missing(self.series.to_numpy(), np.empty(0, np.intp))
        missing = np.flatnonzero(self.series.isna().to_numpy())
        known = self.series.fillna(dtype.type(0)) if missing.size else self.series
        return with_missing(known.to_numpy(dtype), missing, self.field, self.first)

    def lists(self, width: int | None = None) -> Array:
        """Return a column of lists of numbers, `(n, width)`, with NaN for missing numbers.

        Raises TableError as `Column.lists` does.
        """
        rows = []
        for row, value in enumerate(self.series.to_numpy(), self.first):
            if not isinstance(value, _SEQUENCES):
                raise TableError("is null; expected a list of numbers", self.field.name, row)
            found = np.asarray(value)
            found = objects_as_numbers(found) if found.dtype == object else found
            width = len(found) if width is None else width
            if found.shape != (width,) or found.dtype.kind not in "biuf":
                detail = f"has {found.dtype} of shape {found.shape}; expected {width} numbers, as in those before it"
                raise TableError(detail, self.field.name, row)
            rows.append(found)
        dtype = np.result_type(*{one.dtype for one in rows}) if rows else np.dtype(np.float64)
        for row, one in enumerate(rows, self.first):
            check_exact(one, dtype, self.field, row, one.size)
        return np.array(rows, np.float32 if dtype == np.float16 else dtype).reshape(len(rows), width or 0)


def columns(frame: Any) -> list[SeriesColumn]:
    """Return the columns of a data frame."""
    return [column(frame.iloc[:, place], str(name)) for place, name in enumerate(frame.columns)]


def column(series: Any, name: str) -> SeriesColumn:
    """Return a series as a column of this name."""
    if hasattr(series, "cat"):
        of_values = column(series.cat.categories.to_series(), name).field
        return SeriesColumn(Field(name, "i", values=of_values), series)
    if str(series.dtype).startswith("null"):  # Arrow's type of a column without values
        series = series.astype(object)
    dtype = series.dtype
    # The NumPy dtype of a nullable, Arrow or sparse type.
    plain = getattr(dtype, "numpy_dtype", dtype.subtype if hasattr(series, "sparse") else dtype)
    known = FORMATS.get(plain) if isinstance(plain, np.dtype) else None
    if known is None:
        there = series.dropna()
        first = there.iloc[0] if len(there) else None
        if isinstance(first, _SEQUENCES):
            return SeriesColumn(Field(name, "+l", Field("item", "g")), series.astype(object))
        known = "U" if isinstance(first, str) and len(there) == len(series) else "g" if dtype == np.object_ else None
    return SeriesColumn(Field(name, known or f"?{dtype}"), series)
