"""Whether /similarity reads rows as vectors or as codes."""

from typing import Any

import httpx
import pytest

from service_tests.cases import each
from service_tests.checks import assert_problem, post, put

LIKE_VECTORS = ["zero_bit", "b_bit", "packed", "fingerprint", "one_hot"]
"""Encodings whose rows have three numbers where s is 3."""
ROW = [1, 2, 3]


@pytest.fixture(scope="module")
def square(http: httpx.Client) -> str:
    """A map whose codes are as long as its vectors."""
    spec = {"input_dim": 3, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "s": 3, "seed": 7}
    assert put(http, "square", spec).status_code in (200, 201)
    return "square"


def similarity(http: httpx.Client, name: str, query: str, x: Any, y: Any = None) -> httpx.Response:
    return post(http, f"{name}/similarity?{query}", {"x": x, "y": x if y is None else y})


def read_as(answer: httpx.Response) -> str:
    assert answer.status_code == 200, answer.text
    return "vectors" if "exact" in answer.json() else "codes"


@each("row", [ROW, [1.0, 2.0, 3.0], [1, 2.0, 3.5], [0.5, 1.5, 2.5]])
@each("encoding", LIKE_VECTORS)
def test_rows_that_may_be_both_are_refused_until_it_is_said_which(
    http: httpx.Client, square: str, encoding: str, row: list[float]
) -> None:
    query = f"encoding={encoding}"
    document = assert_problem(http, similarity(http, square, query, [row]), 422, "invalid-input")
    assert [error["parameter"] for error in document["errors"]] == ["of"]
    assert "of=vectors or of=codes" in document["detail"]
    assert encoding in document["detail"]
    assert read_as(similarity(http, square, f"{query}&of=vectors", [row])) == "vectors"
