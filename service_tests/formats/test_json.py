import json
from typing import Any

import numpy as np
import orjson
import pytest
from numpy.typing import NDArray
from scipy import sparse

from app.core.answers import OneHot
from app.core.arrays import PostedRows
from app.core.datasets import Reference
from app.core.errors import InvalidInput
from app.formats import Body
from app.formats.json import Json
from app.formats.json_body import members
from app.formats.json_lists import PART_BYTES
from app.formats.json_pairs import codes, csr_codes
from app.formats.json_rows import rows
from service_tests.cases import each


def written(**answer: NDArray[Any]) -> Any:
    return json.loads(b"".join(Json().encode(answer).pieces))


@each("shape", [(0,), (5,), (0, 3), (3, 0), (1, 1), (7, 3), (2, 3, 4), (3, 70_000), (70_000, 2)])
@each("dtype", [np.float32, np.float64, np.int32, np.int64])
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
    pieces = list(Json().encode({"a": np.ones((1000, 1000))}).pieces)
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
    assert members(Body(b'{"x": 1, "y": 2}'), ["x"], ["y"]) == {"x": 1, "y": 2}
    for body, pointer in ((b'{"y": 2}', "/x"), (b'{"x": 1, "z": 3}', "/z"), (b"[]", ""), (b"", "")):
        with pytest.raises(InvalidInput) as refused:
            members(Body(body), ["x"], ["y"])
        assert refused.value.pointer == pointer


@each("piece", ["[" * 3, "[],", "{},", "[0],", "[{}],", "[[]],"])
def test_of_bodies_of_brackets_a_little_is_parsed_at_a_time(piece: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed, loads = [0], orjson.loads

    def parse(text: bytes) -> Any:
        parsed.append(len(text))
        return loads(text)

    monkeypatch.setattr(orjson, "loads", parse)
    body = b'{"x":[[0,0],' + piece.encode() * (1 << 19) + b"0]}"
    with pytest.raises(InvalidInput):
        Json().decode(Body(body), 2, "x")
    assert max(parsed) < 3 * PART_BYTES


def matrix(posted: PostedRows | Reference) -> PostedRows:
    assert not isinstance(posted, Reference)
    return posted


@pytest.mark.parametrize("width", [1, 2, 3, 4, 50])
def test_rows_of_the_most_brackets_are_read(width: int) -> None:
    n = (1 << 20) // (2 * width)
    body = b'{"x":[' + b",".join([b"[" + b",".join([b"0"] * width) + b"]"] * n) + b"]}"
    assert len(body) > 1 << 20
    assert matrix(Json().decode(Body(body), width, "x")["x"]).shape == (n, width)
    sparse_rows = b'{"x":[' + b",".join([b'{"indices":[],"values":[]}'] * 50_000) + b"]}"
    assert matrix(Json().decode(Body(sparse_rows), width, "x")["x"]).shape == (50_000, width)


@each("dtype", [np.uint8, np.uint16, np.uint32, np.uint64, np.int32, np.int64])
@each(("value", "row"), [([], (2,)), ([], (2, 2)), ([[3, 4]], (2,)), ([[[3, 4], [5, 6]]], (2, 2)), ([[0]] * 3, (1,))])
def test_codes_are_read_as_they_were_written(value: Any, row: tuple[int, ...], dtype: type) -> None:
    found = codes(value, row, np.dtype(dtype), "/x")
    assert found.shape == (len(value), *row)
    assert found.dtype == (np.uint64 if dtype is np.uint64 else np.int64)
    assert found.ravel().tolist() == np.ravel(value).tolist()


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


def test_one_hot_rows_that_are_many_come_in_pieces() -> None:
    columns = np.tile(np.arange(100) << 8, (3000, 1))
    pieces = list(Json().encode({"codes": OneHot(columns, 25_600, np.ones(3000, bool))}).pieces)
    assert max(map(len, pieces)) < 1 << 20
    assert json.loads(b"".join(pieces))["codes"]["indices"] == columns.ravel().tolist()
