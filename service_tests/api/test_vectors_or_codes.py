"""Whether /similarity reads rows as vectors or as codes."""

from typing import Any

import httpx
import numpy as np
import pytest

from service_tests.cases import each
from service_tests.checks import assert_problem, member, post, put

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


@pytest.mark.parametrize("encoding", LIKE_VECTORS)
def test_of_says_which_they_are(http: httpx.Client, square: str, encoding: str) -> None:
    x, y = [[0, 256 + 1, 512 + 5]], [[0, 256 + 1, 512 + 4]]
    if encoding != "one_hot":
        x, y = ([[number % 256 % 6 for number in row] for row in rows] for rows in (x, y))
    query = f"encoding={encoding}" + ("" if encoding in ("zero_bit", "fingerprint") else "&bits_of=mixed_index")
    of_codes = similarity(http, square, f"{query}&of=codes", x, y)
    assert read_as(of_codes) == "codes"
    c = 0 if encoding in ("zero_bit", "fingerprint") else 2.0**-8
    np.testing.assert_allclose(member(of_codes, "estimate"), [(2 / 3 - c) / (1 - c)], rtol=1e-12)
    of_vectors = similarity(http, square, f"{query}&of=vectors", x, y)
    assert read_as(of_vectors) == "vectors"
    whole = np.array([x[0], y[0]])
    np.testing.assert_allclose(
        member(of_vectors, "exact"), [whole.min(axis=0).sum() / whole.max(axis=0).sum()], rtol=1e-6
    )


def test_the_number_two_means_the_same_as_two_point_zero(http: httpx.Client, square: str) -> None:
    for query in ("", "encoding=pairs", "encoding=packed&bits=16", "of=vectors", "encoding=b_bit&of=vectors"):
        whole, decimal = (similarity(http, square, query, [row]) for row in ([1, 2, 3], [1.0, 2.0, 3.0]))
        assert read_as(whole) == "vectors", query
        assert whole.json() == decimal.json()
    for query in ("encoding=b_bit&of=codes", "of=codes"):
        assert read_as(similarity(http, square, query, [ROW])) == "codes"
        document = assert_problem(http, similarity(http, square, query, [[1.0, 2.0, 3.0]]), 422, "invalid-input", "/x")
        assert "whole numbers" in document["detail"]


def test_shapes_that_only_one_of_them_has_need_no_word(http: httpx.Client, square: str) -> None:
    sparse = [{"indices": [0], "values": [1]}]
    nested = [[[1, 0], [2, 0], [3, 0]]]
    one_hot = {"indptr": [0, 3], "indices": [0, 257, 514], "shape": [1, 768]}
    for encoding in LIKE_VECTORS:
        assert read_as(similarity(http, square, f"encoding={encoding}", sparse)) == "vectors"
    assert read_as(similarity(http, square, "encoding=pairs", nested)) == "codes"
    assert read_as(similarity(http, square, "", nested)) == "codes"
    assert read_as(similarity(http, square, "encoding=one_hot", one_hot)) == "codes"
    assert read_as(similarity(http, square, "encoding=packed&bits=16", [[1, 2, 3, 4, 5, 6]])) == "codes"


def test_codes_without_an_encoding_are_pairs_or_zero_bit(http: httpx.Client, square: str) -> None:
    nested = [[[1, 0], [2, 0], [3, 0]]]
    for x, encoding in ((nested, "pairs"), ([[1, 2, 3]], "zero_bit"), ([], "zero_bit")):
        unnamed, named = (similarity(http, square, f"{query}of=codes", x) for query in ("", f"encoding={encoding}&"))
        assert read_as(unnamed) == "codes"
        assert unnamed.json() == named.json()
    assert read_as(similarity(http, square, "of=vectors", [])) == "vectors"
    assert read_as(similarity(http, square, "encoding=b_bit&of=vectors", [])) == "vectors"


def test_what_is_not_what_it_is_said_to_be_is_refused(http: httpx.Client, square: str) -> None:
    nested = [[[1, 0], [2, 0], [3, 0]]]
    for query, x in (
        ("of=vectors", nested),
        ("encoding=pairs&of=vectors", nested),
        ("encoding=pairs&of=codes", [ROW]),
        ("of=codes", [{"indices": [0], "values": [1]}]),
        ("encoding=b_bit&of=codes", [[1, 2]]),
        ("encoding=b_bit&of=vectors", [[1, 2]]),
        ("encoding=one_hot&of=vectors", {"indptr": [0, 3], "indices": [0, 257, 514], "shape": [1, 768]}),
    ):
        document = assert_problem(http, similarity(http, square, query, x), 422, "invalid-input")
        assert document["errors"][0]["pointer"].startswith("/x"), query
    for query in ("of=codez", "of="):
        document = assert_problem(http, similarity(http, square, query, [ROW]), 422, "invalid-input")
        assert document["errors"][0]["parameter"] == "of"
