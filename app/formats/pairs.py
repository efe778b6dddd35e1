"""What x and y of a similarity are, in whatever format they came: vectors or codes."""

from collections.abc import Callable
from enum import StrEnum

import numpy as np

from app.core.arrays import Array
from app.core.errors import InvalidInput, InvalidOption
from app.core.hashing.encodings import Codes, Encoder, Encoding
from app.core.hashing.row_samples import refuse_unsampled
from app.core.maps import FeatureMap
from app.formats.base import Body, Posted


class InputKind(StrEnum):
    """What x and y of a similarity are."""

    vectors = "vectors"
    codes = "codes"


Pairs = tuple[Encoder, Posted | tuple[Codes, Codes]]
"""How codes are written that came or that are to be compared; and x and y: rows, or two arrays of codes."""
ReadPairs = Callable[[Body, FeatureMap, Encoder | None, InputKind | None], Pairs]
"""Reads x and y, row i of which go together, from the body of a request about a map, which gives codes.

It is told how x and y are written, or, for vectors, which codes to compare: without it, vectors are compared by pairs,
and codes are read as pairs if their rows are lists of lists, else as zero_bit. And what x and y are: without it, their
length decides; where codes and vectors have the same length, they are vectors if no encoding was told either, else
InvalidOption is raised.
"""


def checked(read: Array, by: Encoder, sampling: FeatureMap, pointer: str) -> Codes:
    """Codes that were read; InvalidInput for what cannot be codes of this map."""
    refuse_unsampled(read, pointer)
    if read.dtype != np.uint64:  # all of its numbers may be codes
        first, count = by.ends(sampling.n_output, sampling.spec.input_dim)
        index = read[..., 0] if by.encoding is Encoding.pairs else read
        wrong = np.flatnonzero(((index < first) | (index >= first + count)).any(axis=1))
        if wrong.size:
            raise InvalidInput(
                f"row {wrong[0]} has numbers that are no codes of encoding {by.encoding.value}", f"{pointer}/{wrong[0]}"
            )
    return read.astype(np.uint8, copy=False) if by.encoding is Encoding.packed else read


def unclear(by: Encoder, sampling: FeatureMap) -> InvalidOption:
    """The refusal of rows that may be vectors, and may be codes."""
    return InvalidOption(
        f"rows of {sampling.spec.input_dim} numbers came, which vectors of this map and its codes of encoding "
        f"{by.encoding.value} both have; say of=vectors or of=codes",
        "of",
    )
