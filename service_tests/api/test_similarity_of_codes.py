"""Similarities of posted codes: those of the vectors they were made of."""

from typing import Any

import httpx
import numpy as np
import pytest

from service_tests.cases import each
from service_tests.checks import assert_problem, member, post
from service_tests.expected_codes import QUERIES, X, Y, hashed

pytestmark = pytest.mark.usefixtures("standing")

S = 16


def similarity(http: httpx.Client, query: str, x: Any, y: Any) -> httpx.Response:
    return post(http, f"standing-gmm/similarity?{query}", {"x": x, "y": y})


def codes(http: httpx.Client, query: str, rows: Any) -> Any:
    """Codes as JSON answers them."""
    return post(http, f"standing-gmm/codes?{query}", {"vectors": rows.tolist()}).json()["codes"]


@each("query", QUERIES)
@each("gamma", ["", "&gamma=2"])
def test_posted_codes_have_the_similarity_of_their_vectors(http: httpx.Client, query: str, gamma: str) -> None:
    of_codes = similarity(http, query + gamma, codes(http, query, X), codes(http, query, Y)).json()
    of_vectors = similarity(http, query + gamma, X.tolist(), Y.tolist()).json()
    assert set(of_codes) == {"estimate", "standard_error", "interval"} | (
        {"rbf_estimate", "rbf_standard_error"} if gamma else set()
    )
    if "index" in query or "zero_bit" in query:  # codes do not know their bias, vectors do
        moved = np.array(of_codes.pop("interval"), float) - np.array(of_vectors["bias"], float)[:, None]
        np.testing.assert_allclose(np.array(of_vectors["interval"], float)[1], np.clip(moved, 0, 1)[1], atol=1e-12)
    assert of_codes == {name: of_vectors[name] for name in of_codes}


@pytest.mark.parametrize("encoding", ["pairs", "zero_bit"])
def test_codes_that_cannot_be_vectors_need_no_encoding(http: httpx.Client, encoding: str) -> None:
    x, y = (codes(http, f"encoding={encoding}", rows) for rows in (X, Y))
    assert similarity(http, "", x, y).json() == similarity(http, f"encoding={encoding}", x, y).json()


@pytest.mark.parametrize("bits", [1, 8, 16])
def test_one_hot_codes_may_come_as_rows_too(http: httpx.Client, bits: int) -> None:
    query = f"encoding=one_hot&bits={bits}&bits_of=pair"
    x, y = (hashed(http, "standing-gmm", rows, query).tolist() for rows in (X, Y))
    as_csr = similarity(http, query, codes(http, query, X), codes(http, query, Y))
    assert similarity(http, query, x, y).json() == as_csr.json()
    assert similarity(http, query, codes(http, query, X), y).json() == as_csr.json()


@pytest.mark.parametrize("bits", [1, 4, 8])
def test_the_inner_product_of_one_hot_rows_is_the_collision_rate(http: httpx.Client, bits: int) -> None:
    query = f"bits={bits}&bits_of=pair"
    expanded = []
    for rows in (X, Y):
        csr = codes(http, f"encoding=one_hot&{query}", rows)
        matrix = np.zeros(csr["shape"])
        for i in range(len(matrix)):
            matrix[i, csr["indices"][csr["indptr"][i] : csr["indptr"][i + 1]]] += 1
        assert matrix.max() == 1
        expanded.append(matrix)
    products = np.einsum("ij,ij->i", *expanded) / S
    x, y = (hashed(http, "standing-gmm", rows, f"encoding=b_bit&{query}") for rows in (X, Y))
    np.testing.assert_allclose(products, (x == y).mean(axis=1), rtol=1e-12)
    c = 2.0**-bits
    estimate = member(similarity(http, f"encoding=one_hot&{query}", X.tolist(), Y.tolist()), "estimate")
    np.testing.assert_allclose(estimate, (products - c) / (1 - c), rtol=1e-12)


def test_estimates_may_lie_below_zero(http: httpx.Client) -> None:
    query = "encoding=b_bit&bits=2&bits_of=pair"
    assert member(similarity(http, query, [[0] * S], [[1] * S]), "estimate") == pytest.approx([-1 / 3])
    rbf = similarity(http, query + "&gamma=1", [[0] * S], [[1] * S])
    assert member(rbf, "rbf_estimate") == pytest.approx([np.exp(-2)])


@pytest.mark.parametrize(
    "query", ["encoding=pairs", "encoding=zero_bit", "encoding=b_bit", "encoding=fingerprint&bits=32"]
)
def test_marked_rows_have_no_similarity(http: httpx.Client, query: str) -> None:
    rows = np.vstack([X[:1], np.zeros((1, 3))])
    marked = post(http, f"standing-gmm/codes?{query}&on_zero=mark", {"vectors": rows.tolist()}).json()["codes"]
    good = codes(http, query, X[:2])
    for x, y, pointer in ((marked, good, "/x/1"), (good, marked, "/y/1")):
        assert_problem(http, similarity(http, query, x, y), 422, "invalid-input", pointer)


def test_marked_one_hot_rows_have_no_similarity(http: httpx.Client) -> None:
    rows = np.vstack([X[:1], np.zeros((1, 3))])
    body = {"vectors": rows.tolist()}
    marked = post(http, "standing-gmm/codes?encoding=one_hot&on_zero=mark", body).json()["codes"]
    good = codes(http, "encoding=one_hot", X[:2])
    answer = similarity(http, "encoding=one_hot", good, marked)
    document = assert_problem(http, answer, 422, "invalid-input", "/y/indptr/1")
    assert "row 1 has 0 codes" in document["detail"]
    assert "on_zero=mark" in document["detail"]
    short = {**good, "indptr": [0, 15, 32]}
    document = assert_problem(
        http, similarity(http, "encoding=one_hot", short, good), 422, "invalid-input", "/x/indptr/0"
    )
    assert "row 0 has 15 codes, 16 are wanted" in document["detail"]
    assert "on_zero" not in document["detail"]


@each("query", QUERIES)
def test_x_and_y_must_have_as_many_rows_of_codes(http: httpx.Client, query: str) -> None:
    answer = similarity(http, query, codes(http, query, X), codes(http, query, Y[:2]))
    assert_problem(http, answer, 422, "invalid-input", "/y")
