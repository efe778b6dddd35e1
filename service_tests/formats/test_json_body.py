from typing import Any

import numpy as np
import pytest
from scipy import sparse

from app.core.datasets import Reference
from app.core.errors import InvalidInput
from app.formats import Body
from app.formats.json import Json
from app.formats.json.body import vectors_or_dataset
from app.formats.npy import Npy
from service_tests.cases import each
from service_tests.checks import npy

JSON, NPY = Json(), Npy()


def test_dense_rows_tell_their_width() -> None:
    np.testing.assert_array_equal(JSON.matrix(Body(b'{"vectors": [[1, 2.5], [3, 4]]}')), [[1, 2.5], [3, 4]])
    np.testing.assert_array_equal(JSON.matrix(Body(b'{"vectors": [[1, 2]], "input_dim": 2}')), [[1, 2]])
    np.testing.assert_array_equal(NPY.matrix(Body(npy([[1.0, 2.0]]))), [[1, 2]])
    assert JSON.matrix(Body(b'{"vectors": []}')).shape == (0, 0)


def test_sparse_rows_are_told_their_width() -> None:
    found = JSON.matrix(Body(b'{"vectors": [{"indices": [2147483647], "values": [1]}], "input_dim": 2147483648}'))
    assert isinstance(found, sparse.csr_array)
    assert found.shape == (1, 1 << 31)


@each(
    ("body", "pointer"),
    [
        (b'{"vectors": [{"indices": [0], "values": [1]}]}', "/input_dim"),
        (b'{"vectors": [{"indices": [2], "values": [1]}], "input_dim": 2}', "/vectors/0/indices"),
        (b'{"vectors": [[1]], "input_dim": true}', "/input_dim"),
        (b'{"vectors": [[1]], "input_dim": 2147483649}', "/input_dim"),
        (b'{"vectors": [[1]], "input_dim": 2}', "/vectors/0"),
        (b'{"vectors": {"dataset": "d"}}', "/vectors"),
        (b'{"input_dim": 2}', "/vectors"),
        (b'{"vectors": [[1]], "dim": 1}', "/dim"),
    ],
)
def test_what_is_no_matrix_is_refused(body: bytes, pointer: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        JSON.matrix(Body(body))
    assert refused.value.pointer == pointer


def test_a_dataset_may_stand_in_the_place_of_rows() -> None:
    body = b'{"x": {"dataset": "d"}, "y": {"dataset": "e", "rows": 5, "seed": 18446744073709551615}}'
    assert JSON.decode(Body(body), 3, "x", ["y"]) == {
        "x": Reference("d", None, 0, "/x"),
        "y": Reference("e", 5, (1 << 64) - 1, "/y"),
    }


@each(
    ("value", "pointer"),
    [
        ({}, "/vectors"),
        ({"dataset": 3}, "/vectors/dataset"),
        ({"dataset": ""}, "/vectors/dataset"),
        ({"dataset": "a}:b"}, "/vectors/dataset"),
        ({"dataset": "a" * 129}, "/vectors/dataset"),
        ({"dataset": "d", "row": 3}, "/vectors/row"),
        ({"dataset": "d", "a/b~": 3}, "/vectors/a~1b~0"),
        *(({"dataset": "d", "rows": rows}, "/vectors/rows") for rows in (0, -1, 1.0, "1", True, None, [1], 1 << 63)),
        *(({"dataset": "d", "seed": seed}, "/vectors/seed") for seed in (-1, 0.5, "1", False, None, 1 << 64)),
    ],
)
def test_a_reference_that_is_none_is_refused_at_its_place(value: Any, pointer: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        vectors_or_dataset({"vectors": value}, 3)
    assert refused.value.pointer == pointer
    assert "expected" in refused.value.detail or "takes" in refused.value.detail


def test_a_body_has_vectors_or_a_dataset() -> None:
    others = {"kernel": {}, "seed": 4}
    np.testing.assert_array_equal(vectors_or_dataset({"vectors": [[1, 2]], **others}, options=["seed"]), [[1, 2]])
    assert vectors_or_dataset({"vectors": {"dataset": "d"}, **others}, options=["seed"]) == Reference(
        "d", None, 0, "/vectors"
    )
    assert vectors_or_dataset({"dataset": "d", "rows": 7, **others}) == Reference("d", 7, 4, "")


@each(
    ("document", "pointer"),
    [
        ({}, "/vectors"),
        ({"vectors": [[1]], "dataset": "d"}, "/vectors"),
        ({"vectors": [[1]], "rows": 3}, "/rows"),
    ],
)
def test_a_body_that_has_both_or_neither_is_refused(document: Any, pointer: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        vectors_or_dataset(document)
    assert refused.value.pointer == pointer
