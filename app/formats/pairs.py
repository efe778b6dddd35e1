"""Bodies of similarity requests in JSON and in .npz: pairs of vectors, or pairs of codes."""

from collections.abc import Callable
from enum import StrEnum
from itertools import chain
from typing import Any

import numpy as np

from app.core.arrays import Array
from app.core.errors import InvalidInput, InvalidOption
from app.core.hashing.encodings import Codes, Encoder, Encoding
from app.core.hashing.sampling import check_sampled_rows
from app.core.maps import FeatureMap
from app.formats.base import Body, Posted
from app.formats.json.body import members, rows_or_reference
from app.formats.json.lists import LongList, describe, is_list, parts_of
from app.formats.npz import members as arrays_of


class InputKind(StrEnum):
    """Whether x and y of a similarity are vectors or codes."""

    vectors = "vectors"
    codes = "codes"


Pairs = tuple[Encoder, Posted | tuple[Codes, Codes]]
"""Encoder of the codes that were sent or are to be compared; and x and y, as rows or as two arrays of codes."""
ReadPairs = Callable[[Body, FeatureMap, Encoder | None, InputKind | None], Pairs]
"""Reads x and y from the body of a request about a map that produces codes; row i of x and row i of y are a pair.

The encoder is that of the codes in x and y or, for vectors, of the codes to compare; if it is None, a usual encoder of
the map is used. The input kind says whether x and y are vectors or codes; if it is None, their length decides. If codes
and vectors have the same length, x and y are vectors if no encoder was given either; otherwise InvalidOption is raised.
"""


def usual(hashing: FeatureMap, depth: int, length: int | None = None) -> Encoder | None:
    """Return the map's usual encoder of rows with `depth` axes, of `length` entries if given; None if there is none."""
    for by in hashing.usual_encoders:
        shape = by.row(hashing.n_frequencies, hashing.spec.input_dim)[0]
        if len(shape) == depth and length in (None, shape[0]):
            return by
    return None


def check_codes(read: Array, by: Encoder, hashing: FeatureMap, pointer: str) -> Codes:
    """Return codes that were read; raise InvalidInput for numbers that cannot be codes of this map."""
    check_sampled_rows(read, pointer)
    if read.dtype != np.uint64:  # every uint64 number may be a code
        first, count = by.ends(hashing.n_frequencies, hashing.spec.input_dim)
        index = read[..., 0] if by.encoding is Encoding.pairs else read
        wrong = np.flatnonzero(((index < first) | (index >= first + count)).any(axis=1))
        if wrong.size:
            raise InvalidInput(
                f"row {wrong[0]} has numbers that are no {by.encoding.value} codes", f"{pointer}/{wrong[0]}"
            )
    return read.astype(np.uint8, copy=False) if by.encoding is Encoding.packed else read


def refuse_unclear(by: Encoder, hashing: FeatureMap) -> None:
    """Raise InvalidOption for rows as long as a vector, if codes of this encoding have that length too."""
    input_dim = hashing.spec.input_dim
    if by.row(hashing.n_frequencies, input_dim)[0] == (input_dim,):
        raise InvalidOption(
            f"rows of {input_dim} numbers may be vectors or {by.encoding.value} codes: say of=vectors or of=codes", "of"
        )


def json_pairs(body: Body, hashing: FeatureMap, by: Encoder | None, of: InputKind | None) -> Pairs:
    """Read x and y, see `ReadPairs`."""
    posted = members(body, ["x", "y"])
    if of is None and any(isinstance(rows, dict) and {"dataset", "base64"} & set(rows) for rows in posted.values()):
        of = InputKind.vectors
    first = next(iter(posted["x"]), None) if is_list(posted["x"]) else None
    if by is None:
        recognised = _guess_encoder(first, of, hashing)
        are_codes, by = recognised is not None, recognised or hashing.usual_encoders[0]
    else:
        are_codes = _are_listed_codes(first, by, hashing) if of is None else of is InputKind.codes
    if are_codes:
        x, y = (_posted_codes(posted[k], by, hashing, f"/{k}") for k in ("x", "y"))
        return by, (x, y)
    return by, {k: rows_or_reference(posted[k], hashing.spec.input_dim, f"/{k}") for k in ("x", "y")}


