"""Features over HTTP: any format in, any format out, the same numbers."""

from typing import Any

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray

from service_tests.cases import each
from service_tests.checks import JSON, NPY, array, member, post, post_npy

ROWS = np.array([[0.5, -1.25, 2], [0, 0, 0], [3, 0, -0.125]], np.float32)
FOURIER = ["cos_sin", "phase", "complex", "complex64", "float64", "normalized"]


def sparse(rows: NDArray[Any]) -> list[Any]:
    return [{"indices": np.flatnonzero(row).tolist(), "values": row[row != 0].tolist()} for row in rows]


def expected(http: httpx.Client, title: str, rows: NDArray[Any]) -> NDArray[Any]:
    """Features by the contract's own formulas, from the frozen arrays."""
    path = f"/v1/maps/standing-{title}"
    spec = http.get(path).json()["spec"]
    phases = rows.astype(float) @ member(http.get(f"{path}/frequencies"), "frequencies").T
    weights = member(http.get(f"{path}/weights"), "weights")
    features: NDArray[Any]
    if spec["form"] == "complex":
        features = np.sqrt(weights) * np.exp(-1j * phases)
    elif spec["form"] == "phase":
        features = np.sqrt(2 * weights) * np.cos(phases + member(http.get(f"{path}/offsets"), "offsets"))
    else:
        features = np.hstack([np.sqrt(weights) * np.cos(phases), np.sqrt(weights) * np.sin(phases)])
    return features / np.linalg.norm(features, axis=1, keepdims=True) if spec["normalize"] else features


def dtype_of(title: str) -> np.dtype[Any]:
    names = {"complex": "complex64", "complex64": "complex128", "float64": "float64"}
    return np.dtype(names.get(title, "float32"))


def from_json(answer: httpx.Response, name: str = "features") -> NDArray[Any]:
    numbers = answer.json()[name]
    return (
        np.array(numbers["real"]) + 1j * np.array(numbers["imag"]) if isinstance(numbers, dict) else np.array(numbers)
    )


@pytest.mark.usefixtures("standing")
@each("title", FOURIER)
def test_features_are_what_the_contract_says(http: httpx.Client, title: str) -> None:
    features = array(post_npy(http, f"standing-{title}/transform", ROWS))
    assert features.dtype == dtype_of(title)
    tolerance = 2e-6 if features.dtype.itemsize == (8 if np.iscomplexobj(features) else 4) else 1e-13
    np.testing.assert_allclose(features, expected(http, title, ROWS), rtol=0, atol=tolerance)


@pytest.mark.usefixtures("standing")
@each("title", FOURIER)
def test_all_formats_give_the_same_features(http: httpx.Client, title: str) -> None:
    path, body = f"standing-{title}/transform", {"vectors": ROWS.tolist()}
    features = array(post_npy(http, path, ROWS))
    np.testing.assert_array_equal(array(post(http, path, body, NPY)), features)
    for answer in (post_npy(http, path, ROWS, JSON), post(http, path, body)):
        assert answer.headers["content-type"] == JSON
        assert set(answer.json()) == {"features"}
        np.testing.assert_array_equal(from_json(answer).astype(features.dtype), features)


@pytest.mark.usefixtures("standing")
@each("title", FOURIER)
def test_sparse_rows_give_the_features_of_dense_ones(http: httpx.Client, title: str) -> None:
    path = f"standing-{title}/transform"
    dense = array(post_npy(http, path, ROWS))
    found = array(post(http, path, {"vectors": sparse(ROWS)}, NPY))
    assert found.dtype == dense.dtype
    np.testing.assert_allclose(found, dense, rtol=0, atol=1e-6)
    with_zero = [{"indices": [0, 1, 2], "values": row} for row in ROWS.tolist()]
    np.testing.assert_allclose(array(post(http, path, {"vectors": with_zero}, NPY)), dense, rtol=0, atol=1e-6)


@pytest.mark.usefixtures("standing")
@pytest.mark.parametrize(
    "same",
    [np.asfortranarray(ROWS), ROWS.astype(">f4"), ROWS.astype("<f8"), np.asfortranarray(ROWS.astype(">f8"))],
    ids=["Fortran order", "big-endian", "float64", "big-endian float64 in Fortran order"],
)
def test_the_layout_of_a_npy_does_not_matter(http: httpx.Client, same: NDArray[Any]) -> None:
    features = array(post_npy(http, "standing-cos_sin/transform", ROWS))
    np.testing.assert_array_equal(array(post_npy(http, "standing-cos_sin/transform", same)), features)
    assert features.flags.c_contiguous
    assert features.dtype.isnative
