"""Answers to requests: arrays, as they are or made block by block while they are sent."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Array
from app.core.errors import OutOfRange
from app.core.ids import Ids, NumberIds, TextIds


@dataclass(frozen=True)
class RowBlocks:
    """An array that is made some rows at a time, so that it never stands in memory as a whole."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    blocks: Sequence[slice]
    """Which rows of the request to make at a time, in order."""
    make: Callable[[slice], Array]
    """Makes a block. It must not fail: the first blocks are then sent already."""
    largest: float = inf
    """No entry is larger."""

    @property
    def nbytes(self) -> int:
        """Size of the whole array."""
        return prod(self.shape) * self.dtype.itemsize

    @property
    def held_bytes(self) -> int:
        """Size of two blocks, the largest: one waits to be sent while the next is made."""
        longest = max((block.stop - block.start for block in self.blocks), default=0)
        return 2 * longest * prod(self.shape[1:]) * self.dtype.itemsize

    def generate(self) -> Iterator[Array]:
        """The blocks, each made when its turn has come."""
        return map(self.make, self.blocks)

    def convert(self, change: Callable[[slice, Array], Array], **members: Any) -> "RowBlocks":
        """The same blocks, each changed after it was made; `members` are those that differ."""
        return replace(self, make=lambda block: change(block, self.make(block)), **members)

    def narrow(self, dtype: np.dtype[Any]) -> "RowBlocks":
        """The same numbers in a dtype of fewer digits; OutOfRange if some could be too large for it."""
        if self.dtype == dtype:
            return self
        if self.largest > float(np.finfo(dtype).max):
            raise OutOfRange(f"numbers up to {self.largest:.3g} are too large for {dtype}")
        return self.convert(lambda _, block: narrow(block, dtype), dtype=dtype)


@dataclass(frozen=True)
class OneHot:
    """Sparse rows of ones: the column indices of each, (n, s), −1 throughout for a row without any."""

    columns: Array | RowBlocks
    n_columns: int
    has_ones: NDArray[np.bool_]
    """Whether a row has ones, (n,)."""

    @property
    def nbytes(self) -> int:
        """Size of the column indices."""
        return self.columns.nbytes

    def indptr(self) -> Array:
        """Where the indices of each row begin, and where they end, (n + 1,)."""
        return np.concatenate([[0], np.cumsum(self.has_ones * self.columns.shape[1])])

    def indices(self) -> Array | RowBlocks:
        """The column indices of all rows that have ones, one after the other."""
        columns, has_ones = self.columns, self.has_ones
        if isinstance(columns, RowBlocks):
            shape = (int(has_ones.sum()) * columns.shape[1],)
            return columns.convert(lambda block, rows: rows[has_ones[block]].reshape(-1), shape=shape)
        return (columns if has_ones.all() else columns[has_ones]).reshape(-1)


Answer = Mapping[str, Array | RowBlocks | OneHot | Ids]
"""Arrays by the names they have in a JSON answer, rows first."""
IDS = "ids"
"""The member of an answer with the ids of its rows."""
SIGNATURE = "signature"
"""The member of an answer with a number for each frequency; all others have a row for each row of the first."""


def held_bytes(answer: Answer) -> int:
    """Memory that an answer takes while it is sent."""
    every = (one.columns if isinstance(one, OneHot) else one for one in answer.values())
    return sum(one.held_bytes if isinstance(one, RowBlocks) else one.nbytes for one in every)


def in_parts(array: Array | RowBlocks) -> Iterator[Array]:
    """The blocks of an array, which are one where it stands in memory."""
    return array.generate() if isinstance(array, RowBlocks) else iter([array])


def narrow(array: Array, dtype: np.dtype[Any]) -> Array:
    """The same numbers in a dtype of fewer digits, not copied if it is theirs; OutOfRange if one is too large."""
    try:
        with np.errstate(over="raise"):
            return array.astype(dtype, copy=False)
    except FloatingPointError:
        raise OutOfRange(f"numbers up to {np.nanmax(np.abs(array)):.3g} are too large for {dtype}") from None


def dtype_of(answer: Answer) -> np.dtype[Any]:
    """The dtype of the rows of an answer."""
    return rows_of(answer).dtype


def rows_of(answer: Answer) -> Array | RowBlocks:
    """The rows of an answer: its first array, or the columns of its ones."""
    rows = next(iter(answer.values()))
    if isinstance(rows, NumberIds | TextIds):
        raise TypeError("an answer begins with ids")
    return rows.columns if isinstance(rows, OneHot) else rows
