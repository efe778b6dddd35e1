"""Arrays of rows: validation of posted vectors, the ids beside them, sparse rows, and answers computed in blocks."""

import codecs
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import inf, prod
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from app.core.errors import InvalidInput, OutOfRange

MAX_DIM = 1 << 31
"""Largest number of entries of a vector."""

Array = NDArray[Any]
Matrix = NDArray[np.float64]
"""float64 array of any number of dimensions; docstrings state the shape, as for all arrays."""
Whole = NDArray[np.int64]
Floats = NDArray[np.floating[Any]]
PostedRows = Array | sparse.csr_array
"""Vectors in their original dtype, not yet validated."""
Rows = Floats | sparse.csr_array
"""Validated vectors: a C-contiguous or CSR matrix of float32 or float64, finite, of the map's width."""
Ready = Callable[[Rows, int], Rows]
"""Function that returns a block of rows as they are compared; the second argument is the number of its first row."""
CheckBytes = Callable[[int], None]
"""Function that receives the number of bytes rows will take, before they are allocated; raises TooLarge if too many."""
MISSING = 'is missing; a map with an input such as {"fit": "standardize", "missing": 0} takes such rows'
"""Error text for NaN, which is written as null in JSON."""
AFTER_INPUT = ", once it has gone through the input of the map"
"""Suffix of error texts about an entry after preprocessing (`input`), whose value differs from the posted one."""
MAX_ID_BYTES = 1024
"""Length of the longest string id, in bytes of UTF-8."""
# Bytes of text that are checked at a time, and strings that are put together at a time.
_AT_A_TIME = 1 << 20
_ROWS_AT_A_TIME = 1 << 10


@dataclass(frozen=True)
class NumberIds:
    """Ids that are whole numbers, (n,), int64 or uint64."""

    numbers: Array
    kind = "int"

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def nbytes(self) -> int:
        """Memory of the ids in bytes."""
        return self.numbers.nbytes

    def take(self, rows: NDArray[np.intp] | slice) -> "NumberIds":
        """Return the ids of some rows."""
        return NumberIds(self.numbers[rows])

    def to_list(self) -> list[int]:
        """Return the ids as Python integers."""
        return list(self.numbers.tolist())


@dataclass(frozen=True)
class TextIds:
    """Ids that are strings: their concatenation in UTF-8, (bytes,), and the position where each string ends, (n,)."""

    ends: Whole
    text: NDArray[np.uint8]
    kind = "string"

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def nbytes(self) -> int:
        """Memory of the ids in bytes."""
        return self.ends.nbytes + self.text.nbytes

    def take(self, rows: NDArray[np.intp] | slice) -> "TextIds":
        """Return the ids of some rows."""
        if isinstance(rows, slice):
            begin, _, _ = rows.indices(len(self))
            ends = self.ends[rows]
            first = int(self.ends[begin - 1]) if begin else 0
            return TextIds(ends - first, self.text[first : int(ends[-1]) if len(ends) else first])
        starts = np.concatenate([[0], self.ends[:-1]]).astype(np.int64)[: len(self)]
        return gather_strings(self.text, starts[rows], (self.ends - starts)[rows])

    def to_list(self) -> list[str]:
        """Return the ids as Python strings."""
        text, starts = self.text.tobytes(), [0, *self.ends.tolist()]
        return [text[start:end].decode() for start, end in pairwise(starts)]


Ids = NumberIds | TextIds


class Identified(NamedTuple):
    """Rows in their original dtype, and their ids."""

    rows: PostedRows
    ids: Ids


def gather_strings(text: NDArray[np.uint8], starts: Whole, lengths: Whole) -> TextIds:
    """Return the strings of a text that begin at `starts`, in any order, and have these `lengths`, both (n,).

    No string may be longer than `MAX_ID_BYTES`.
    """
    ends = np.cumsum(lengths, dtype=np.int64)
    found = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
    for first in range(0, len(ends), _ROWS_AT_A_TIME):
        some = slice(first, first + _ROWS_AT_A_TIME)
        begun = ends[some] - lengths[some]
        here = slice(int(begun[0]), int(ends[some][-1]))
        found[here] = text[np.repeat(starts[some] - begun, lengths[some]) + np.arange(here.start, here.stop)]
    return TextIds(ends, found)


