"""Gram blocks over HTTP."""

import httpx
import numpy as np
import pytest

from service_tests.api.conftest import SPEC
from service_tests.cases import each
from service_tests.checks import JSON, NPY, array, assert_problem, member, post, post_npy, put

pytestmark = pytest.mark.usefixtures("standing")

X = np.array([[0.5, -1.25, 2], [0, 0.5, 0], [3, 0, -0.125]], np.float32)
Y = np.array([[1, 1, 1], [0.5, -1.25, 2]], np.float32)


def body(y: bool = True) -> dict[str, object]:
    return {"x": X.tolist(), **({"y": Y.tolist()} if y else {})}


@pytest.mark.parametrize("title", ["cos_sin", "phase", "float64", "normalized"])
def test_the_approximate_block_is_the_product_of_the_features(http: httpx.Client, title: str) -> None:
    z_x, z_y = (array(post_npy(http, f"standing-{title}/transform", rows)) for rows in (X, Y))
    answer = post(http, f"standing-{title}/kernel", body())
    assert set(answer.json()) == {"approximate"}
    np.testing.assert_allclose(member(answer, "approximate"), z_x @ z_y.T, rtol=0, atol=2e-6)
    np.testing.assert_allclose(
        member(post(http, f"standing-{title}/kernel", body(y=False)), "approximate"), z_x @ z_x.T, rtol=0, atol=2e-6
    )


def test_the_complex_block_is_the_hermitian_product(http: httpx.Client) -> None:
    z_x, z_y = (array(post_npy(http, "standing-complex/transform", rows)) for rows in (X, Y))
    block = post(http, "standing-complex/kernel", body()).json()["approximate"]
    np.testing.assert_allclose(
        np.array(block["real"]) + 1j * np.array(block["imag"]), z_x @ z_y.conj().T, rtol=0, atol=2e-6
    )


@pytest.mark.parametrize("title", ["cos_sin", "complex64"])
def test_the_exact_block_comes_beside_it(http: httpx.Client, title: str) -> None:
    answer = post(http, f"standing-{title}/kernel?exact=true", body())
    assert set(answer.json()) == {"approximate", "exact"}
    squared = ((X[:, None] - Y[None]).astype(float) ** 2).sum(axis=2)
    np.testing.assert_allclose(member(answer, "exact"), np.exp(-squared / (2 * 1.5**2)), rtol=0, atol=1e-6)
    assert set(post(http, f"standing-{title}/kernel?exact=false", body()).json()) == {"approximate"}


def test_the_exact_block_of_a_hashing_map_is_the_min_max_kernel(http: httpx.Client) -> None:
    answer = post(http, "standing-gmm/kernel?exact=true", body())

    def parts(rows: np.ndarray) -> np.ndarray:
        return np.hstack([np.maximum(rows, 0), np.maximum(-rows, 0)]).astype(float)

    u, v = parts(X)[:, None], parts(Y)[None]
    exact = np.minimum(u, v).sum(axis=2) / np.maximum(u, v).sum(axis=2)
    # The map is a float32 one: it rounds the rows, and nothing after them.
    np.testing.assert_allclose(member(answer, "exact"), exact, rtol=1e-14)
    assert array(post(http, "standing-gmm/kernel?exact=true", body(), NPY)).dtype == np.float64
    assert exact[0, 1] == 1
    assert member(answer, "approximate")[0, 1] == 1


@pytest.mark.parametrize("title", ["cos_sin", "gmm", "complex"])
def test_the_blocks_come_as_npy_too(http: httpx.Client, title: str) -> None:
    path = f"standing-{title}/kernel"
    alone = array(post_npy(http, path, X))
    assert alone.shape == (3, 3)
    np.testing.assert_array_equal(alone, array(post(http, path, body(y=False), NPY)))
    stacked = array(post_npy(http, f"{path}?exact=true", X))
    assert stacked.shape == (2, 3, 3)
    np.testing.assert_array_equal(stacked[0], alone)
    exact = member(post_npy(http, f"{path}?exact=true", X, JSON), "exact")
    np.testing.assert_allclose(stacked[1], exact, rtol=0, atol=1e-7)


@each("title", ["cos_sin", "complex", "gmm"])
@each("query", ["", "?exact=true"])
def test_blocks_may_be_empty(http: httpx.Client, title: str, query: str) -> None:
    path = f"standing-{title}/kernel{query}"
    assert array(post(http, path, {"x": []}, NPY)).shape[-2:] == (0, 0)
    assert array(post(http, path, {"x": X.tolist(), "y": []}, NPY)).shape[-2:] == (3, 0)
    assert array(post(http, path, {"x": [], "y": Y.tolist()}, NPY)).shape[-2:] == (0, 2)
    assert post(http, path, {"x": []}).status_code == 200


@pytest.mark.parametrize("title", ["cos_sin", "gmm"])
def test_sparse_and_dense_rows_may_meet(http: httpx.Client, title: str) -> None:
    x = [{"indices": np.flatnonzero(row).tolist(), "values": row[row != 0].tolist()} for row in X]
    mixed = post(http, f"standing-{title}/kernel?exact=true", {"x": x, "y": Y.tolist()})
    dense = post(http, f"standing-{title}/kernel?exact=true", body())
    for name in ("approximate", "exact"):
        np.testing.assert_allclose(member(mixed, name), member(dense, name), rtol=0, atol=1e-6)


def test_an_exact_kernel_beyond_the_dtype_is_refused_and_not_null(http: httpx.Client, name: str) -> None:
    fields = SPEC | {
        "kernel": {"kind": "polynomial", "degree": 4, "gamma": 1, "coef0": 0},
        "sampler": {"kind": "uploaded_landmarks", "landmarks": [[1, 0, 0]]},
        "s": None,
    }
    body = {"x": [[1, 2, 0], [1, 5e9, 0]]}
    for dtype in ("float32", "float64"):
        assert put(http, f"{name}-{dtype}", fields | {"dtype": dtype}).status_code == 201
        assert post(http, f"{name}-{dtype}/kernel", body).json() == {"approximate": [[1, 1], [1, 1]]}
        answer = post(http, f"{name}-{dtype}/kernel?exact=true", body)
        if dtype == "float32":
            document = assert_problem(http, answer, 422, "invalid-input")
            assert "an exact kernel of these rows is 3.91e+77, outside the range of float32" in document["detail"]
        else:
            np.testing.assert_allclose(member(answer, "exact")[1], [(1 + 1e10) ** 4, 25e18**4], rtol=1e-6)
