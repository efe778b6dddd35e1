"""Answers to requests: arrays in memory, or result blocks that are computed while the answer is sent."""

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
    """Array computed block by block (result blocks), so that it is never in memory as a whole."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    blocks: Sequence[slice]
    """Rows of the request to compute at a time, in order."""
    make: Callable[[slice], Array]
    """Function that computes one block. It must not fail, because earlier blocks may already have been sent."""
    largest: float = inf
    """Upper bound of the entries' absolute values."""

    @property
    def nbytes(self) -> int:
        """Size of the whole array in bytes."""
        return prod(self.shape) * self.dtype.itemsize

    @property
    def held_bytes(self) -> int:
        """Twice the size of the largest block in bytes: one block waits to be sent while the next is computed."""
        longest = max((block.stop - block.start for block in self.blocks), default=0)
        return 2 * longest * prod(self.shape[1:]) * self.dtype.itemsize

    def generate(self) -> Iterator[Array]:
        """Yield the blocks in order, computing each when it is asked for."""
        return map(self.make, self.blocks)

    def convert(self, change: Callable[[slice, Array], Array], **members: Any) -> "RowBlocks":
        """Return the same blocks with `change` applied to each one; `members` are the fields that differ."""
        return replace(self, make=lambda block: change(block, self.make(block)), **members)

    def narrow(self, dtype: np.dtype[Any]) -> "RowBlocks":
        """Return the same numbers in a dtype of lower precision; OutOfRange if `largest` is too large for it."""
        if self.dtype == dtype:
            return self
        if self.largest > float(np.finfo(dtype).max):
            raise OutOfRange(f"numbers up to {self.largest:.3g} are too large for {dtype}")
        return self.convert(lambda _, block: narrow(block, dtype), dtype=dtype)


@dataclass(frozen=True)
class OneHot:
    """Sparse rows of ones, stored as column indices, (n, s); a row without ones holds −1 throughout."""

    columns: Array | RowBlocks
    n_columns: int
    has_ones: NDArray[np.bool_]
    """Whether each row has ones, (n,)."""

    @property
    def nbytes(self) -> int:
        """Size of the column indices in bytes."""
        return self.columns.nbytes

    def indptr(self) -> Array:
        """Return the positions at which the indices of each row begin and end, as in CSR, (n + 1,)."""
        return np.concatenate([[0], np.cumsum(self.has_ones * self.columns.shape[1])])

    def indices(self) -> Array | RowBlocks:
        """Return the column indices of all rows that have ones, concatenated."""
        columns, has_ones = self.columns, self.has_ones
        if isinstance(columns, RowBlocks):
            shape = (int(has_ones.sum()) * columns.shape[1],)
            return columns.convert(lambda block, rows: rows[has_ones[block]].reshape(-1), shape=shape)
        return (columns if has_ones.all() else columns[has_ones]).reshape(-1)


Answer = Mapping[str, Array | RowBlocks | OneHot | Ids]
"""Arrays by their names in a JSON answer; the rows come first."""
IDS = "ids"
"""Name of the member of an answer that holds the ids of its rows."""
SIGNATURE = "signature"
"""Name of the member of an answer with one number per frequency; all others have one row per row of the first."""


def held_bytes(answer: Answer) -> int:
    """Return the memory in bytes that an answer takes while it is sent."""
    every = (one.columns if isinstance(one, OneHot) else one for one in answer.values())
    return sum(one.held_bytes if isinstance(one, RowBlocks) else one.nbytes for one in every)


def in_parts(array: Array | RowBlocks) -> Iterator[Array]:
    """Yield the blocks of an array; an array that is already in memory is one block."""
    return array.generate() if isinstance(array, RowBlocks) else iter([array])


def narrow(array: Array, dtype: np.dtype[Any]) -> Array:
    """Return the numbers in a dtype of lower precision, not copied if they have it; OutOfRange if one is too large."""
    try:
        with np.errstate(over="raise"):
            return array.astype(dtype, copy=False)
    except FloatingPointError:
        raise OutOfRange(f"numbers up to {np.nanmax(np.abs(array)):.3g} are too large for {dtype}") from None


def dtype_of(answer: Answer) -> np.dtype[Any]:
    """Return the dtype of an answer's rows."""
    return rows_of(answer).dtype


def rows_of(answer: Answer) -> Array | RowBlocks:
    """Return the rows of an answer: its first array, or the column indices if it is a `OneHot`."""
    rows = next(iter(answer.values()))
    if isinstance(rows, NumberIds | TextIds):
        raise TypeError("an answer begins with ids")
    return rows.columns if isinstance(rows, OneHot) else rows
