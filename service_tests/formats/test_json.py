import json
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from app.core.errors import InvalidInput
from app.formats.json import Json, codes, members, rows


def written(**answer: NDArray[Any]) -> Any:
    return json.loads(b"".join(Json().encode(answer)))


@pytest.mark.parametrize("shape", [(0,), (5,), (0, 3), (3, 0), (1, 1), (7, 3), (2, 3, 4), (3, 70_000), (70_000, 2)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
def test_arrays_are_written_whole(shape: tuple[int, ...], dtype: type) -> None:
    array: NDArray[Any] = (np.arange(np.prod(shape)).reshape(shape) * 0.37).astype(dtype)
    text = written(a=array)["a"]
    np.testing.assert_array_equal(np.array(text, dtype).reshape(shape), array)
    assert len(text) == shape[0]


def test_numbers_are_written_so_that_they_read_back_bit_for_bit() -> None:
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 1 << 32, 20_000, dtype=np.uint32)
    floats = bits.view(np.float32)
    floats = floats[np.isfinite(floats)]
    assert np.array(written(a=floats)["a"], np.float32).tobytes() == floats.tobytes()
    doubles = floats.astype(np.float64) * np.pi
    assert np.array(written(a=doubles)["a"]).tobytes() == doubles.tobytes()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_arrays_are_written_in_two_parts(order: Any, dtype: type) -> None:
    array: NDArray[Any] = np.array([[1 + 2j, -3.5j], [0, 4]], dtype, order=order)
    assert written(z=array) == {"z": {"real": [[1, 0], [0, 4]], "imag": [[2, -3.5], [0, 0]]}}


def test_several_arrays_stand_side_by_side() -> None:
    assert written(a=np.array([1.0]), b=np.array([[2, 3]])) == {"a": [1.0], "b": [[2, 3]]}


def test_a_large_array_is_written_in_pieces_of_bounded_size() -> None:
    pieces = list(Json().encode({"a": np.ones((1000, 1000))}))
    assert len(pieces) > 10
    assert max(map(len, pieces)) < 1 << 20


def test_dense_and_sparse_rows_are_the_same_matrix() -> None:
    dense = rows([[0, 1.5, 0], [0, 0, 0], [1, 2, 3]], 3, "/vectors")
    found = rows(
        [
            {"indices": [1], "values": [1.5]},
            {"indices": [], "values": []},
            {"indices": [0, 1, 2], "values": [1, 2, 3]},
        ],
        3,
        "/vectors",
    )
    assert isinstance(found, sparse.csr_array)
    assert found.shape == (3, 3)
    np.testing.assert_array_equal(found.toarray(), dense)
    assert found.dtype == np.asarray(dense).dtype == np.float64


def test_no_rows_are_a_matrix_of_the_right_width() -> None:
    assert rows([], 5, "/vectors").shape == (0, 5)


def test_members_must_be_those_wanted() -> None:
    assert members(b'{"x": 1, "y": 2}', ["x"], ["y"]) == {"x": 1, "y": 2}
    for body, pointer in ((b'{"y": 2}', "/x"), (b'{"x": 1, "z": 3}', "/z"), (b"[]", ""), (b"", "")):
        with pytest.raises(InvalidInput) as refused:
            members(body, ["x"], ["y"])
        assert refused.value.pointer == pointer


@pytest.mark.parametrize(
    ("value", "width", "shape"),
    [([], 1, (0, 2, 1)), ([], 2, (0, 2, 2)), ([[3, 4]], 1, (1, 2, 1)), ([[[3, -4], [5, 6]]], 2, (1, 2, 2))],
)
def test_codes_are_read_as_they_were_written(value: Any, width: int, shape: tuple[int, ...]) -> None:
    found = codes(value, 2, width, "/x")
    assert found.shape == shape
    assert found.dtype == np.int64
    assert found.ravel().tolist() == np.ravel(value).tolist()
