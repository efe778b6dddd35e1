"""The computation on rows: features or codes of a frozen map, in a given dtype."""

import io
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import narrow
from app.core.errors import InvalidInput, InvalidOption, OutOfRange
from bochner.bulk.errors import Refused, Unreadable
from bochner.maps import Map, load

Array = NDArray[Any]

# Dtypes to which results of a map's own dtype may be rounded, with the rounding of the service.
_NARROWER = {"float64": ("float32", "float16"), "float32": ("float16",), "complex128": ("complex64",)}


@dataclass(frozen=True)
class Computing:
    """Computation of features or codes with a frozen map. Can be pickled for other processes."""

    frozen: bytes
    """The exported map, as the bytes of an `.npz` file."""
    encoding: dict[str, Any] | None = None
    """Options of codes, as `Map.codes` takes them; None to compute features."""
    dtype: str | None = None
    """Dtype of features; None for the map's own."""
    threads: int = 1
    """Number of processors that one batch of rows may use. It does not change the results."""

    @property
    def called(self) -> str:
        """Name of the output column."""
        return "features" if self.encoding is None else "codes"

    @cached_property
    def map(self) -> Map:
        """The map, opened once in each process."""
        try:
            return load(io.BytesIO(self.frozen), self.threads)
        except InvalidInput as error:
            raise Refused(error.detail) from None

    @cached_property
    def digest(self) -> str:
        """Digest of the spec and the frozen arrays."""
        with np.load(io.BytesIO(self.frozen), allow_pickle=False) as members:
            told: bytes = members["digest"].item()
        return told.decode()

    @property
    def input_dim(self) -> int:
        """Number of entries of a row."""
        return int(self.map.feature_map.spec.input_dim)

    @cached_property
    def of_no_rows(self) -> Array:
        """Result for zero rows, which has the shape and dtype of results for any number of rows.

        Raises:
            Refused: the map has no such results, or options do not apply to the map.
        """
        try:
            found = self._computed(np.empty((0, self.input_dim)))
        except InvalidInput as error:
            raise Refused(error.detail) from None
        except InvalidOption as error:
            raise Refused(f"--{error.option.replace('_', '-')}: {error.detail}") from None
        own = str(found.dtype)
        if self.dtype is None or self.dtype == own:
            return found
        if self.dtype not in (known := _NARROWER.get(own, ())):
            raise Refused(f"--dtype is {self.dtype}; {called_by(self.map)} gives {' or '.join((own, *known))}")
        return found.astype(self.dtype)

    @property
    def row_bytes(self) -> int:
        """Bytes of the result of one row, in the requested dtype."""
        return _row_bytes(self.of_no_rows)

    @cached_property
    def computed_bytes(self) -> int:
        """Bytes of the result of one row in the map's own dtype, before rounding."""
        return _row_bytes(self._computed(np.empty((0, self.input_dim))))

    def __call__(self, rows: Array, first: int = 0) -> Array:
        """Return the results of rows `(n, input_dim)`; `first` is the number of the first row.

        Raises:
            Unreadable: a row is not valid for the map. The error has the number of the row.
        """
        try:
            return narrow(self._computed(rows), self.of_no_rows.dtype)
        except (InvalidInput, OutOfRange):
            self._refuse(rows, first)
            raise

    def warnings(self, rows: Array) -> tuple[str, ...]:
        """Return warnings about results of these rows, which have been computed."""
        feature_map = self.map.feature_map
        return feature_map.warnings(feature_map.spec.gate(rows, ""))

    def _computed(self, rows: Array) -> Array:
        if self.encoding is None:
            return self.map.transform(rows)
        found: Array = self.map.codes(rows, **self.encoding)
        return found

    def _refuse(self, rows: Array, first: int) -> None:
        """Raise Unreadable for the first row that is refused, found by bisection."""
        if len(rows) > 1:
            half = len(rows) // 2
            for start, some in ((0, rows[:half]), (half, rows[half:])):
                self(some, first + start)
            return
        try:
            narrow(self._computed(rows), self.of_no_rows.dtype)
        except (InvalidInput, OutOfRange) as error:
            said = error.detail if isinstance(error, InvalidInput) else str(error)
            raise Unreadable(said.removeprefix("row 0, ").removeprefix("row 0 "), first) from None


def _row_bytes(of: Array) -> int:
    return math.prod(of.shape[1:]) * of.itemsize


def called_by(of: Map) -> str:
    """Return how messages name a map."""
    return f"a map of dtype {of.feature_map.spec.dtype.value}"