def check_lengths(lengths: Whole, first_row: int, called: str = "id") -> None:
    """Raise InvalidInput for a string that is too long; the first string belongs to row `first_row`.

    `called` is what the error calls the strings.
    """
    odd = (lengths < 0) | (lengths > MAX_ID_BYTES)
    if odd.any():
        row = int(np.argmax(odd))
        detail = f"the {called} of row {first_row + row} has {lengths[row]} bytes; {MAX_ID_BYTES} are taken at most"
        raise InvalidInput(detail, f"/{called}")


def check_text(ids: TextIds, called: str = "id") -> None:
    """Raise InvalidInput if a string is not UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for first in range(0, ids.text.size + 1, _AT_A_TIME):
            decoder.decode(ids.text[first : first + _AT_A_TIME].tobytes(), final=first + _AT_A_TIME > ids.text.size)
    except UnicodeDecodeError as error:
        raise InvalidInput(f"the {called}s are no UTF-8: {error.reason}", f"/{called}") from error
    inner = ids.ends[ids.ends < ids.text.size]
    if inner.size and (ids.text[inner] & 0xC0 == 0x80).any():
        raise InvalidInput(f"the {called}s are no UTF-8: one ends within a character", f"/{called}")


def vectors(
    rows: PostedRows,
    input_dim: int,
    dtype: np.dtype[Any],
    pointer: str = "/vectors",
    missing: str = MISSING,
    check: CheckBytes = lambda _: None,
) -> Rows:
    """Return posted rows, found at `pointer` of the request, validated for use in a dtype, float32 or float64.

    Floats keep their precision (float16 becomes float32), so that exact kernels are those of the posted rows. Whole
    numbers are converted to the dtype. Rows are not copied if nothing has to be converted. `missing` is the error text
    for NaN.

    Raises:
        InvalidInput: the array is not two-dimensional, its width is not `input_dim`, it has another kind of number, or
            it contains NaN, infinity, a value outside the dtype's range, or a whole number that the dtype does not hold
            exactly.
        TooLarge: raised by `check`.
    """
    found = floats(rows, input_dim, dtype, pointer, check)
    if not np.isfinite(stored_values(found)).all():
        refuse_not_finite(found, pointer, missing=missing)
    check_range(found, dtype, pointer)
    return found


def floats(
    rows: PostedRows, input_dim: int, dtype: np.dtype[Any], pointer: str, check: CheckBytes = lambda _: None
) -> Rows:
    """Return posted rows of `input_dim` entries as floats in their original precision; whole numbers become `dtype`.

    Rows are not copied if nothing has to be converted, and may contain NaN and infinity. Raises InvalidInput as
    `vectors` does for shapes, kinds of numbers and whole numbers; `check` may raise TooLarge.
    """
    if rows.ndim != 2:
        raise InvalidInput(f"expected a 2-D array (rows, {input_dim}), got shape {rows.shape}", pointer)
    if rows.shape[1] != input_dim:
        raise InvalidInput(f"rows have {rows.shape[1]} entries; this map takes {input_dim}", pointer)
    if isinstance(rows, np.ndarray) and rows.dtype.kind in "biu":
        check(rows.size * dtype.itemsize)
        _check_exact(rows, dtype, pointer)
        whole: Floats = np.ascontiguousarray(rows, dtype)
        return whole
    if rows.dtype.kind != "f" or rows.dtype.itemsize not in (2, 4, 8):
        raise InvalidInput(f"the array has dtype {rows.dtype}; expected floats, whole numbers or booleans", pointer)
    return in_dtype(rows, np.result_type(rows.dtype, np.float32))


def as_they_are(rows: Rows, _: int) -> Rows:
    """Return the rows, which need not be made ready."""
    return rows


def in_dtype(rows: Rows, dtype: np.dtype[Any]) -> Rows:
    """Return rows of floats rounded to a dtype, C-contiguous or sparse; not copied if nothing changes."""
    if isinstance(rows, np.ndarray):
        return np.ascontiguousarray(rows, dtype)
    cast: Rows = rows.astype(dtype, copy=False)
    return cast


def check_range(rows: Rows, dtype: np.dtype[Any], pointer: str, when: str = "") -> None:
    """Raise InvalidInput that names the first entry outside the range of the dtype; all entries must be finite.

    `when` is appended to the error text.
    """
    if rows.dtype.itemsize <= dtype.itemsize:
        return
    with np.errstate(over="ignore"):  # the error names the entry that overflows
        if not np.isfinite(dtype.type(largest(rows))):
            outside = f"is outside the range of {dtype}, the dtype of this map{when}"
            _refuse_entry(rows, np.isinf(stored_values(rows).astype(dtype)), outside, pointer)


def refuse_not_finite(
    rows: Rows, pointer: str, first_row: int = 0, infinite: str = "is not finite", missing: str | None = MISSING
) -> None:
    """Raise InvalidInput that names the first entry that is NaN or infinite.

    The error text is `missing` for NaN and `infinite` for infinity. The first of these rows is row `first_row` of the
    request. Return if all entries are finite; if `missing` is None, NaN is allowed.
    """
    values = stored_values(rows)
    is_odd = np.isinf(values) if missing is None else ~np.isfinite(values)
    if is_odd.any():
        is_missing = bool(np.isnan(values.ravel()[np.argmax(is_odd)]))
        _refuse_entry(rows, is_odd, missing if is_missing and missing else infinite, pointer, first_row)


def complete(rows: Rows, pointer: str, missing: str = MISSING) -> Rows:
    """Return the rows, whose entries are finite or NaN; InvalidInput with the text `missing` if an entry is NaN."""
    if np.isnan(stored_values(rows)).any():
        refuse_not_finite(rows, pointer, missing=missing)
    return rows


def row_blocks(n: int, per_block: int, first: int = 0) -> Iterator[slice]:
    """Yield slices that cover `range(first, n)` in order, `per_block` rows each."""
    for start in range(first, n, max(1, per_block)):
        yield slice(start, min(n, start + max(1, per_block)))


def blocks_of_entries(rows: Rows, most: int) -> Iterator[slice]:
    """Yield slices that cover the rows (n, d) in order, up to `most` entries in each, or one row."""
    n = rows.shape[0]
    if isinstance(rows, np.ndarray):
        yield from row_blocks(n, most // rows.shape[1])
        return
    start = 0
    while start < n:
        last = int(np.searchsorted(rows.indptr, int(rows.indptr[start]) + most, side="right")) - 1
        stop = max(start + 1, last)
        yield slice(start, stop)
        start = stop


def entries_of_rows(rows: Rows) -> Whole:
    """Return the number of entries of each row, (n,): of sparse rows, those that are stored."""
    if isinstance(rows, np.ndarray):
        return np.full(rows.shape[0], rows.shape[1])
    return np.diff(rows.indptr).astype(np.int64)


def entry_blocks(counts: Whole, most: int) -> Iterator[slice]:
    """Yield slices that cover items in order, given their numbers of entries; up to `most` in each, or one item."""
    ends, start = np.cumsum(counts), 0
    while start < len(counts):
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + most, side="right")))
        yield slice(start, stop)
        start = stop


def octets(array: Array) -> memoryview:
    """Return the bytes of an array's numbers in C order, little-endian; not copied if they are stored that way."""
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(-1).view(np.uint8).data


