"""Hashing maps of more coordinates than tables could be held for: their parameters are drawn as rows need them."""

from collections.abc import Iterator

import httpx
import numpy as np
import pytest

from service_tests.checks import NPY, array, assert_problem, post, post_npy, put

DIM = 1 << 31
HUGE = {"input_dim": DIM, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "s": 64, "seed": 7}
X = [
    {"indices": [0, 7, DIM - 1], "values": [0.5, -1.25, 2]},
    {"indices": [DIM // 2], "values": [3.5]},
    {"indices": [], "values": []},
]
Y = [
    {"indices": [0, 7, DIM - 1], "values": [0.5, -1, 2.5]},
    {"indices": [DIM // 2, DIM // 2 + 1], "values": [7, 3.5]},
    {"indices": [1], "values": [1]},
]


@pytest.fixture(scope="module")
def huge(http: httpx.Client) -> Iterator[str]:
    answer = put(http, "huge", HUGE)
    assert answer.status_code == 201
    assert answer.json()["bytes"] == 0
    yield "huge"
    http.delete("/v1/maps/huge")


def test_such_a_map_answers_codes(http: httpx.Client, huge: str) -> None:
    codes = array(post(http, f"{huge}/codes?encoding=zero_bit", {"vectors": X[:2]}, NPY))
    assert codes.dtype == np.int64
    assert set(codes[0]) == {0, 15, 2 * DIM - 2}
    assert set(codes[1]) == {DIM}
    marked = array(post(http, f"{huge}/codes?encoding=zero_bit&on_zero=mark", {"vectors": X}, NPY))
    np.testing.assert_array_equal(marked[:2], codes)
    assert (marked[2] == -1).all()


@pytest.mark.parametrize("path", ["codes", "similarity", "kernel"])
def test_dense_vectors_are_refused_with_the_width_that_is_wanted(http: httpx.Client, huge: str, path: str) -> None:
    dense = [[1.0, 2.0, 3.0]]
    body = {"vectors": dense} if path == "codes" else {"x": dense, "y": dense}
    document = assert_problem(http, post(http, f"{huge}/{path}", body), 422, "invalid-input")
    assert str(DIM) in document["detail"]
    if path != "similarity":
        document = assert_problem(http, post_npy(http, f"{huge}/{path}", np.ones((1, 3))), 422, "invalid-input")
        assert str(DIM) in document["detail"]


def test_sparse_vectors_are_not_compared_exactly_where_that_takes_too_much_memory(http: httpx.Client) -> None:
    """Two of them, made dense, take a little more than 256 MiB."""
    kernel, path = {"kind": "gaussian", "length_scale": 1.0}, "/v1/indexes/wide"
    spec = {"input_dim": (1 << 24) + 1, "kernel": kernel, "sampler": {"kind": "monte_carlo"}, "s": 1}
    assert put(http, "wide", spec).status_code == 201
    assert http.put(path, json={"map": "wide", "keep": "vectors"}).status_code == 201
    body = {"ids": [0, 1], "vectors": [Y[2], Y[2]]}
    assert http.post(f"{path}/vectors", json=body).status_code == 200
    refused = (
        http.post(f"{path}/search", json={"ids": [0], "k": 1}),
        http.post(f"{path}/vectors", json=body | {"ids": [2, 3]}, params={"unless_similar": 0.5}),
    )
    for answer in refused:
        assert assert_problem(http, answer, 413, "too-large")["limit"] == "max_result_bytes"
    (found,) = http.post(f"{path}/search", json={"ids": [0], "k": 1, "exact": False}).json()["results"]
    assert found["ids"] == [1]
    assert http.delete(path).status_code == 204
    assert http.delete("/v1/maps/wide").status_code == 204