def codes(value: Any, row: tuple[int, ...], dtype: np.dtype[Any], pointer: str) -> Array:
    """Read rows of whole numbers, each of the shape `row`, as int64, or as uint64 if `dtype` is uint64."""
    wanted = f"rows of {row[0]} " + ("whole numbers" if len(row) == 1 else "pairs of whole numbers")
    return _whole_numbers(value, row, np.dtype(np.uint64 if dtype == np.uint64 else np.int64), wanted, pointer)


def _whole_numbers(value: Any, item: tuple[int, ...], dtype: np.dtype[Any], wanted: str, pointer: str) -> Array:
    """Read a list whose items have the shape `item`, () for whole numbers; errors say that `wanted` was expected."""
    if not is_list(value):
        raise InvalidInput(f"expected {wanted}, got {describe(value)}", pointer)
    found = [np.empty((0, *item), dtype)]
    for _, part in parts_of(value):
        if any(isinstance(one, LongList) for one in part):
            if not item:
                raise InvalidInput(f"expected {wanted}, got lists in their place", pointer)
            rows = [_whole_numbers(one, item[1:], dtype, wanted, pointer) for one in part]
            if unlike := [one.shape for one in rows if one.shape != item]:
                raise InvalidInput(f"expected {wanted}, got an array of shape {unlike[0]}", pointer)
            read = np.stack(rows)
        else:
            read = _part_of_numbers(part, len(item), dtype, wanted, pointer)
        if len(part):
            if read.shape[1:] != item:
                raise InvalidInput(f"expected {wanted}, got an array of shape {read.shape}", pointer)
            found.append(read)
    return np.concatenate(found)


def _part_of_numbers(part: list[Any], depth: int, dtype: np.dtype[Any], wanted: str, pointer: str) -> Array:
    """Read whole numbers from a list nested to the given depth."""
    numbers: Any = part
    for _ in range(depth):
        if set(map(type, numbers)) - {list}:
            raise InvalidInput(f"expected {wanted}, got something else than lists", pointer)
        numbers = list(chain.from_iterable(numbers))
    if set(map(type, numbers)) - {int}:
        raise InvalidInput(f"expected {wanted}, got something else than whole numbers", pointer)
    try:
        return np.array(part, dtype)
    except ValueError:
        raise InvalidInput(f"expected {wanted}, got rows of unequal length", pointer) from None
    except OverflowError:
        raise InvalidInput(f"expected numbers in the range of {dtype}", pointer) from None


def csr_codes(value: dict[str, Any], s: int, n_columns: int, pointer: str) -> Array:
    """Read one-hot rows in CSR form, as `Json` writes them, as rows of s column indices."""
    if set(value) != {"indptr", "indices", "shape"}:
        raise InvalidInput("expected an object with members indptr, indices and shape", pointer)
    starts, indices, shape = (
        _whole_numbers(value[k], (), np.dtype(np.int64), "lists of whole numbers", f"{pointer}/{k}")
        for k in ("indptr", "indices", "shape")
    )
    if not starts.size or starts[0] != 0 or starts[-1] != indices.size:
        raise InvalidInput(f"indptr must run from 0 to {indices.size}, the number of indices", f"{pointer}/indptr")
    lengths = np.diff(starts)
    wrong = np.flatnonzero(lengths != s)
    if wrong.size:
        row, came = int(wrong[0]), int(lengths[wrong[0]])
        marked = ": it was marked by on_zero=mark, as a row without a sample, and must be left out" if came == 0 else ""
        raise InvalidInput(f"expected {s} codes in row {row}, got {came}{marked}", f"{pointer}/indptr/{row}")
    if shape.tolist() != [starts.size - 1, n_columns]:
        raise InvalidInput(f"shape must be [{starts.size - 1}, {n_columns}]", f"{pointer}/shape")
    columns: Array = indices.reshape(-1, s)
    return columns


