"""Rows from any source, read a part at a time, so that there is never a second copy of all rows."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_array

from bochner_client.arrays import as_numbers
from bochner_client.tables import Table, as_table, check_exact, unmasked

Block = NDArray[Any] | sparse.csr_array
"""Rows `(n, d)` in float32 or float64, as a service accepts them."""

# DLPack's device type for memory of the CPU.
_CPU = 1
# Bytes of rows that are checked at a time.
_LOOK_BYTES = 1 << 23
# Upper bounds for sparse rows in JSON: bytes of an entry (its column and value), and of the rest of a row.
_BYTES_PER_STORED, _BYTES_PER_SPARSE_ROW = 40, 32


class Rows:
    """Rows `(n, d)` of an array, memory map, sparse matrix, data frame, Arrow table, tensor, or of lists of numbers.

    Args:
        x: the rows. Tensors are read through DLPack; those on other devices, a part at a time.
        missing: whether NaN may stand for a missing entry.

    Raises:
        ValueError: `x` is not a table of numbers.
    """

    def __init__(self, x: Any, missing: bool = False) -> None:
        self._finite: bool | str = "allow-nan" if missing else True
        self._table = as_table(x)
        self._x = x if self._table is not None else _sliceable(x)
        if self._table is None and self._x.ndim != 2:
            check_array(self._x)  # raises the error of scikit-learn
        self.n, self.d = map(int, self._x.shape if self._table is None else (self._table.n, self._table.d))
        self.named = _named(x, self._table)
        """The data frame, if its columns are those of the rows; else None."""
        self.bytes_before = self._sparse_bytes()
        """Bytes in a body of all rows before each row, and of all rows, `(n + 1,)`, for rows sent as sparse rows.

        None for rows that are sent as an array.
        """

    @property
    def bytes_per_row(self) -> int:
        """Most bytes of a row in an array."""
        return 8 * self.d

    @property
    def nbytes(self) -> int:
        """Most bytes of all rows in a body."""
        return self.bytes_per_row * self.n if self.bytes_before is None else int(self.bytes_before[-1])

    def block(self, start: int, stop: int) -> Block:
        """Return some of the rows, checked, in the form in which they are sent.

        Raises:
            ValueError: an entry is not a finite number.
        """
        some = self._table.rows(start, stop) if self._table is not None else self._x[start:stop]
        if isinstance(some, np.ndarray) and some.dtype.kind not in "biufc":
            some = as_numbers(some)
        if isinstance(some, np.ndarray) and some.dtype.kind in "iu":
            check_exact(some.ravel(), np.dtype(np.float64), None, start, self.d)
        try:
            checked: Any = check_array(
                some,
                accept_sparse="csr",
                dtype=[np.float64, np.float32],
                ensure_all_finite=self._finite,
                ensure_min_samples=0,
                input_name="X",
            )
        except ValueError as error:
            if "NaN" not in str(error):
                raise
            raise ValueError(f"{error} With input={{'missing': 0}}, 0 takes the place of missing entries.") from error
        as_array = sparse.issparse(checked) and self.bytes_before is None
        found: Block = checked.toarray() if as_array else checked
        return found

    def blocks(self) -> Iterator[Block]:
        """Iterate over all rows, some megabytes at a time."""
        step = max(1, _LOOK_BYTES // max(1, self.bytes_per_row))
        return (self.block(start, min(start + step, self.n)) for start in range(0, self.n, step))

    def _sparse_bytes(self) -> NDArray[np.int64] | None:
        if not isinstance(self._x, sparse.csr_array):
            return None
        found = self._x.indptr.astype(np.int64) * _BYTES_PER_STORED + np.arange(self.n + 1) * _BYTES_PER_SPARSE_ROW
        return found if found[-1] < self.bytes_per_row * self.n else None


class _Elsewhere:
    """A tensor in the memory of another device; only the rows that are needed are copied from there."""

    def __init__(self, tensor: Any) -> None:
        self._tensor, self.shape, self.ndim = tensor, tensor.shape, len(tensor.shape)

    def __getitem__(self, wanted: slice) -> NDArray[Any]:
        return np.from_dlpack(self._tensor[wanted], device="cpu")


def _named(x: Any, table: Table | None) -> Any:
    """Return the data frame with only the columns of the rows; None if rows are lists."""
    if table is None or table.is_of_lists:
        return None
    names = [field.name for field in table.fields]
    if len(names) == len(table.schema.fields):
        return x
    return x.select(names) if hasattr(x, "select") else x[names]


def _sliceable(x: Any) -> Any:
    """Return an object with `ndim`, `shape` and slices of rows, in types that scikit-learn's checks accept."""
    if isinstance(x, np.ndarray):
        return unmasked(x) if np.ma.isMaskedArray(x) else x
    if sparse.issparse(x):
        return sparse.csr_array(x)  # type: ignore[call-overload]
    if hasattr(x, "__dlpack__"):
        return np.from_dlpack(x) if x.__dlpack_device__()[0] == _CPU else _Elsewhere(x)
    return unmasked(x)
