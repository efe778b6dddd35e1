import json
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from app.core.arrays import OneHot
from app.core.errors import InvalidInput
from app.formats import Body
from app.formats.json import Json
from app.formats.json.body import members
from app.formats.pairs import codes, csr_codes
from service_tests.cases import each


def written(**answer: NDArray[Any]) -> Any:
    return json.loads(b"".join(Json().encode(answer).pieces))


@each(
    "shape",
    [(0,), (5,), (0, 3), (3, 0), (1, 1), (7, 3), (2, 3, 4), (0, 70_000), (3, 70_000), (2, 3, 70_000), (70_000, 2)],
)
@each("dtype", [np.float32, np.float64, np.int32, np.int64])
def test_arrays_are_written_whole(shape: tuple[int, ...], dtype: type) -> None:
    array: NDArray[Any] = (np.arange(np.prod(shape)).reshape(shape) * 0.37).astype(dtype)
    text = written(a=array)["a"]
    np.testing.assert_array_equal(np.array(text, dtype).reshape(shape), array)
    assert len(text) == shape[0]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_arrays_are_written_in_two_parts(order: Any, dtype: type) -> None:
    array: NDArray[Any] = np.array([[1 + 2j, -3.5j], [0, 4]], dtype, order=order)
    assert written(z=array) == {"z": {"real": [[1, 0], [0, 4]], "imag": [[2, -3.5], [0, 0]]}}


def test_a_large_array_is_written_in_pieces_of_bounded_size() -> None:
    for shape in ((1000, 1000), (1, 1_000_000), (2, 3, 200_000)):
        pieces = list(Json().encode({"a": np.ones(shape)}).pieces)
        assert len(pieces) > 10
        assert max(map(len, pieces)) < 1 << 20


def test_members_must_be_those_wanted() -> None:
    assert members(Body(b'{"x": 1, "y": 2}'), ["x"], ["y"]) == {"x": 1, "y": 2}
    for body, pointer in ((b'{"y": 2}', "/x"), (b'{"x": 1, "z": 3}', "/z"), (b"[]", ""), (b"", "")):
        with pytest.raises(InvalidInput) as refused:
            members(Body(body), ["x"], ["y"])
        assert refused.value.pointer == pointer


def test_the_widest_codes_are_read_whole() -> None:
    ends: list[tuple[type, list[int]]] = [(np.uint64, [0, (1 << 64) - 1]), (np.int64, [-(1 << 63), (1 << 63) - 1])]
    for dtype, numbers in ends:
        array: NDArray[Any] = np.array([numbers], dtype)
        assert written(a=array)["a"] == [numbers]
        np.testing.assert_array_equal(codes([numbers], (2,), np.dtype(dtype), "/x"), array)
        for far in (numbers[0] - 1, numbers[1] + 1, 1 << 70):
            with pytest.raises(InvalidInput) as refused:
                codes([[far, 0]], (2,), np.dtype(dtype), "/x")
            assert refused.value.pointer == "/x"


@pytest.mark.parametrize(
    "columns", [np.empty((0, 3)), [[0, 5, 9]], [[0, 5, 9], [-1, -1, -1], [1, 4, 8]], [[-1, -1, -1]]]
)
def test_one_hot_rows_are_written_in_csr_form(columns: Any) -> None:
    columns = np.array(columns, np.int32)
    parts = json.loads(b"".join(Json().encode({"codes": OneHot(columns, 12, columns[:, 0] >= 0)}).pieces))["codes"]
    assert list(parts) == ["indptr", "indices", "shape"]
    assert parts["shape"] == [len(columns), 12]
    matrix = sparse.csr_array((np.ones(len(parts["indices"])), parts["indices"], parts["indptr"]), shape=parts["shape"])
    marked = (columns < 0).all(axis=1)
    assert (matrix.sum(axis=1) == np.where(marked, 0, 3)).all()
    for i in np.flatnonzero(~marked):
        assert matrix[[i]].nonzero()[1].tolist() == columns[i].tolist()
    if not marked.any():
        np.testing.assert_array_equal(csr_codes(parts, 3, 12, "/x"), columns)