def stored_values(rows: Rows) -> Floats:
    """Return the entries of dense rows, (n, d), or the stored entries of sparse rows, (nnz,), without a copy."""
    return rows if isinstance(rows, np.ndarray) else rows.data


def made_dense(rows: Rows) -> Floats:
    """Return the rows as one dense matrix of their dtype, not copied if they are dense."""
    return rows if isinstance(rows, np.ndarray) else rows.toarray()


def dense(rows: Rows) -> Matrix:
    """Return the rows as one dense float64 matrix, not copied if they are that already."""
    return made_dense(rows).astype(np.float64, copy=False)


def leading_columns(values: Matrix, input_dim: int) -> sparse.csr_array:
    """Return sparse rows (n, input_dim) that begin with the values (n, k), cut to `input_dim`; the rest is 0."""
    values = values[:, :input_dim]
    n, width = values.shape
    columns, ends = np.tile(np.arange(width), n), np.arange(0, n * width + 1, width)
    return sparse.csr_array((values.ravel(), columns, ends), shape=(n, input_dim))


def place_of(rows: PostedRows, entry: int) -> tuple[int, int]:
    """Return the row and the column of entry number `entry`; in sparse rows, only stored entries are counted."""
    if isinstance(rows, np.ndarray):
        row, column = divmod(entry, rows.shape[1])
        return int(row), int(column)
    return int(np.searchsorted(rows.indptr, entry, side="right")) - 1, int(rows.indices[entry])


