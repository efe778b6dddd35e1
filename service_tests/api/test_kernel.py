"""Gram blocks over HTTP."""

import httpx
import numpy as np
import pytest

from service_tests.api.conftest import SPEC
from service_tests.checks import array, assert_problem, member, post, post_npy, put

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


@pytest.mark.parametrize("title", ["cos_sin", "complex64"])
def test_the_exact_block_comes_beside_it(http: httpx.Client, title: str) -> None:
    answer = post(http, f"standing-{title}/kernel?exact=true", body())
    assert set(answer.json()) == {"approximate", "exact"}
    squared = ((X[:, None] - Y[None]).astype(float) ** 2).sum(axis=2)
    np.testing.assert_allclose(member(answer, "exact"), np.exp(-squared / (2 * 1.5**2)), rtol=0, atol=1e-6)
    assert set(post(http, f"standing-{title}/kernel?exact=false", body()).json()) == {"approximate"}


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
            assert "an exact kernel is 3.91e+77, outside the range of float32" in document["detail"]
        else:
            np.testing.assert_allclose(member(answer, "exact")[1], [(1 + 1e10) ** 4, 25e18**4], rtol=1e-6)
