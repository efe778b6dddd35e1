"""The .npy format: one array, with its numbers as they are laid out in memory."""

import io
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from math import prod
from threading import Lock
from typing import Any

import numpy as np
from numpy.lib import format as npy_format

from app.core.arrays import Answer, Array, RowBlocks, dtype_of, narrow, octets, rows_of
from app.core.errors import InvalidInput
from app.formats.base import Body, Buffer, Encoded, Format

_READERS = {(1, 0): npy_format.read_array_header_1_0, (2, 0): npy_format.read_array_header_2_0}
# NumPy reads no header of more than 10,000 characters.
_LONGEST_START = 1 << 14
# Kinds of dtype that hold plain numbers. The gate decides which of these kinds a map accepts.
_NUMBERS = "biufc"


class Npy(Format):
    """`application/x-npy`: a request is one array; an answer is its first array, stacked with those of its shape.

    Rows:
        A 2-D .npy of float32, float64, whole numbers that are exact in the map's dtype, or booleans, read as 0
        and 1.

    Answers:
        One `.npy`. `Accept: application/x-npy; dtype=float16` asks for it in another dtype: float32 of float64,
        float16 of both, complex64 of complex128; it is refused where a number is too large for that. It has no
        ids.
    """

    media_type = "application/x-npy"
    narrower = {"float64": ("float32", "float16"), "float32": ("float16",), "complex128": ("complex64",)}  # noqa: RUF012

    def matrix(self, body: Body) -> Array:
        """Read the one array of the body. The array shares the memory of the body."""
        return read(body.content)

    def encode(self, answer: Answer, dtype: np.dtype[Any] | None = None, warnings: Sequence[str] = ()) -> Encoded:
        """Write a header, then the numbers as they are laid out in memory."""
        del warnings
        dtype = dtype or dtype_of(answer)
        first, others = rows_of(answer), [*answer.values()][1:]
        if isinstance(first, RowBlocks):
            rows = first.narrow(dtype)
            header = array_header(rows.shape, dtype)
            return Encoded(chain([header], map(octets, rows.generate())), len(header) + rows.nbytes)
        alike = [one for one in others if isinstance(one, np.ndarray) and one.shape == first.shape]
        array = narrow(np.stack([first, *alike]) if alike else first, dtype)
        header = array_header(array.shape, array.dtype)
        return Encoded([header, octets(array)], len(header) + array.nbytes)


@lru_cache(256)
def array_header(shape: tuple[int, ...], dtype: np.dtype[Any]) -> bytes:
    """Return the header that precedes the numbers of an array in C order."""
    header = io.BytesIO()
    fields = {"descr": npy_format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    npy_format.write_array_header_1_0(header, fields)
    return header.getvalue()


def read(body: Buffer, of_strings: bool = False) -> Array:
    """Read the array of a .npy body, without a copy and without trust in its header.

    The array must have plain numbers, or strings if `of_strings`.
    """
    whole = memoryview(body).toreadonly()
    start, shape, fortran_order, dtype = _read_header(bytes(whole[: min(_start(body), _LONGEST_START)]), of_strings)
    came, announced = len(body) - start, prod(shape) * dtype.itemsize
    if came != announced or any(length < 0 for length in shape):
        of = f"{announced} bytes of shape {shape}" if abs(announced) < 1 << 64 else "more bytes than there can be"
        raise InvalidInput(f"the .npy header announces {of}, got {came}")
    try:
        array = np.frombuffer(whole, dtype, count=prod(shape), offset=start)
        return array.reshape(shape, order="F" if fortran_order else "C")
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidInput(f"no array has the shape {str(shape)[:200]} of the .npy header: {error}") from error


def _start(body: Buffer) -> int:
    """Return the position where the numbers begin, assuming that the body is a .npy."""
    length = 2 if body[6:7] == b"\1" else 4
    return 8 + length + int.from_bytes(body[8 : 8 + length], "little")


# Python 3.11 may fail if several threads parse literals at once, as NumPy does for headers.
_PARSING = Lock()


@lru_cache(256)
def _read_header(start: bytes, of_strings: bool) -> tuple[int, tuple[int, ...], bool, np.dtype[Any]]:
    """Return the length of a .npy's header, and its array's shape, whether it is in Fortran order, and its dtype."""
    stream = io.BytesIO(start)
    try:
        version = npy_format.read_magic(stream)
        with _PARSING:
            header = _READERS[version](stream) if version in _READERS else None
    except Exception as error:  # an unusual header makes NumPy's parser raise almost anything
        raise InvalidInput(f"the body is not a .npy array: {str(error)[:200]}") from error
    if header is None:
        raise InvalidInput(f"expected .npy of version 1.0 or 2.0, got {version[0]}.{version[1]}")
    shape, fortran_order, dtype = header
    if dtype.kind not in _NUMBERS and not (of_strings and dtype.kind == "U"):
        wanted = "whole numbers or strings" if of_strings else "plain float32, float64 or whole numbers"
        raise InvalidInput(f"expected {wanted} in the .npy, got {str(dtype)[:200]}")
    return stream.tell(), shape, fortran_order, dtype
