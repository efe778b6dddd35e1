"""Ids and tags of vectors as an index stores them.

Ids are whole numbers or strings; the first byte of a stored id tells which. Beside its codes, a vector has the mark of
its tags: a hash of them, by which vectors are selected.
"""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b

import numpy as np
import orjson
from numpy.typing import NDArray
from scipy import sparse

from app.core.arrays import MAX_ID_BYTES, Floats, Rows
from app.core.compiled import jit
from app.core.errors import InvalidInput
from app.core.indexes.options import MOST_TAGS, Filter

_NUMBER, _STRING = b"i", b"s"
_LEAST, _MOST = -(1 << 63), (1 << 64) - 1
# At the end of a URL these name another resource: clients resolve them before they send a request.
_STEPS = (".", "..")
_WANTED = "an id that is a whole number from -2^63 to 2^64 - 1, or a string"


def encode_id(vector_id: object, pointer: str) -> bytes:
    """Encode an id for storage; InvalidInput for an invalid id."""
    if type(vector_id) is int:
        if not _LEAST <= vector_id <= _MOST:
            raise InvalidInput(f"expected {_WANTED}, got {str(vector_id)[:80]}", pointer)
        return b"%b%d" % (_NUMBER, vector_id)
    if not isinstance(vector_id, str):
        came = str(vector_id) if isinstance(vector_id, float) else "something else"
        raise InvalidInput(f"expected {_WANTED}, got {came}", pointer)
    if vector_id in _STEPS:
        raise InvalidInput(f"the id {vector_id!r} cannot stand at the end of an address", pointer)
    text = _encode_text(vector_id, "id", pointer)
    if not 1 <= len(text) <= MAX_ID_BYTES:
        raise InvalidInput(f"the id has {len(text)} bytes; a string of 1 to {MAX_ID_BYTES} is an id", pointer)
    return _STRING + text


