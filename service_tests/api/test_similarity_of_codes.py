"""Similarities of posted codes: those of the vectors they were made of."""

from typing import Any

import httpx
import numpy as np
import pytest

from service_tests.cases import each
from service_tests.checks import member, post
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
