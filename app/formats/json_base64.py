"""Rows in a JSON body that are numbers as they lie in memory, in base64."""

from binascii import Error, a2b_base64
from math import prod
from typing import Any

import numpy as np

from app.core.arrays import Array
from app.core.errors import InvalidInput
from app.formats.json_lists import LongText, called

MEMBERS = ("base64", "shape", "dtype")
DTYPES = ("float32", "float64", *(f"{sign}int{bits}" for bits in (8, 16, 32, 64) for sign in ("", "u")))
# Characters that are read at a time, a millisecond of the interpreter; four of them are three bytes.
_PART = 1 << 20


def encoded_rows(value: dict[str, Any], pointer: str) -> Array:
    """The rows of an object that has `base64`, `shape` and `dtype`, and stands at a pointer."""
    for name in MEMBERS:
        if name not in value:
            raise InvalidInput(f"the member {name} is missing beside the others of base64", f"{pointer}/{name}")
    for name in value:
        if name not in MEMBERS:
            detail = f"{name[:80]!r} is no member of rows in base64; they take {', '.join(MEMBERS)}"
            raise InvalidInput(detail, pointer)
    shape, dtype = _shape(value["shape"], f"{pointer}/shape"), value["dtype"]
    if dtype not in DTYPES:
        came = repr(dtype[:80]) if isinstance(dtype, str) else called(dtype)
        raise InvalidInput(f"{came} came; one of {', '.join(DTYPES)} is wanted, little-endian", f"{pointer}/dtype")
    numbers = np.dtype(dtype).newbyteorder("<")
    content = _decoded(value["base64"], f"{pointer}/base64")
    if len(content) != prod(shape) * numbers.itemsize:
        wanted = f"shape {list(shape)} of {dtype} takes {prod(shape) * numbers.itemsize}"
        raise InvalidInput(f"{len(content)} bytes came in base64; {wanted}", f"{pointer}/base64")
    array = np.frombuffer(content, numbers).reshape(shape)
    array.flags.writeable = False
    return array


def _shape(value: Any, pointer: str) -> tuple[int, int]:
    numbers = list(value)[:3] if not isinstance(value, dict | str) and hasattr(value, "__iter__") else []
    if len(numbers) != 2 or any(type(one) is not int or not 0 <= one < 1 << 31 for one in numbers):
        raise InvalidInput("something else came; [rows, entries of a row] is wanted", pointer)
    return numbers[0], numbers[1]


def _decoded(value: Any, pointer: str) -> bytearray:
    """The bytes that a text stands for."""
    if not isinstance(value, str | LongText):
        raise InvalidInput(f"{called(value)} came; a string of base64 is wanted", pointer)
    try:
        text = memoryview(value.encode("ascii")) if isinstance(value, str) else value.characters()
        if len(text) % 4:
            raise Error(f"{len(text)} characters came; a multiple of four is wanted")
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
