"""The arrays of a map: those that are frozen, and those that are computed from them."""

from io import BytesIO

import httpx
import numpy as np
import pytest

from service_tests.checks import array, assert_problem, member, put


@pytest.mark.parametrize(("title", "dtype"), [("phase", np.float32), ("float64", np.float64), ("complex", np.float32)])
def test_frozen_arrays_come_in_json_and_npy(
    http: httpx.Client, standing: dict[str, str], title: str, dtype: type
) -> None:
    shapes = {"frequencies": (16, 3), "weights": (16,)} | ({"offsets": (16,)} if title == "phase" else {})
    for name, shape in shapes.items():
        path = f"/v1/maps/{standing[title]}/{name}"
        binary = array(http.get(path, headers={"Accept": "application/x-npy"}))
        assert binary.shape == shape
        assert binary.dtype == dtype
        as_json = member(http.get(path), name)
        np.testing.assert_array_equal(as_json.astype(dtype), binary)


def test_the_frequencies_of_a_structured_map_are_what_its_features_are_made_of(http: httpx.Client, name: str) -> None:
    sampler = {"kind": "structured_orthogonal", "radii": "independent"}
    kernel = {"kind": "matern", "nu": 1.5, "length_scale": [1.0] * 8 + [3.0]}
    spec = {"input_dim": 9, "s": 40, "kernel": kernel, "sampler": sampler, "dtype": "float64"}
    assert put(http, name, spec).status_code == 201
    frequencies = np.array(http.get(f"/v1/maps/{name}/frequencies").json()["frequencies"])
    rows = np.random.default_rng(1).normal(size=(3, 9))
    features = np.array(http.post(f"/v1/maps/{name}/transform", json={"vectors": rows.tolist()}).json()["features"])
    phases = rows @ frequencies.T
    np.testing.assert_allclose(features, np.concatenate([np.cos(phases), np.sin(phases)], axis=1) / 40**0.5, atol=1e-14)
    missing = assert_problem(http, http.get(f"/v1/maps/{name}/offsets"), 404, "array-not-found")
    assert missing["detail"].endswith("it has frequencies, radii, signs, weights")


def test_the_frequencies_of_a_structured_map_are_refused_if_they_are_too_large(http: httpx.Client, name: str) -> None:
    its_kernel = {"kind": "gaussian", "length_scale": 12.0}
    spec = {"input_dim": 784, "s": 1 << 19, "kernel": its_kernel, "sampler": {"kind": "structured_orthogonal"}}
    assert put(http, name, spec).json()["bytes"] == 512 * 3 * 128 + 4 * (1 << 19)
    address, npy = f"/v1/maps/{name}", {"accept": "application/x-npy"}
    signs, radii = (np.load(BytesIO(http.get(f"{address}/{one}", headers=npy).content)) for one in ("signs", "radii"))
    assert (signs.shape, signs.dtype, radii.shape, radii.dtype) == ((512, 3, 128), np.uint8, (1 << 19,), np.float32)
    refused = assert_problem(http, http.get(f"{address}/frequencies", headers=npy), 413, "too-large")
    assert refused["limit"] == "max_result_bytes"
    answer = http.post(f"{address}/diagnostics/gram", json={"vectors": np.eye(2, 784).tolist()})
    refused = assert_problem(http, answer, 413, "too-large")
    assert refused["limit"] == "max_job_bytes"
    assert "seeds 0 leaves out" in refused["detail"]
