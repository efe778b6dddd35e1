import io
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.errors import InvalidInput
from app.formats.npy import Npy, read
from service_tests.cases import each
from service_tests.checks import npy
from service_tests.formats.damaged import refusals


def written(*arrays: NDArray[Any]) -> NDArray[Any]:
    encoded = b"".join(Npy().encode({str(i): array for i, array in enumerate(arrays)}).pieces)
    found: NDArray[Any] = np.load(io.BytesIO(encoded), allow_pickle=False)
    return found


@each("dtype", ["f4", "f8", "c8", "c16", "i4", "i8"])
@each("shape", [(0,), (4,), (0, 3), (3, 0), (2, 3), (2, 3, 2)])
def test_arrays_are_written_as_numpy_reads_them(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    for same in (array, np.asfortranarray(array), array[::-1][::-1]):
        found = written(same)
        assert found.dtype == array.dtype
        np.testing.assert_array_equal(found, array)


def test_several_arrays_are_stacked() -> None:
    found = written(np.ones((2, 3), np.complex64), np.zeros((2, 3), np.float32))
    assert found.shape == (2, 2, 3)
    assert found.dtype == np.complex64
    np.testing.assert_array_equal(found[0], np.ones((2, 3)))


@each("order", ["C", "F"])
@each("dtype", ["<f4", ">f4", "<f8", ">f8"])
def test_what_numpy_saves_is_read(dtype: str, order: Any) -> None:
    array = np.arange(6).reshape(2, 3).astype(dtype, order=order)
    np.testing.assert_array_equal(read(npy(array)), array)


def test_damaged_files_are_refused_or_read_but_never_fail() -> None:
    good = npy(np.ones((2, 3), np.float32))
    for length in range(len(good)):
        with pytest.raises(InvalidInput):
            read(good[:length])
    assert refusals(read, good, 5000, 80) > 2500
