"""Arrays in requests and answers: .npy bodies without a copy, .npy answers written into place as they are received."""

import io
from base64 import b64encode
from collections.abc import Callable
from threading import Lock
from typing import Any, TypeVar
from zipfile import BadZipFile

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import ArrayLike, DTypeLike, NDArray

from bochner_client.errors import InvalidAnswer
from bochner_client.requests import NPY, NPZ, Body, Joined, Reading, Reads
from bochner_client.tables import as_table, objects_as_numbers, unmasked

Array = NDArray[Any]
T = TypeVar("T")

# Python 3.11 may fail if several threads parse literals at once, as NumPy does for headers.
_PARSING = Lock()
_HEADERS = {(1, 0): npy_format.read_array_header_1_0, (2, 0): npy_format.read_array_header_2_0}
# Kinds of dtypes that the service reads: booleans, whole numbers, and floats of 4 and 8 bytes.
_SENT_AS_THEY_ARE = "biuf"


def as_numbers(rows: ArrayLike) -> Array:
    """Return rows as an array that the service can read, without a copy if possible; values do not change.

    Args:
        rows: an array, a data frame or table, or nested lists.

    Raises:
        ValueError: the rows are not numbers.
        TypeError: an entry cannot be converted to a number.
    """
    table = as_table(rows)
    found = unmasked(rows) if table is None else table.rows()
    if found.dtype == object:
        found = objects_as_numbers(found)
    if found.dtype.kind not in _SENT_AS_THEY_ARE:
        raise ValueError(f"expected real numbers, got an array of {found.dtype}")
    if found.dtype == np.float16:
        return found.astype(np.float32)
    return found.astype(found.dtype.newbyteorder("="), copy=False)


def npy(rows: ArrayLike) -> Body:
    """Return a .npy body, which shares the memory of the rows if they are contiguous."""
    numbers = as_numbers(rows)
    if not (numbers.flags.c_contiguous or numbers.flags.f_contiguous):
        numbers = np.ascontiguousarray(numbers)
    start = io.BytesIO()
    npy_format.write_array_header_1_0(start, npy_format.header_data_from_array_1_0(numbers))
    flat = numbers.reshape(-1, order="A").view(np.uint8)
    return Body(NPY, (start.getvalue(), flat.data))


def npz(**members: ArrayLike) -> Body:
    """Return a .npz body of several arrays."""
    written = io.BytesIO()
    arrays: Any = {name: as_numbers(rows) for name, rows in members.items()}
    np.savez(written, **arrays)
    return Body(NPZ, (written.getbuffer(),))


def base64_of(rows: ArrayLike) -> dict[str, Any]:
    """Return an array as a member of a JSON document."""
    numbers = as_numbers(rows)
    if numbers.dtype == np.bool_:
        numbers = numbers.astype(np.uint8)
    little = np.ascontiguousarray(numbers, numbers.dtype.newbyteorder("<"))
    return {"base64": b64encode(little.data).decode(), "shape": numbers.shape, "dtype": numbers.dtype.name}


def accepting(dtype: DTypeLike | None) -> dict[str, str]:
    """Return the header that asks for .npy, and for the dtype, if the service can write it."""
    if dtype is None:
        return {"Accept": NPY}
    return {"Accept": f"{NPY}; dtype={np.dtype(dtype).name}, {NPY}; q=0.5"}


def as_array(dtype: DTypeLike | None = None, out: Array | None = None) -> Reads[Array]:
    """Return a reader of .npy answers.

    Args:
        dtype: dtype to convert the array to; None to keep the dtype of the answer.
        out: array to write the answer into; None for a new array.

    Raises:
        ValueError: `out` is read-only, or answers cannot have the dtype.
    """
    wanted = None if dtype is None else np.dtype(dtype)
    if wanted is not None and wanted.kind not in "fc":
        raise ValueError(f"dtype {wanted} came; one of floating-point or complex numbers is wanted")
    if out is not None and not out.flags.writeable:
        raise ValueError("out is read-only")
    return {200: Reading(NPY, lambda _: _NpySink(wanted, out))}


def as_arrays(read: Callable[[dict[str, Array]], T]) -> Reads[T]:
    """Return a reader of .npz answers; `read` makes the result from the arrays by name."""
    return {200: Reading(NPZ, lambda _: Joined(lambda body: read(_npz_members(body))))}


def _npz_members(body: bytes) -> dict[str, Array]:
    """Return the arrays of a .npz file; ValueError if it is not one."""
    try:
        with np.load(io.BytesIO(body), allow_pickle=False) as members:
            return dict(members)
    except BadZipFile as error:
        raise ValueError(str(error)) from error


class _NpySink:
    """Reads a .npy answer as it is received, directly into the array that is returned."""

    def __init__(self, dtype: np.dtype[Any] | None, out: Array | None) -> None:
        self._dtype, self._out = dtype, out
        self._start = bytearray()
        self._came: Array | None = None
        self._bytes: NDArray[np.uint8] = np.empty(0, np.uint8)
        self._at = 0

    def feed(self, piece: bytes) -> None:
        """Take the next bytes.

        Raises:
            InvalidAnswer: the bytes are not those of a .npy.
            ValueError: `out` has another shape.
        """
        if self._came is not None:
            self._put(piece)
            return
        self._start += piece
        length = _header_length(self._start)
        if length is not None and len(self._start) >= length:
            numbers = bytes(self._start[length:])
            self._begin(bytes(self._start[:length]))
            self._put(numbers)

    def end(self) -> Array:
        """Return the array; InvalidAnswer if it is incomplete, TypeError if it cannot be cast as requested."""
        if self._came is None or self._at != self._bytes.size:
            raise InvalidAnswer(f"{self._at} of {self._bytes.size} bytes of an array came")
        if self._out is not None:
            if self._came is not self._out:
                np.copyto(self._out, self._came, casting="same_kind")
            return self._out
        return self._came if self._dtype is None else self._came.astype(self._dtype, casting="same_kind", copy=False)

    def _begin(self, header: bytes) -> None:
        stream = io.BytesIO(header)
        try:
            with _PARSING:
                shape, fortran_order, dtype = _HEADERS[npy_format.read_magic(stream)](stream)
        except (ValueError, KeyError) as error:
            raise InvalidAnswer(f"something else than a .npy came: {error}") from error
        if self._out is not None and self._out.shape != shape:
            raise ValueError(f"out has shape {self._out.shape}; the answer has {shape}")
        if self._out is not None and self._out.dtype == dtype and self._out.flags.c_contiguous and not fortran_order:
            came = self._out
        else:
            came = np.empty(shape, dtype, order="F" if fortran_order else "C")
        self._came, self._bytes = came, came.reshape(-1, order="A").view(np.uint8)

    def _put(self, piece: bytes) -> None:
        end = self._at + len(piece)
        if end > self._bytes.size:
            raise InvalidAnswer(f"more than the {self._bytes.size} bytes of an array came")
        self._bytes[self._at : end] = np.frombuffer(piece, np.uint8)
        self._at = end


def _header_length(start: bytearray) -> int | None:
    """Return the number of bytes before the numbers of a .npy; None if too few bytes have been received to tell."""
    if len(start) < 12:
        return None
    size = 2 if start[6] == 1 else 4
    return 8 + size + int.from_bytes(start[8 : 8 + size], "little")