def _encode_text(text: str, called: str, pointer: str) -> bytes:
    """Encode the text in UTF-8; InvalidInput if that is impossible."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(f"the {called} is no text: it has half of a surrogate pair", pointer) from error


def read(kept: bytes, as_text: bool = False) -> int | str:
    """Decode a stored id; with `as_text`, a whole number to its digits."""
    return int(kept[1:]) if kept.startswith(_NUMBER) and not as_text else kept[1:].decode()


def encode_ids(ids: Sequence[object], pointer: str) -> list[bytes]:
    """Encode ids for storage; InvalidInput for an invalid id, or one that occurs twice."""
    found = [encode_id(one, f"{pointer}/{i}") for i, one in enumerate(ids)]
    check_different(found, pointer)
    return found


def check_different(ids: Sequence[bytes], pointer: str) -> None:
    """Raise InvalidInput if an id occurs twice."""
    first: dict[bytes, int] = {}
    for i, one in enumerate(ids):
        if (before := first.setdefault(one, i)) != i:
            detail = f"rows {before} and {i} have the same id {read(one)!r:.80}; each comes once in a batch"
            raise InvalidInput(detail, f"{pointer}/{i}")


def at(block: bytes, place: int) -> bytes:
    """Return the id at a place of a block, which must exist; in a block, each id follows its length in two bytes."""
    start = _start(np.frombuffer(block, np.uint8), place)
    return block[start + 2 : start + 2 + int.from_bytes(block[start : start + 2], "little")]


def every(block: bytes) -> Iterator[bytes]:
    """Yield the ids of a block."""
    start = 0
    while start < len(block):
        end = start + 2 + int.from_bytes(block[start : start + 2], "little")
        yield block[start + 2 : end]
        start = end


def count(block: bytes) -> int:
    """Count the ids of a block; −1 if it is malformed."""
    return int(_count(np.frombuffer(block, np.uint8)))


@jit
def _count(block: NDArray[np.uint8]) -> int:
    start, found = 0, 0
    while start + 2 <= len(block):
        start += 2 + block[start] + 256 * block[start + 1]
        found += 1
    return found if start == len(block) else -1


@jit
def _start(block: NDArray[np.uint8], place: int) -> int:
    """Return where the id at a place of a read-only block begins, with its length."""
    start = 0
    for _ in range(place):
        start += 2 + block[start] + 256 * block[start + 1]
    return start


UNTAGGED = bytes(8)
"""Mark of vectors without a tag."""


def encode_tags(tags: object, pointer: str) -> tuple[bytes, bytes]:
    """Return the mark of a vector's tags, eight bytes, and the tags as a JSON list, sorted; InvalidInput for bad ones.

    A string is one tag; None, "" and an empty list are none. Two sets have the same mark with probability 2⁻⁶⁴.
    """
    every = [] if tags is None or tags == "" else [tags] if isinstance(tags, str) else tags
    if not isinstance(every, Sequence):
        raise InvalidInput("the tags of a vector are a string, a list of strings, or null", pointer)
    if len(every) > MOST_TAGS:
        raise InvalidInput(f"a vector has at most {MOST_TAGS} tags, got {len(every)}", pointer)
    texts = sorted({_encode_tag(one, pointer) for one in every})
    return _mark(texts), orjson.dumps([text.decode() for text in texts])


def _encode_tag(tag: object, pointer: str) -> bytes:
    if not isinstance(tag, str) or not tag:
        raise InvalidInput("a tag is a string of at least one character", pointer)
    text = _encode_text(tag, "tag", pointer)
    if len(text) > MAX_ID_BYTES:
        raise InvalidInput(f"the tag has {len(text)} bytes; {MAX_ID_BYTES} are the most", pointer)
    return text


def _mark(texts: Sequence[bytes]) -> bytes:
    if len(texts) == 1:
        return blake2b(texts[0], digest_size=8, person=b"bochner tag").digest()
    joined = b"".join(len(text).to_bytes(2, "little") + text for text in texts)
    return blake2b(joined, digest_size=8, person=b"bochner tags").digest() if texts else UNTAGGED


def number(mark: bytes) -> int:
    """Return a mark as a number, as in snapshots (`Image`)."""
    return int.from_bytes(mark, "little")


def fitting(marks: NDArray[np.uint64], sets: Mapping[int, bytes], wanted: Filter) -> NDArray[np.bool_]:
    """Return which vectors with these marks, (n,), have tags that fit a filter.

    `sets` has tags as JSON lists, by mark. A vector with another mark has one tag, which an earlier version has stored
    by its mark alone: it is compared with the tags of the filter.
    """
    needed, some, refused = (frozenset(tags) for tags in (wanted.all, wanted.any, wanted.none))

    def fits(tags: Sequence[str]) -> bool:
        has_needed = not needed or needed.issubset(tags)
        return has_needed and (not some or not some.isdisjoint(tags)) and refused.isdisjoint(tags)

    single = {number(encode_tags(tag, "/filter")[0]): [tag] for tag in needed | some | refused} | {0: list[str]()}
    unknown_fits = not needed and not some
    others = [mark for mark, tags in single.items() if mark not in sets and fits(tags) != unknown_fits]
    others += [mark for mark, text in sets.items() if fits(orjson.loads(text)) != unknown_fits]
    return np.isin(marks, np.array(others, np.uint64), invert=unknown_fits)


# The first byte of a stored row says whether it is dense or sparse, and its dtype.
_DTYPES = (np.dtype("<f4"), np.dtype("<f8"))
_DENSE, _SPARSE = 0, 2
_INDEX = np.dtype("<u4")


def pack_rows(rows: Rows) -> list[bytes]:
    """Encode rows for storage, each separately."""
    n = rows.shape[0]
    if isinstance(rows, np.ndarray):
        return [_pack_values(_DENSE, rows[i]) for i in range(n)]
    every = (slice(rows.indptr[i], rows.indptr[i + 1]) for i in range(n))
    return [_pack_values(_SPARSE, rows.data[one]) + rows.indices[one].astype(_INDEX).tobytes() for one in every]


def is_sparse(stored: bytes) -> bool:
    """Return whether a stored row is sparse."""
    return stored[:1] >= bytes([_SPARSE])


def unpack_rows(stored: Sequence[bytes], input_dim: int) -> Rows:
    """Decode stored rows, all dense or all sparse, to float64.

    Raises:
        ValueError, IndexError: a stored row is malformed.
    """
    if is_sparse(stored[0]):
        parts = [_sparse(one) for one in stored]
        ends = np.cumsum([0, *(len(indices) for indices, _ in parts)])
        values, indices = (np.concatenate([part[k] for part in parts]) for k in (1, 0))
        if indices.size and indices.max() >= input_dim:
            raise ValueError(f"a row has an entry {indices.max()}; its map takes {input_dim}")
        return sparse.csr_array((values, indices, ends), shape=(len(stored), input_dim))
    found = np.empty((len(stored), input_dim))
    for i, one in enumerate(stored):
        found[i] = np.frombuffer(one, _DTYPES[one[0]], input_dim, 1)
    return found


def _pack_values(form: int, values: Floats) -> bytes:
    with np.errstate(over="ignore"):  # a value that overflows is unequal, and kept wide
        narrow = values.astype(_DTYPES[0])
    is_wide = not np.array_equal(narrow, values)
    return bytes([form + is_wide]) + (values.astype(_DTYPES[1]) if is_wide else narrow).tobytes()


def _sparse(stored: bytes) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the indices and values of a stored row."""
    form, dtype = stored[0] & ~1, _DTYPES[stored[0] & 1]
    n, more = divmod(len(stored) - 1, dtype.itemsize + _INDEX.itemsize)
    if more or form != _SPARSE:
        raise ValueError(f"a row of {len(stored)} bytes is none")
    values = np.frombuffer(stored, dtype, n, 1)
    indices = np.frombuffer(stored, _INDEX, n, 1 + n * dtype.itemsize)
    return indices.astype(np.int64), values.astype(np.float64)
