"""Datasets as matrices: which rows a sample takes, and how far the columns reach."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from app.core.arrays import Floats, Matrix, Rows, row_blocks
from app.core.errors import InvalidInput

MOST_RANGES = 1 << 16
"""Columns up to which the ranges of a dataset's columns are kept."""
# Drawn in some milliseconds of the interpreter.
_WORDS_AT_A_TIME = 1 << 20
# A column whose numbers differ by so many roundings of float64 counts as constant.
_ROUNDINGS = 10


class Reference(NamedTuple):
    """Rows of a dataset, named where vectors could stand."""

    dataset: str
    rows: int | None = None
    """Size of the sample; None for all rows."""
    seed: int = 0
    pointer: str = ""
    """Where the members of the reference stand in the request, "" for the body itself."""

    @property
    def place(self) -> str:
        """Where a request names the dataset, for what is wrong with its rows."""
        return self.pointer or "/dataset"


def sample_rows(n: int, count: int, seed: int) -> NDArray[np.intp]:
    """Row numbers of a uniform sample of `count` of n rows, or of all, without replacement, (count,), increasing.

    The rows taken are those with the smallest of n words of NumPy's PCG64, seeded with `seed`. Its words are the same
    in every release, unlike what `Generator.choice` makes of them; and a smaller sample is part of a larger one. They
    are drawn some at a time, as there may be millions of rows of which few are wanted.
    """
    count, generator = min(n, count), np.random.PCG64(seed)
    words, numbers = np.empty(0, np.uint64), np.empty(0, np.intp)
    for block in row_blocks(n, max(_WORDS_AT_A_TIME, count)):
        drawn = generator.random_raw(block.stop - block.start)
        few = np.flatnonzero(drawn <= words.max()) if len(words) == count else np.arange(len(drawn))
        words, numbers = np.concatenate([words, drawn[few]]), np.concatenate([numbers, few + block.start])
        if len(words) > count:
            least = np.argpartition(words, count - 1)[:count]
            words, numbers = words[least], numbers[least]
    return np.sort(numbers)


def held_out(n: int, count: int, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Row numbers, increasing, of a `sampled` sample of `count` of n rows, (count,), after those of the others."""
    apart = np.zeros(n, np.bool_)
    if count:
        apart[sample_rows(n, count, seed)] = True
    return np.flatnonzero(~apart), np.flatnonzero(apart)


def column_ranges(rows: Rows) -> Floats:
    """The least and the largest entry of each column, (2, d), in the dtype of the rows, of which there is at least one.

    Those that are NaN, which are missing, do not count; a column of nothing else has NaN.

    Raises:
        InvalidInput: there are more columns than ranges are kept of.
    """
    if rows.shape[1] > MOST_RANGES:
        raise InvalidInput(f"ranges are kept of up to {MOST_RANGES} columns; there are {rows.shape[1]}")
    if isinstance(rows, np.ndarray):
        return np.stack([np.fmin.reduce(rows, axis=0), np.fmax.reduce(rows, axis=0)])
    columns: sparse.csc_array = rows.tocsc()
    return np.stack([columns.nanmin(axis=0).toarray(), columns.nanmax(axis=0).toarray()])


def is_constant(spread: Matrix, reach: Matrix) -> NDArray[np.bool_]:
    """Whether columns that spread so far, and whose entries are at most so large, differ by rounding alone, (d,)."""
    return np.asarray(spread <= _ROUNDINGS * np.finfo(np.float64).eps * reach)
