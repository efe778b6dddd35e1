"""Ids of rows: whole numbers or strings that are posted with rows and stored and returned with them."""

import codecs
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Array, PostedRows, Whole
from app.core.errors import InvalidInput

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
        starts = np.concatenate([[0], self.ends[:-1]]).astype(np.int64)[: len(self)]
        if isinstance(rows, slice):
            starts, ends = starts[rows], self.ends[rows]
            first, last = (int(starts[0]), int(ends[-1])) if len(ends) else (0, 0)
            return TextIds(ends - first, self.text[first:last])
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