def largest_by_row(rows: Rows) -> Floats:
    """Return the largest absolute entry of each row, (n,)."""
    if isinstance(rows, np.ndarray):
        found: Floats = np.maximum(np.abs(rows.max(axis=1)), np.abs(rows.min(axis=1)))
        return found
    return abs(rows).max(axis=1).toarray().reshape(-1)


def name_rows(numbers: Whole) -> str:
    """Return row numbers as text for an error message: the first ten."""
    return ", ".join(str(number) for number in numbers[:10]) + (", …" if numbers.size > 10 else "")


def largest(rows: Rows) -> float:
    """Return the largest absolute entry, 0 if there are no entries; allocates no memory of the rows' size."""
    values = stored_values(rows)
    return float(max(values.max(), -values.min())) if values.size else 0.0


def _find_inexact(whole: Array, dtype: np.dtype[Any]) -> int | None:
    """Return the index, in C order, of the first whole number that a dtype rounds; None if there is none."""
    digits = np.finfo(dtype).nmant + 1
    if not whole.size or (-(1 << digits) <= int(whole.min()) and int(whole.max()) <= 1 << digits):
        return None
    size = np.where(whole < 0, 0 - whole.astype(np.uint64), whole.astype(np.uint64))  # right for the least, too
    # A number is held exactly if it fits into the dtype's digits without its trailing binary zeros.
    rounded = np.flatnonzero(size // np.maximum(size & (0 - size), 1) >> np.uint64(digits))
    return int(rounded[0]) if rounded.size else None


def _check_exact(rows: Array, dtype: np.dtype[Any], pointer: str) -> None:
    """Raise InvalidInput that names the first whole number that the dtype would round, if there is one."""
    rounded = _find_inexact(rows, dtype)
    if rounded is not None:
        row, column = divmod(rounded, rows.shape[1])
        detail = f"row {row}, column {column} is {rows[row, column]}, which {dtype} would round"
        raise InvalidInput(detail, f"{pointer}/{row}/{column}")


def _refuse_entry(rows: Rows, is_odd: NDArray[np.bool_], complaint: str, pointer: str, first_row: int = 0) -> NoReturn:
    """Raise InvalidInput that names row and column of the first entry for which `is_odd` is true."""
    row, column = place_of(rows, int(np.argmax(is_odd)))
    row += first_row
    raise InvalidInput(f"row {row}, column {column} {complaint}", f"{pointer}/{row}/{column}")


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
    rows_bytes: int = 0
    """Bytes of the request's rows, which are held until the last block is made."""
    shared: Mapping[int, int] = field(default_factory=dict)
    """Bytes of a map and of a dataset's rows, held as long, by their identities: several answers may share them."""

    @property
    def nbytes(self) -> int:
        """Size of the whole array in bytes."""
        return prod(self.shape) * self.dtype.itemsize

    @property
    def held_bytes(self) -> int:
        """Bytes of the rows, and of the largest block twice: one waits to be sent while the next is computed."""
        longest = max((block.stop - block.start for block in self.blocks), default=0)
        return self.rows_bytes + 2 * longest * prod(self.shape[1:]) * self.dtype.itemsize

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


# Positions of rows among the entries of sparse rows that are computed at a time.
_POSITIONS_PER_BLOCK = 1 << 20


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

    def indptr(self) -> RowBlocks:
        """Return the positions at which the indices of each row begin and end, as in CSR, (n + 1,)."""

        def make(block: slice) -> Array:
            found = np.full(block.stop - block.start, np.count_nonzero(self.has_ones[: block.start]))
            found[1:] += np.cumsum(self.has_ones[block.start : block.stop - 1])
            return found * self.columns.shape[1]

        n = len(self.has_ones) + 1
        return RowBlocks((n,), np.dtype(np.int64), [*row_blocks(n, _POSITIONS_PER_BLOCK)], make)

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


def shared_by(answer: Answer) -> dict[int, int]:
    """Return the bytes of maps and datasets that an answer holds while it is sent, by their identities."""
    return {key: nbytes for one in _parts(answer) if isinstance(one, RowBlocks) for key, nbytes in one.shared.items()}


def held_bytes(answer: Answer) -> int:
    """Return the memory in bytes that an answer takes while it is sent."""
    return sum(one.held_bytes if isinstance(one, RowBlocks) else one.nbytes for one in _parts(answer))


def _parts(answer: Answer) -> Iterator[Array | RowBlocks | Ids]:
    for one in answer.values():
        yield from (one.columns, one.has_ones) if isinstance(one, OneHot) else [one]


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


Compressed = tuple[Matrix, Whole, Whole]
"""Parts of a sparse matrix, by row or by column: values, indices, and where each row or column begins and ends."""


def csr_parts(rows: sparse.csr_array | sparse.csc_array, indices: Array | None = None) -> Compressed:
    """Return copies of the parts of a sparse matrix, in the dtypes of compiled loops; with other indices, if given."""
    indices = rows.indices if indices is None else indices
    return rows.data.astype(np.float64), indices.astype(np.int64), rows.indptr.astype(np.int64)


def row_numbers(rows: sparse.csr_array) -> NDArray[np.intp]:
    """Return the row number of each stored entry, (nnz,), increasing."""
    return np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))


