"""Hashing maps of more coordinates than tables could be held for: their parameters are drawn as rows need them."""

from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest

from service_tests.cases import each
from service_tests.checks import NPY, array, assert_problem, member, post, post_npy, put
from service_tests.expected_codes import QUERIES, expected

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
EXACT = [3.5 / 4.25, 3.5 / 10.5]


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


@each("query", QUERIES)
def test_every_encoding_serves(http: httpx.Client, huge: str, query: str) -> None:
    pairs = array(post(http, f"{huge}/codes?encoding=pairs", {"vectors": X[:2]}, NPY))
    assert array(post(http, f"{huge}/codes?{query}", {"vectors": X[:2]}, NPY)).tolist() == expected(pairs, query)


def test_drawn_parameters_are_those_that_smaller_maps_hold(http: httpx.Client, huge: str, name: str) -> None:
    assert put(http, name, {**HUGE, "input_dim": 9}).status_code == 201
    rows = [{"indices": [0, 3, 8], "values": [1, -2, 0.75]}, {"indices": [1, 2], "values": [5, 6]}]
    held, drawn = (post(http, f"{one}/codes?encoding=pairs", {"vectors": rows}).content for one in (name, huge))
    assert held == drawn


def test_similarities_come_with_the_exact_kernel(http: httpx.Client, huge: str) -> None:
    answer = post(http, f"{huge}/similarity?gamma=2", {"x": X[:2], "y": Y[:2]})
    np.testing.assert_allclose(member(answer, "exact"), EXACT, rtol=1e-6)
    estimate, error = member(answer, "estimate"), member(answer, "standard_error")
    assert (np.abs(estimate - EXACT) < 4 * error).all()
    block = post(http, f"{huge}/kernel?exact=true", {"x": X[:2], "y": Y[:2]})
    np.testing.assert_allclose(np.diagonal(member(block, "approximate")), estimate, rtol=1e-12)
    np.testing.assert_allclose(np.diagonal(member(block, "exact")), EXACT, rtol=1e-6)


def test_no_rows_are_compared_with_rows_of_any_width(http: httpx.Client, huge: str) -> None:
    for x, y in (([], Y[:2]), (X[:2], []), ([], [])):
        answer = post(http, f"{huge}/kernel?exact=true", {"x": x, "y": y})
        assert answer.status_code == 200, answer.text
        assert answer.json() == {"approximate": [[] for _ in x], "exact": [[] for _ in x]}
    assert member(post(http, f"{huge}/similarity?of=vectors", {"x": [], "y": []}), "exact").size == 0


def test_codes_of_such_a_map_are_compared(http: httpx.Client, huge: str) -> None:
    x, y = (
        post(http, f"{huge}/codes?encoding=fingerprint", {"vectors": rows}).json()["codes"] for rows in (X[:2], Y[:2])
    )
    of_codes = post(http, f"{huge}/similarity?encoding=fingerprint", {"x": x, "y": y}).json()
    of_vectors = post(http, f"{huge}/similarity", {"x": X[:2], "y": Y[:2]}).json()
    assert of_codes["estimate"] == of_vectors["estimate"]


@pytest.mark.parametrize("path", ["codes", "similarity", "kernel"])
def test_dense_vectors_are_refused_with_the_width_that_is_wanted(http: httpx.Client, huge: str, path: str) -> None:
    dense = [[1.0, 2.0, 3.0]]
    body = {"vectors": dense} if path == "codes" else {"x": dense, "y": dense}
    document = assert_problem(http, post(http, f"{huge}/{path}", body), 422, "invalid-input")
    assert str(DIM) in document["detail"]
    if path != "similarity":
        document = assert_problem(http, post_npy(http, f"{huge}/{path}", np.ones((1, 3))), 422, "invalid-input")
        assert str(DIM) in document["detail"]


@each("index", [DIM, DIM + 1, 1 << 32, 1 << 63, 1 << 70, -1])
def test_indices_end_where_the_vector_does(http: httpx.Client, huge: str, index: int) -> None:
    body = {"vectors": [{"indices": [index], "values": [1]}]}
    assert_problem(http, post(http, f"{huge}/codes", body), 422, "invalid-input", "/vectors/0/indices")


def test_no_dimension_is_larger(http: httpx.Client, name: str) -> None:
    answer = put(http, name, {**HUGE, "input_dim": DIM + 1})
    assert_problem(http, answer, 422, "invalid-input", "/input_dim")


def test_codes_past_the_range_of_such_a_map_are_none(http: httpx.Client, huge: str) -> None:
    good: list[list[Any]] = [[2 * DIM - 1] * 64]
    query = "encoding=zero_bit"
    assert post(http, f"{huge}/similarity?{query}", {"x": good, "y": good}).status_code == 200
    bad = [[2 * DIM] * 64]
    answer = post(http, f"{huge}/similarity?{query}", {"x": good, "y": bad})
    assert_problem(http, answer, 422, "invalid-input", "/y/0")
