import io
from typing import Any

import numpy as np
import pytest

from bochner_client import InvalidAnswer
from bochner_client.arrays import as_array, npy
from service_tests.checks import npy as saved

ARRAYS = [
    np.arange(12, dtype=np.float32).reshape(3, 4),
    np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    np.zeros((0, 5), np.float16),
    np.zeros((4, 0)),
    np.array([1 + 2j, 3], np.complex64),
    np.arange(24, dtype=np.int64).reshape(2, 3, 4),
]


def read(body: bytes, pieces: int, **options: Any) -> Any:
    sink = as_array(**options)[200].sink({})
    for start in range(0, len(body), pieces):
        sink.feed(body[start : start + pieces])
    return sink.end()


def test_what_is_no_whole_array_is_refused() -> None:
    for body in (b"", b"<html>an error page of some length</html>", saved(ARRAYS[0])[:-1], saved(ARRAYS[0]) + b"x"):
        with pytest.raises(InvalidAnswer):
            read(body, 50)


def test_an_array_is_written_and_read_however_it_is_cut_into_pieces() -> None:
    for array in ARRAYS:
        for pieces in (1, 7, 10_000):
            found = read(saved(array), pieces)
            assert (found.dtype, found.shape) == (array.dtype, array.shape)
            assert np.array_equal(found, array)
        if array.dtype.kind != "c":
            body = npy(array)
            sent = b"".join(body.pieces())
            assert len(sent) == body.length
            assert np.array_equal(np.load(io.BytesIO(sent)), array)
