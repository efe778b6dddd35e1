"""What x and y of a similarity are, in whatever format they came: vectors or codes."""

from collections.abc import Callable
from enum import StrEnum

import numpy as np

from app.core.arrays import Array
from app.core.errors import InvalidInput, InvalidOption
from app.core.hashing.encodings import Codes, Encoder, Encoding
from app.core.hashing.sampling import refuse_unsampled
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

It is told how x and y are written, or, for vectors, which codes to compare: without it, a usual encoder of the map is
taken. And what x and y are: without it, their length decides; where codes and vectors have the same length, they are
vectors if no encoding was told either, else InvalidOption is raised.
"""


def usual(hashing: FeatureMap, depth: int, length: int | None = None) -> Encoder | None:
    """The usual encoder of the map whose rows are so many lists inside each other, and so long, if that is told."""
    for by in hashing.usual_encoders:
        shape = by.row(hashing.n_frequencies, hashing.spec.input_dim)[0]
        if len(shape) == depth and length in (None, shape[0]):
            return by
    return None


def checked(read: Array, by: Encoder, hashing: FeatureMap, pointer: str) -> Codes:
    """Codes that were read; InvalidInput for what cannot be codes of this map."""
    refuse_unsampled(read, pointer)
    if read.dtype != np.uint64:  # all of its numbers may be codes
        first, count = by.ends(hashing.n_frequencies, hashing.spec.input_dim)
        index = read[..., 0] if by.encoding is Encoding.pairs else read
        wrong = np.flatnonzero(((index < first) | (index >= first + count)).any(axis=1))
        if wrong.size:
            raise InvalidInput(
                f"row {wrong[0]} has numbers that are no codes of encoding {by.encoding.value}", f"{pointer}/{wrong[0]}"
            )
    return read.astype(np.uint8, copy=False) if by.encoding is Encoding.packed else read


def unclear(by: Encoder, hashing: FeatureMap) -> InvalidOption:
    """The refusal of rows that may be vectors, and may be codes."""
    return InvalidOption(
        f"rows of {hashing.spec.input_dim} numbers came, which vectors of this map and its codes of encoding "
        f"{by.encoding.value} both have; say of=vectors or of=codes",
        "of",
    )
