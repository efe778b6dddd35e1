"""The .npy format: one array, its numbers as they lie in memory."""

import io
from math import prod

import numpy as np
from numpy.lib import format as npy_format

from app.core.arrays import Answer, Array, OneHot
from app.core.errors import InvalidInput
from app.formats.base import Body, Format

_READERS = {(1, 0): npy_format.read_array_header_1_0, (2, 0): npy_format.read_array_header_2_0}
# Kinds of dtype that hold plain numbers. The gate decides which of them a map takes.
_NUMBERS = "biufc"


class Npy(Format):
    """`application/x-npy`: a request is one array, an answer its first array, stacked with others of that shape."""

    media_type = "application/x-npy"
    rows_described = "A 2-D .npy of float32 or float64."

    def matrix(self, body: Body) -> Array:
        """Read the one array of the body. It shares the memory of the body."""
        return read(body.content)

    def encode(self, answer: Answer) -> list[bytes | memoryview]:
        """Write a header and the numbers as they lie in memory."""
        first, *others = (array.columns if isinstance(array, OneHot) else array for array in answer.values())
        arrays = [first, *(other for other in others if other.shape == first.shape)]
        array = np.ascontiguousarray(arrays[0]) if len(arrays) == 1 else np.stack(arrays)
        header = io.BytesIO()
        npy_format.write_array_header_1_0(header, npy_format.header_data_from_array_1_0(array))
        return [header.getvalue(), array.reshape(-1).view(np.uint8).data]


def read(body: bytes) -> Array:
    """Read the array of a .npy body of plain numbers, without a copy and without trust in its header."""
    stream = io.BytesIO(body)
    try:
        version = npy_format.read_magic(stream)
        header = _READERS[version](stream) if version in _READERS else None
    except Exception as error:  # a strange header makes NumPy's parser raise almost anything
        raise InvalidInput(f"the body is not a .npy array: {str(error)[:200]}") from error
    if header is None:
        raise InvalidInput(f"the .npy is of version {version[0]}.{version[1]}; 1.0 or 2.0 is wanted")
    shape, fortran_order, dtype = header
    if dtype.kind not in _NUMBERS:
        raise InvalidInput(f"the .npy holds {str(dtype)[:200]}; plain float32 or float64 numbers are wanted")
    came, announced = len(body) - stream.tell(), prod(shape) * dtype.itemsize
    if came != announced or any(length < 0 for length in shape):
        raise InvalidInput(f"the .npy header announces {announced} bytes of shape {shape}, but {came} came")
    try:
        array = np.frombuffer(body, dtype, count=prod(shape), offset=stream.tell())
        return array.reshape(shape, order="F" if fortran_order else "C")
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidInput(f"no array has the shape {str(shape)[:200]} of the .npy header: {error}") from error
