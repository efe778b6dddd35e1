"""Similarities of vectors over HTTP, with error and truth."""

from itertools import permutations
from typing import Any

import httpx
import numpy as np
import pytest

from service_tests.cases import each
from service_tests.checks import member, post
from service_tests.expected_codes import QUERIES, X, Y, expected, hashed, sparse

pytestmark = pytest.mark.usefixtures("standing")

S = 16
EXACT = [3.5 / 3.75, 0.5, 0]
GAMMA = 1.5
OF_VECTORS = {"estimate", "standard_error", "exact", "zero_bit", "bias", "interval"}
OF_RBF = {"rbf_estimate", "rbf_standard_error"}
OF_RBF_OF_VECTORS = OF_RBF | {"rbf_exact", "rbf_bias", "rbf_interval"}


def similarity(http: httpx.Client, x: Any, y: Any, query: str = "", accept: str | None = None) -> httpx.Response:
    return post(http, f"standing-gmm/similarity?{query}", {"x": x, "y": y}, accept)


def numbers(answer: httpx.Response, name: str) -> Any:
    """A member, its nulls as NaN."""
    return np.array(answer.json()[name], np.float64)


def rates(http: httpx.Client, query: str) -> list[float]:
    """How often codes of X and Y agree, counted one by one."""
    x, y = (expected(hashed(http, "standing-gmm", rows, "encoding=pairs"), query) for rows in (X, Y))
    return [sum(a == b for a, b in zip(*rows, strict=True)) / S for rows in zip(x, y, strict=True)]


def chances(http: httpx.Client, query: str) -> Any:
    """How often codes of different samples of X and Y agree."""
    if "bits=" not in query:
        return np.zeros(3)
    bits = int(query.partition("bits=")[2].partition("&")[0])
    if "bits_of=index" not in query:
        return np.full(3, 2.0**-bits)
    negative = [np.mean(hashed(http, "standing-gmm", rows, "encoding=zero_bit") % 2, axis=1) for rows in (X, Y)]
    return np.array([chance(3, bits, shares) for shares in zip(*negative, strict=True)])


def chance(d: int, bits: int, negative: tuple[float, float]) -> float:
    """How often two different ones of 2d indices end alike, their signs being drawn with these shares of negative."""
    shares = [[share if i % 2 else 1 - share for i in range(2 * d)] for share in negative]
    different = [(i, j, shares[0][i] * shares[1][j]) for i, j in permutations(range(2 * d), 2)]
    return sum(w for i, j, w in different if i % 2**bits == j % 2**bits) / sum(w for _, _, w in different)


@each("query", ["", *QUERIES])
@each("written", [np.ndarray.tolist, sparse])
def test_the_similarity_of_vectors_comes_with_error_and_truth(http: httpx.Client, query: str, written: Any) -> None:
    answer = similarity(http, written(X), written(Y), query)
    assert set(answer.json()) == OF_VECTORS
    # Packed codes are compared hash by hash.
    rate = np.array(rates(http, query.replace("packed", "b_bit") or "encoding=pairs"))
    assert len(set(rate)) > 1, "the rows make no interesting case"
    c = chances(http, query)
    with np.errstate(invalid="ignore"):  # 0/0 where one bit says nothing of a pair
        estimate, standard_error = (rate - c) / (1 - c), np.sqrt(rate * (1 - rate) / S) / (1 - c)
    assert np.isnan(estimate).tolist() == [one is None for one in answer.json()["estimate"]]
    np.testing.assert_allclose(numbers(answer, "estimate"), estimate, rtol=1e-12)
    np.testing.assert_allclose(numbers(answer, "standard_error"), standard_error, rtol=1e-12)
    np.testing.assert_allclose(member(answer, "exact"), EXACT, rtol=1e-6)
    np.testing.assert_allclose(member(answer, "zero_bit"), rates(http, "encoding=zero_bit"), rtol=1e-12)


@pytest.mark.parametrize("query", ["", "encoding=b_bit&bits=4&bits_of=pair", "encoding=fingerprint&bits=32"])
def test_gamma_adds_the_rbf_kernel(http: httpx.Client, query: str) -> None:
    answer = similarity(http, X.tolist(), Y.tolist(), f"gamma={GAMMA}&{query}")
    assert set(answer.json()) == OF_VECTORS | OF_RBF_OF_VECTORS
    g = np.clip(member(answer, "estimate"), 0, 1)
    kernel = np.exp(-2 * GAMMA * ((1 - g) / (1 + g)) ** 2)
    np.testing.assert_allclose(member(answer, "rbf_estimate"), kernel, rtol=1e-12)
    slope = 8 * GAMMA * (1 - g) / (1 + g) ** 3 * kernel
    np.testing.assert_allclose(
        member(answer, "rbf_standard_error"), slope * member(answer, "standard_error"), rtol=1e-12
    )
    np.testing.assert_allclose(member(answer, "rbf_exact"), rbf(X, Y), rtol=1e-6)
    g = np.array(EXACT)
    bias = np.exp(-2 * GAMMA * ((1 - g) / (1 + g)) ** 2) - rbf(X, Y)
    np.testing.assert_allclose(member(answer, "rbf_bias"), bias, atol=1e-6)
    assert np.ptp(bias) > 0.05


def rbf(x: Any, y: Any) -> Any:
    """e^(−γ(1 − ρ)) of rows that are centred already."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    rho = (x * y).sum(axis=1) / np.linalg.norm(x, axis=1) / np.linalg.norm(y, axis=1)
    return np.exp(-GAMMA * (1 - rho))
