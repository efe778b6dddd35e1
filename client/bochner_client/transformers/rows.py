"""Rows from wherever they are kept, read some at a time, so that none of it is held twice as a whole."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_array

from bochner_client.arrays import as_numbers
from bochner_client.tables import Table, as_table, check_exact, unmasked

Block = NDArray[Any] | sparse.csr_array
"""Rows of float32 or float64 as a service takes them, (n, d)."""

# Of DLPack: memory that the processor reads.
_CPU = 1
# Bytes of rows that are looked at together.
_LOOK_BYTES = 1 << 23
# Of sparse rows as JSON, at most: an entry's column and value, and the rest of a row.
_BYTES_PER_STORED, _BYTES_PER_SPARSE_ROW = 40, 32


class Rows:
    """Rows (n, d) of an array, memory map, sparse matrix, frame, Arrow table, tensor, or of lists of numbers.

    Args:
        x: the rows. Tensors are read through DLPack, from other devices some rows at a time.
        missing: whether NaN may stand for an entry that is missing.

    Raises:
        ValueError: it is no table of numbers.
    """

    def __init__(self, x: Any, missing: bool = False) -> None:
        self._finite: bool | str = "allow-nan" if missing else True
        self._table = as_table(x)
        self._x = x if self._table is not None else _sliceable(x)
        if self._table is None and self._x.ndim != 2:
            check_array(self._x)  # says what is wanted
        self.n, self.d = map(int, self._x.shape if self._table is None else (self._table.n, self._table.d))
        self.named = _named(x, self._table)
        """The frame, where its columns are those of the rows; else None."""
        self.bytes_before = self._sparse_bytes()
        """Bytes of all rows before each row in a body, and in all, (n + 1,), of rows that are sent as sparse ones.

        None for those that are sent as an array.
        """

    @property
    def bytes_per_row(self) -> int:
        """Bytes of a row in an array, at most."""
        return 8 * self.d

    @property
    def nbytes(self) -> int:
        """Bytes of all rows in a body, at most."""
        return self.bytes_per_row * self.n if self.bytes_before is None else int(self.bytes_before[-1])

    def block(self, start: int, stop: int) -> Block:
        """Some of the rows, checked, in the form in which they are sent.

        Raises:
            ValueError: an entry is no finite number.
        """
        some = self._table.rows(start, stop) if self._table is not None else self._x[start:stop]
        if isinstance(some, np.ndarray) and some.dtype.kind not in "biufc":
            some = as_numbers(some)
        if isinstance(some, np.ndarray) and some.dtype.kind in "iu":
            check_exact(some.ravel(), np.dtype(np.float64), None, start, self.d)
        checked: Any = check_array(
            some,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_all_finite=self._finite,
            ensure_min_samples=0,
            input_name="X",
        )
        as_array = sparse.issparse(checked) and self.bytes_before is None
        found: Block = checked.toarray() if as_array else checked
        return found

    def blocks(self) -> Iterator[Block]:
        """All rows, some megabytes at a time."""
        step = max(1, _LOOK_BYTES // max(1, self.bytes_per_row))
        return (self.block(start, min(start + step, self.n)) for start in range(0, self.n, step))

    def _sparse_bytes(self) -> NDArray[np.int64] | None:
        if not isinstance(self._x, sparse.csr_array):
            return None
        found = self._x.indptr.astype(np.int64) * _BYTES_PER_STORED + np.arange(self.n + 1) * _BYTES_PER_SPARSE_ROW
        return found if found[-1] < self.bytes_per_row * self.n else None


class _Elsewhere:
    """A tensor in the memory of another device, of which the rows that are wanted are brought here."""

    def __init__(self, tensor: Any) -> None:
        self._tensor, self.shape, self.ndim = tensor, tensor.shape, len(tensor.shape)

    def __getitem__(self, wanted: slice) -> NDArray[Any]:
        return np.from_dlpack(self._tensor[wanted], device="cpu")


def _named(x: Any, table: Table | None) -> Any:
    """The frame without the columns that are none of the rows'; None where rows are lists."""
    if table is None or table.is_of_lists:
        return None
    names = [field.name for field in table.fields]
    if len(names) == len(table.schema.fields):
        return x
    return x.select(names) if hasattr(x, "select") else x[names]


def _sliceable(x: Any) -> Any:
    """What has `ndim`, `shape` and slices of rows that scikit-learn's checks take."""
    if isinstance(x, np.ndarray):
        return unmasked(x) if np.ma.isMaskedArray(x) else x
    if sparse.issparse(x):
        return sparse.csr_array(x)  # type: ignore[call-overload]
    if hasattr(x, "__dlpack__"):
        return np.from_dlpack(x) if x.__dlpack_device__()[0] == _CPU else _Elsewhere(x)
    return np.asarray(x)
