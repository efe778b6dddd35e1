"""Codes over HTTP: the same for a row in any company and any format."""

import httpx
import numpy as np
import pytest

from service_tests.cases import each
from service_tests.checks import array, assert_problem, post, post_npy
from service_tests.expected_codes import QUERIES, X, hashed, sparse

pytestmark = pytest.mark.usefixtures("standing")


def test_an_index_names_coordinate_and_sign(http: httpx.Client) -> None:
    codes = array(post_npy(http, "standing-gmm/codes", X))
    assert set(codes[0]) <= {0, 3, 4}
    assert set(codes[1]) == {2}
    assert set(codes[2]) <= {0, 5}


@pytest.mark.parametrize("title", ["gmm", "centered"])
def test_explicit_zeros_mean_nothing(http: httpx.Client, title: str) -> None:
    path = f"standing-{title}/codes?encoding=pairs"
    stored_zeros = [{"indices": [0, 1, 2], "values": row} for row in X.tolist()]
    assert post(http, path, {"vectors": stored_zeros}).json() == post(http, path, {"vectors": sparse(X)}).json()


ROW = {"indices": [0, 2], "values": [1, 2]}
BAD_ROWS = [
    ({"indices": [1, 1], "values": [1, 2]}, "/indices"),
    ({"indices": [2, 0], "values": [1, 2]}, "/indices"),
    ({"indices": [0, 3], "values": [1, 2]}, "/indices"),
    ({"indices": [-1, 0], "values": [1, 2]}, "/indices"),
    ({"indices": [0, 1 << 70], "values": [1, 2]}, "/indices"),
    ({"indices": [0, 1.0], "values": [1, 2]}, "/indices"),
    ({"indices": [False, True], "values": [1, 2]}, "/indices"),
    ({"indices": "02", "values": [1, 2]}, "/indices"),
    ({"indices": None, "values": [1, 2]}, "/indices"),
    ({"indices": [0, 2], "values": [1, "2"]}, "/values/1"),
    ({"indices": [0, 2], "values": 1}, "/values"),
    ({"indices": [0, 2], "values": [1, 2, 3]}, ""),
    ({"indices": [0, 2]}, ""),
    ({"indices": [0, 2], "values": [1, 2], "shape": [3]}, ""),
    ([1, 2, 3], ""),
]


@each(("row", "pointer"), BAD_ROWS)
@each("title", ["gmm", "centered"])
def test_a_sparse_row_that_is_none_is_refused(http: httpx.Client, title: str, row: object, pointer: str) -> None:
    answer = post(http, f"standing-{title}/codes", {"vectors": [ROW, row]})
    assert_problem(http, answer, 422, "invalid-input", f"/vectors/1{pointer}")


@each("query", QUERIES)
def test_a_row_has_its_codes_in_any_company(http: httpx.Client, query: str) -> None:
    rows = np.random.default_rng(4).normal(size=(50, 3)).astype(np.float32)
    together = hashed(http, "standing-gmm", rows, query)
    for i in (0, 17, 49):
        np.testing.assert_array_equal(hashed(http, "standing-gmm", rows[i : i + 1], query), together[i : i + 1])


def test_codes_do_not_hang_on_scale(http: httpx.Client) -> None:
    codes = array(post_npy(http, "standing-gmm/codes", X[1:2] * 1000))
    np.testing.assert_array_equal(codes, array(post_npy(http, "standing-gmm/codes", X[1:2])))
