"""Datasets as matrices: sampling of rows, and ranges of columns."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from app.core.arrays import Floats, Matrix, Rows, row_blocks
from app.core.errors import InvalidInput

MOST_RANGES = 1 << 16
"""Largest number of columns for which a dataset's column ranges are stored."""
# Random words drawn at a time, which takes some milliseconds.
_WORDS_AT_A_TIME, _LEADING_BITS = 1 << 20, 16
# Largest spread of a column that counts as constant, in roundings (float64) of its largest entry.
_ROUNDINGS = 10


class Reference(NamedTuple):
    """Reference to rows of a dataset, in the place of vectors in a request."""

    dataset: str
    rows: int | None = None
    """Size of the sample; None for all rows."""
    seed: int = 0
    pointer: str = ""
    """Pointer to the object in the request that holds the reference, "" for the body itself."""

    @property
    def place(self) -> str:
        """Pointer that errors in the dataset's rows name."""
        return self.pointer or "/dataset"


def sample_rows(n: int, count: int, seed: int) -> NDArray[np.intp]:
    """Return the row numbers of a uniform sample of `count` of n rows without replacement, (count,), increasing.

    All rows are taken if there are at most `count`. The sample is the rows with the smallest of n words of NumPy's
    PCG64, seeded with `seed`. These words are the same in every NumPy release, unlike the results of
    `Generator.choice`, and a smaller sample is part of a larger one. Words are drawn in blocks, as a few of millions of
    rows may be sampled.
    """
    if _WORDS_AT_A_TIME < count < n:
        return _many_rows(n, count, seed)
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


def _many_rows(n: int, count: int, seed: int) -> NDArray[np.intp]:
    """Return what `sample_rows` does; drawing the words three times takes less memory than keeping them."""

    def blocks() -> Iterator[tuple[int, NDArray[np.uint64]]]:
        generator = np.random.PCG64(seed)
        for block in row_blocks(n, _WORDS_AT_A_TIME):
            yield block.start, generator.random_raw(block.stop - block.start)

    shift, counts = np.uint64(64 - _LEADING_BITS), np.zeros(1 << _LEADING_BITS, np.int64)
    for _, words in blocks():
        counts += np.bincount((words >> shift).astype(np.int64), minlength=len(counts))
    leading = int(np.searchsorted(np.cumsum(counts), count))  # leading bits of the largest word of the sample
    alike = np.sort(np.concatenate([words[words >> shift == leading] for _, words in blocks()]))
    largest = alike[count - int(counts[:leading].sum()) - 1]
    found = np.empty(count, np.intp)
    filled = 0
    for first, words in blocks():
        numbers = np.flatnonzero(words <= largest)[: count - filled]
        found[filled : filled + len(numbers)] = numbers + first
        filled += len(numbers)
    return found


def held_out(n: int, count: int, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the numbers of the remaining rows, then those of a sample of `count` of n rows, (count,), both increasing.

    The sample is that of `sample_rows`.
    """
    apart = np.zeros(n, np.bool_)
    if count:
        apart[sample_rows(n, count, seed)] = True
    return np.flatnonzero(~apart), np.flatnonzero(apart)


def column_ranges(rows: Rows) -> Floats:
    """Return the smallest and the largest entry of each column, (2, d), in the dtype of the rows; n ≥ 1.

    NaN, which marks missing entries, is ignored; a column without other entries has the range NaN.

    Raises:
        InvalidInput: there are more than `MOST_RANGES` columns.
    """
    if rows.shape[1] > MOST_RANGES:
        raise InvalidInput(f"ranges are kept of up to {MOST_RANGES} columns; there are {rows.shape[1]}")
    if isinstance(rows, np.ndarray):
        return np.stack([np.fmin.reduce(rows, axis=0), np.fmax.reduce(rows, axis=0)])
    columns: sparse.csc_array = rows.tocsc()
    return np.stack([columns.nanmin(axis=0).toarray(), columns.nanmax(axis=0).toarray()])


def is_constant(spread: Matrix, reach: Matrix) -> NDArray[np.bool_]:
    """Return which columns, (d,), are constant up to rounding, from their spread and their largest absolute entry."""
    return np.asarray(spread <= _ROUNDINGS * np.finfo(np.float64).eps * reach)
