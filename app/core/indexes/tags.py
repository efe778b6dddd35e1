"""Tags of vectors. An index keeps a mark of each, by which vectors are chosen."""

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np

from app.core.errors import InvalidInput
from app.core.ids import MAX_ID_BYTES

UNTAGGED = bytes(8)
"""The mark of vectors without a tag."""


def mark(tag: object, pointer: str) -> bytes:
    """The mark of a tag, eight bytes; of no tag, None or "", `UNTAGGED`. InvalidInput for what is no tag.

    Two tags have the same mark with probability 2⁻⁶⁴.
    """
    if tag is None or tag == "":
        return UNTAGGED
    if not isinstance(tag, str):
        raise InvalidInput("a tag is a string, or null", pointer)
    try:
        text = tag.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput("the tag is no text: it has half of a surrogate pair", pointer) from error
    if len(text) > MAX_ID_BYTES:
        raise InvalidInput(f"the tag has {len(text)} bytes; {MAX_ID_BYTES} are the most", pointer)
    return blake2b(text, digest_size=8, person=b"bochner tag").digest()


def marks(tags: Sequence[object], pointer: str) -> list[bytes]:
    """The marks of tags."""
    return [mark(tag, f"{pointer}/{i}") for i, tag in enumerate(tags)]


def number(marked: bytes) -> np.uint64:
    """A mark as images hold it."""
    return np.uint64(int.from_bytes(marked, "little"))