def _posted_codes(value: Any, by: Encoder, hashing: FeatureMap, pointer: str) -> Codes:
    """Read codes in the form in which `/codes` returns them; raise InvalidInput for values that cannot be codes."""
    s, input_dim = hashing.n_frequencies, hashing.spec.input_dim
    shape, dtype = by.row(s, input_dim)
    if by.encoding is Encoding.one_hot and isinstance(value, dict):
        read = csr_codes(value, s, s << by.bits, pointer)
    else:
        read = codes(value, shape, dtype, pointer)
    return check_codes(read, by, hashing, pointer)


def _guess_encoder(row: Any, of: InputKind | None, hashing: FeatureMap) -> Encoder | None:
    """Guess the encoder of codes from their first row; return None for vectors."""
    flat = hashing.usual_encoders[-1]
    if of is InputKind.vectors or not is_list(row) or not len(row):
        return flat if of is InputKind.codes else None
    if is_list(next(iter(row))):
        return usual(hashing, 2) or (flat if of is InputKind.codes else None)
    whole = set(map(type, row)) == {int}
    only_codes = whole and len(row) != hashing.spec.input_dim and usual(hashing, 1, len(row)) is not None
    return flat if only_codes or of is InputKind.codes else None


def _are_listed_codes(row: Any, by: Encoder, hashing: FeatureMap) -> bool:
    """Whether the first row is codes of this encoding, not a vector. Its length decides, as 2 and 2.0 mean the same."""
    input_dim = hashing.spec.input_dim
    if not is_list(row) or len(row) != input_dim:
        return not isinstance(row, dict)
    if by.encoding is Encoding.pairs:
        return is_list(next(iter(row)))
    refuse_unclear(by, hashing)
    return False


def npz_pairs(body: Body, hashing: FeatureMap, by: Encoder | None, of: InputKind | None) -> Pairs:
    """Read x and y, see `ReadPairs`."""
    posted = arrays_of(body, ["x", "y"])
    are_codes = _are_codes(posted["x"], by, hashing) if of is None else of is InputKind.codes
    if not are_codes:
        return by or hashing.usual_encoders[0], {**posted}
    by = by or usual(hashing, posted["x"].ndim - 1) or hashing.usual_encoders[-1]
    return by, (_array_of_codes(posted["x"], by, hashing, "/x"), _array_of_codes(posted["y"], by, hashing, "/y"))


def _are_codes(x: Array, by: Encoder | None, hashing: FeatureMap) -> bool:
    """Whether an array holds codes, not vectors: fractions are vectors, pairs are codes, else the length decides."""
    if x.dtype.kind not in "iu" or x.ndim not in (2, 3):
        return False
    input_dim = hashing.spec.input_dim
    if x.ndim == 3 or x.shape[1] != input_dim:
        return by is not None or usual(hashing, x.ndim - 1, None if x.ndim == 3 else x.shape[1]) is not None
    if by is not None:
        refuse_unclear(by, hashing)
    return False


def _array_of_codes(came: Array, by: Encoder, hashing: FeatureMap, pointer: str) -> Codes:
    row, dtype = by.row(hashing.n_frequencies, hashing.spec.input_dim)
    if came.dtype.kind not in "iu" or came.shape[1:] != row:
        wanted = f"whole numbers of shape (rows, {', '.join(map(str, row))})"
        raise InvalidInput(f"expected {wanted}, got an array of {came.dtype} and shape {came.shape}", pointer)
    # Numbers of fewer bits keep their dtype: eight bytes each would take much more memory than the request.
    if np.uint64 in (dtype, came.dtype):
        wide = np.dtype(np.uint64 if dtype == np.uint64 else np.int64)
        ends = np.iinfo(wide)
        if came.size and not ends.min <= int(came.min()) <= int(came.max()) <= ends.max:
            raise InvalidInput(f"expected numbers in the range of {wide}", pointer)
        came = came.astype(wide)
    return check_codes(came, by, hashing, pointer)
