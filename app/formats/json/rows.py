"""Rows in a JSON body: lists of numbers, objects of indices and values, or the bytes of an array in base64."""

from binascii import Error, a2b_base64
from itertools import chain, pairwise
from math import prod
from operator import itemgetter
from types import NoneType
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from app.core.arrays import Array, PostedRows
from app.core.errors import InvalidInput
from app.formats.json.lists import JsonList, LongList, LongText, describe, is_list, parts_of

# Null stands for a missing number and becomes NaN.
_NUMBER_TYPES = {int, float, NoneType}
_LIST_TYPES = {list, LongList}
_SPARSE_MEMBERS = {"indices", "values"}


def rows(value: Any, width: int | None, pointer: str) -> PostedRows:
    """Read the list of rows at `pointer`, all dense or all sparse, as one float64 matrix.

    Rows have `width` entries. If `width` is None, it is the length of the first row, and sparse rows are refused.
    """
    if not is_list(value):
        raise InvalidInput(f"expected a list of rows, got {describe(value)}", pointer)
    first = next(iter(value), None)
    if isinstance(first, dict):
        if width is None:
            raise InvalidInput("sparse rows do not tell their length: input_dim is missing", "/input_dim")
        return _sparse_rows(value, width, pointer)
    if width is None:
        width = len(first) if isinstance(first, list | LongList) else 0
    return dense(value, width, pointer)


def numbers(value: JsonList, pointer: str) -> Array:
    """Read the list of numbers at `pointer` as a float64 array."""
    found = np.empty(len(value))
    for first, part in parts_of(value):
        if set(map(type, part)) - _NUMBER_TYPES:
            _check_numbers(value, pointer)
        found[first : first + len(part)] = np.fromiter(part, np.float64, len(part))
    return found


def dense(value: JsonList, width: int, pointer: str) -> Array:
    """Read the list of rows at `pointer`, each of `width` numbers, as a float64 matrix."""
    if isinstance(value, list):
        return _dense_part(value, width, pointer, 0)
    # Each row takes at least 2 * width + 1 characters, which bounds the number of rows. Entries that are never written
    # take no memory.
    most = value.nbytes // (2 * width + 1) + 1
    found = np.empty((0, width))
    for first, part in parts_of(value):
        rows = _dense_part(part, width, pointer, first)
        if not first:  # there is a row that is as wide
            found = np.empty((min(len(value), most), width))
        found[first : first + len(part)] = rows
    return found


def _dense_part(part: list[Any], width: int, pointer: str, first: int) -> Array:
    # All rows are checked together: a step of Python per row takes a minute for a large body.
    if not (
        set(map(type, part)) <= _LIST_TYPES
        and set(map(len, part)) <= {width}
        and set(map(type, chain.from_iterable(part))) <= _NUMBER_TYPES
    ):
        _refuse(part, width, pointer, first)
    return np.fromiter(chain.from_iterable(part), np.float64, len(part) * width).reshape(len(part), width)


def _refuse(part: list[Any], width: int, pointer: str, first: int) -> NoReturn:
    """Raise InvalidInput for the first error in rows from number `first` on, not all lists of `width` numbers."""
    for i, row in enumerate(part, first):
        if not is_list(row):
            raise InvalidInput(f"row {i}: expected a list of {width} numbers, got {describe(row)}", f"{pointer}/{i}")
        if len(row) != width:
            raise InvalidInput(f"row {i}: expected {width} entries, got {len(row)}", f"{pointer}/{i}")
        _check_numbers(row, f"{pointer}/{i}")
    raise AssertionError("nothing is wrong with these rows")


def _sparse_rows(value: JsonList, width: int, pointer: str) -> sparse.csr_array:
    parts = [_sparse_part(part, width, pointer, first) for first, part in parts_of(value)]
    lengths, columns, numbers = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return sparse.csr_array((numbers, columns, np.concatenate([[0], np.cumsum(lengths)])), shape=(len(lengths), width))