def divide_columns(rows: Rows, divisors: Matrix) -> None:
    """Divide rows (n, d) in place by one number, (), or by one number per column, (d,)."""
    if isinstance(rows, np.ndarray):
        rows /= divisors
    else:
        rows.data /= divisors[rows.indices] if divisors.ndim else divisors


def in_own_columns(rows: sparse.csr_array) -> tuple[NDArray[np.integer], sparse.csr_array]:
    """Return the columns in which sparse rows have entries, increasing, and the rows restricted to them, in float64.

    Memory that grows with the number of columns is then not spent on unused ones, of which there may be 2³¹.
    """
    columns, numbers = np.unique(rows.indices, return_inverse=True)
    parts = rows.data.astype(np.float64), numbers, rows.indptr
    return columns, sparse.csr_array(parts, shape=(rows.shape[0], len(columns)))


def number_columns(rows: sparse.csr_array, columns: NDArray[np.integer]) -> Whole:
    """Return the place of each entry's column among `columns`, which are increasing; their number if it has none."""
    places = np.searchsorted(columns, rows.indices)
    is_there = places < len(columns)
    is_there[is_there] = columns[places[is_there]] == rows.indices[is_there]
    places[~is_there] = len(columns)
    return places


def split_off(rows: Rows, column: int) -> tuple[Rows, Rows]:
    """Return a column of rows (n, d), as (n, 1), and the other columns.

    The memory for sparse rows does not grow with d.
    """
    if isinstance(rows, np.ndarray):
        return rows[:, [column]], np.delete(rows, column, axis=1)
    n, d = rows.shape
    here, numbers = rows.indices == column, row_numbers(rows)
    ends = [np.concatenate([[0], np.cumsum(np.bincount(numbers[of], minlength=n))]) for of in (here, ~here)]
    others = rows.indices[~here] - (rows.indices[~here] > column)
    alone = sparse.csr_array((rows.data[here], np.zeros(here.sum(), np.intp), ends[0]), shape=(n, 1))
    return alone, sparse.csr_array((rows.data[~here], others, ends[1]), shape=(n, d - 1))


def of_columns(rows: sparse.csr_array, columns: NDArray[np.integer]) -> sparse.csr_array:
    """Return sparse rows in float64, restricted to these columns, which are increasing and renumbered from 0."""
    places = number_columns(rows, columns)
    is_kept = places < len(columns)
    ends = np.concatenate([[0], np.cumsum(is_kept)])[rows.indptr]
    values = rows.data[is_kept].astype(np.float64)
    return sparse.csr_array((values, places[is_kept], ends), shape=(rows.shape[0], len(columns)))


def own_bytes(rows: Rows) -> int:
    """Return the bytes of rows of one request alone; 0 for those of a dataset in the cache, which are read-only."""
    return sum(array.nbytes for array in _arrays_of(rows) if array.flags.writeable)


def shared_bytes(rows: Rows) -> dict[int, int]:
    """Return the bytes of rows of a dataset, by the identity of the arrays that they are part of."""
    found: dict[int, int] = {}
    for array in _arrays_of(rows):
        whole = array if array.base is None else array.base
        if not array.flags.writeable:
            found[id(whole)] = getattr(whole, "nbytes", array.nbytes)
    return found


def _arrays_of(rows: Rows) -> list[NDArray[Any]]:
    return [rows] if isinstance(rows, np.ndarray) else [rows.data, rows.indices, rows.indptr]


def count_entries(rows: Rows) -> int:
    """Return the number of entries that the rows have in sparse form: of dense rows, those that are not 0."""
    return int(np.count_nonzero(rows) if isinstance(rows, np.ndarray) else rows.nnz)
