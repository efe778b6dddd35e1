"""JSON bodies of similarities: pairs of vectors, or pairs of codes."""

from itertools import chain
from typing import Any

import numpy as np

from app.core.arrays import Array
from app.core.errors import InvalidInput
from app.core.hashing.encodings import Codes, Encoder, Encoding
from app.core.maps import FeatureMap
from app.formats.base import Body
from app.formats.json_body import members, rows_or_reference
from app.formats.json_lists import LongList, called, is_list, parts_of
from app.formats.pairs import InputKind, Pairs, checked, unclear, usual

_INT64 = np.dtype(np.int64)


def pairs(body: Body, hashing: FeatureMap, by: Encoder | None, of: InputKind | None) -> Pairs:
    """Read x and y, see `ReadPairs`."""
    posted = members(body, ["x", "y"])
    if of is None and any(isinstance(rows, dict) and {"dataset", "base64"} & set(rows) for rows in posted.values()):
        of = InputKind.vectors
    first = next(iter(posted["x"]), None) if is_list(posted["x"]) else None
    if by is None:
        recognised = _recognised(first, of, hashing)
        are_codes, by = recognised is not None, recognised or hashing.usual_encoders[0]
    else:
        are_codes = _are_codes(first, by, hashing) if of is None else of is InputKind.codes
    if are_codes:
        x, y = (_posted_codes(posted[k], by, hashing, f"/{k}") for k in ("x", "y"))
        return by, (x, y)
    return by, {k: rows_or_reference(posted[k], hashing.spec.input_dim, f"/{k}") for k in ("x", "y")}


def codes(value: Any, row: tuple[int, ...], dtype: np.dtype[Any], pointer: str) -> Array:
    """Read rows of whole numbers, each of the shape `row`, as int64; as uint64 if the dtype is that."""
    wanted = f"rows of {row[0]} " + ("whole numbers" if len(row) == 1 else "pairs of whole numbers")
    return _whole_numbers(value, row, np.dtype(np.uint64 if dtype == np.uint64 else np.int64), wanted, pointer)


def _whole_numbers(value: Any, item: tuple[int, ...], dtype: np.dtype[Any], wanted: str, pointer: str) -> Array:
    """Read a list whose items have the shape `item`, () for whole numbers; `wanted` says of a refusal what was."""
    if not is_list(value):
        raise InvalidInput(f"{called(value)} came; {wanted} are wanted", pointer)
    found = [np.empty((0, *item), dtype)]
    for _, part in parts_of(value):
        if any(isinstance(one, LongList) for one in part):
            read = np.stack([_whole_numbers(one, item[1:], dtype, wanted, pointer) for one in part])
        else:
            read = _part_of_numbers(part, len(item), dtype, wanted, pointer)
        if len(part):
            if read.shape[1:] != item:
                raise InvalidInput(f"an array of shape {read.shape} came; {wanted} are wanted", pointer)
            found.append(read)
    return np.concatenate(found)


def _part_of_numbers(part: list[Any], depth: int, dtype: np.dtype[Any], wanted: str, pointer: str) -> Array:
    """Read whole numbers from lists, so many inside each other, in one list."""
    numbers: Any = part
    for _ in range(depth):
        if set(map(type, numbers)) - {list}:
            raise InvalidInput(f"something else than lists came; {wanted} are wanted", pointer)
        numbers = list(chain.from_iterable(numbers))
    if set(map(type, numbers)) - {int}:
        raise InvalidInput(f"something else than whole numbers came; {wanted} are wanted", pointer)
    try:
        return np.array(part, dtype)
    except ValueError:
        raise InvalidInput(f"rows of unequal length came; {wanted} are wanted", pointer) from None
    except OverflowError:
        raise InvalidInput(f"a number outside the range of {dtype} came", pointer) from None


def csr_codes(value: dict[str, Any], s: int, n_columns: int, pointer: str) -> Array:
    """Read one-hot rows in CSR form, as `Json` writes them, into rows of s column indices."""
    if set(value) != {"indptr", "indices", "shape"}:
        raise InvalidInput("an object came whose members are not indptr, indices, shape", pointer)
    starts, indices, shape = (
        _whole_numbers(value[k], (), _INT64, "lists of whole numbers", f"{pointer}/{k}")
        for k in ("indptr", "indices", "shape")
    )
    if not starts.size or starts[0] != 0 or starts[-1] != indices.size:
        raise InvalidInput(f"indptr must run from 0 to {indices.size}, the number of indices", f"{pointer}/indptr")
    lengths = np.diff(starts)
    wrong = np.flatnonzero(lengths != s)
    if wrong.size:
        row, came = int(wrong[0]), int(lengths[wrong[0]])
        marked = ": it was marked by on_zero=mark, as a row without a sample, and must be left out" if came == 0 else ""
        raise InvalidInput(f"row {row} has {came} codes, {s} are wanted{marked}", f"{pointer}/indptr/{row}")
    if shape.tolist() != [starts.size - 1, n_columns]:
        raise InvalidInput(f"shape must be [{starts.size - 1}, {n_columns}]", f"{pointer}/shape")
    columns: Array = indices.reshape(-1, s)
    return columns


def _posted_codes(value: Any, by: Encoder, hashing: FeatureMap, pointer: str) -> Codes:
    """Read codes as `/codes` answers them; InvalidInput for what cannot be codes."""
    s, input_dim = hashing.n_frequencies, hashing.spec.input_dim
    shape, dtype = by.row(s, input_dim)
    if by.encoding is Encoding.one_hot and isinstance(value, dict):
        read = csr_codes(value, s, s << by.bits, pointer)
    else:
        read = codes(value, shape, dtype, pointer)
    return checked(read, by, hashing, pointer)


def _recognised(row: Any, of: InputKind | None, hashing: FeatureMap) -> Encoder | None:
    """Guess the encoder of codes from their first row; None for vectors."""
    flat = hashing.usual_encoders[-1]
    if of is InputKind.vectors or not is_list(row) or not len(row):
        return flat if of is InputKind.codes else None
    if is_list(next(iter(row))):
        return usual(hashing, 2) or (flat if of is InputKind.codes else None)
    whole = set(map(type, row)) == {int}
    only_codes = whole and len(row) != hashing.spec.input_dim and usual(hashing, 1, len(row)) is not None
    return flat if only_codes or of is InputKind.codes else None


def _are_codes(row: Any, by: Encoder, hashing: FeatureMap) -> bool:
    """Whether the first row is codes of this encoding, and no vector. Its length decides: 2 and 2.0 mean the same."""
    input_dim = hashing.spec.input_dim
    if not is_list(row) or len(row) != input_dim:
        return not isinstance(row, dict)
    if by.encoding is Encoding.pairs:
        return is_list(next(iter(row)))
    if by.row(hashing.n_frequencies, input_dim)[0] != (input_dim,):
        return False
    raise unclear(by, hashing)