def _sparse_part(
    part: list[Any], width: int, pointer: str, first: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return the number of entries of each row, and the columns and values of all entries."""
    # All rows are checked together, for the reason given in `_dense_part`.
    if not (set(map(type, part)) <= {dict} and all(row.keys() == _SPARSE_MEMBERS for row in part)):
        _refuse_sparse(part, width, pointer, first)
    indices, values = (list(map(itemgetter(name), part)) for name in ("indices", "values"))
    if not (
        set(map(type, chain(indices, values))) <= _LIST_TYPES
        and set(map(type, chain.from_iterable(indices))) <= {int}
        and set(map(type, chain.from_iterable(values))) <= _NUMBER_TYPES
    ):
        _refuse_sparse(part, width, pointer, first)
    lengths = np.fromiter(map(len, indices), np.int64, len(part))
    ends = np.cumsum(lengths)
    try:
        columns = np.fromiter(chain.from_iterable(indices), np.int64, ends[-1])
    except OverflowError:
        _refuse_sparse(part, width, pointer, first)
    # Each index must be larger than the one before it in its row.
    rises = np.diff(columns, prepend=-1) > 0
    rises[(ends - lengths)[lengths > 0]] = True
    inside = columns.size == 0 or 0 <= columns.min() <= columns.max() < width
    if not (inside and rises.all() and (lengths == np.fromiter(map(len, values), np.int64, len(part))).all()):
        _refuse_sparse(part, width, pointer, first)
    return lengths, columns, np.fromiter(chain.from_iterable(values), np.float64, ends[-1])


def _refuse_sparse(part: list[Any], width: int, pointer: str, first: int) -> NoReturn:
    """Raise InvalidInput for the first error in rows from number `first` on, not all objects of indices and values."""
    for i, row in enumerate(part, first):
        at = f"{pointer}/{i}"
        if not isinstance(row, dict) or row.keys() != _SPARSE_MEMBERS:
            raise InvalidInput(f"row {i} is no object of indices and values, as the rows before it", at)
        index, numbers = row["indices"], row["values"]
        _check_indices(index, width, at)
        if not is_list(numbers):
            raise InvalidInput(f"expected a list of numbers, got {describe(numbers)}", f"{at}/values")
        _check_numbers(numbers, f"{at}/values")
        if len(index) != len(numbers):
            raise InvalidInput(f"row {i} has {len(index)} indices and {len(numbers)} values", at)
    raise AssertionError("nothing is wrong with these rows")


def _check_indices(value: Any, width: int, pointer: str) -> None:
    if not is_list(value) or set(map(type, value)) - {int}:
        raise InvalidInput("indices must be a list of whole numbers", f"{pointer}/indices")
    if len(value) and not 0 <= min(value) <= max(value) < width:
        raise InvalidInput(f"indices must lie from 0 to {width - 1}", f"{pointer}/indices")
    if any(second <= first for first, second in pairwise(value)):
        raise InvalidInput("indices must increase, each standing once", f"{pointer}/indices")


def _check_numbers(value: JsonList, pointer: str) -> None:
    for first, part in parts_of(value):
        if set(map(type, part)) - _NUMBER_TYPES:
            column, number = next((j, one) for j, one in enumerate(part, first) if type(one) not in _NUMBER_TYPES)
            raise InvalidInput(f"expected a number, got {describe(number)}", f"{pointer}/{column}")


MEMBERS = ("base64", "shape", "dtype")
DTYPES = (
    "float16",
    "float32",
    "float64",
    "bool",
    *(f"{sign}int{bits}" for bits in (8, 16, 32, 64) for sign in ("", "u")),
)
# Characters that are decoded at a time, which takes the interpreter a millisecond; four characters are three bytes.
_PART = 1 << 20


def encoded_rows(value: dict[str, Any], pointer: str) -> Array:
    """Read the rows of an object with `base64`, `shape` and `dtype`, which is at `pointer`."""
    for name in MEMBERS:
        if name not in value:
            raise InvalidInput(f"the member {name} is missing beside the others of base64", f"{pointer}/{name}")
    for name in value:
        if name not in MEMBERS:
            raise InvalidInput(f"{name[:80]!r} is no member of rows in base64; they take {', '.join(MEMBERS)}", pointer)
    shape, dtype = _shape(value["shape"], f"{pointer}/shape"), value["dtype"]
    if dtype not in DTYPES:
        came = repr(dtype[:80]) if isinstance(dtype, str) else describe(dtype)
        raise InvalidInput(f"expected one of {', '.join(DTYPES)}, little-endian, got {came}", f"{pointer}/dtype")
    numbers = np.dtype(dtype).newbyteorder("<")
    content = _decode(value["base64"], f"{pointer}/base64")
    if len(content) != prod(shape) * numbers.itemsize:
        wanted = f"{prod(shape) * numbers.itemsize} bytes for shape {list(shape)} of {dtype}"
        raise InvalidInput(f"expected {wanted}, got {len(content)} in base64", f"{pointer}/base64")
    array = np.frombuffer(content, numbers).reshape(shape)
    array.flags.writeable = False
    return array


def _shape(value: Any, pointer: str) -> tuple[int, int]:
    numbers = list(value)[:3] if not isinstance(value, dict | str) and hasattr(value, "__iter__") else []
    if len(numbers) != 2 or any(type(one) is not int or not 0 <= one < 1 << 31 for one in numbers):
        raise InvalidInput("expected [rows, entries of a row], got something else", pointer)
    return numbers[0], numbers[1]


def _decode(value: Any, pointer: str) -> bytearray:
    """Decode a base64 string to bytes."""
    if not isinstance(value, str | LongText):
        raise InvalidInput(f"expected a string of base64, got {describe(value)}", pointer)
    try:
        text = memoryview(value.encode("ascii")) if isinstance(value, str) else value.characters()
        if len(text) % 4:
            raise Error(f"expected a multiple of four characters, got {len(text)}")
        content, at = bytearray(len(text) // 4 * 3), 0
        for start in range(0, len(text), _PART):
            part = a2b_base64(text[start : start + _PART], strict_mode=True)
            if len(part) != _PART // 4 * 3 and start + _PART < len(text):
                raise Error("padding stands before the end")
            content[at : at + len(part)] = part
            at += len(part)
    except (Error, UnicodeEncodeError) as error:
        raise InvalidInput(f"this is no base64: {str(error)[:200]}", pointer) from error
    del content[at:]
    return content
