"""Maps whose length scale or input is taken from a dataset: the numbers that they get, and what gives none."""

import json
from typing import Any

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.distance import cdist, pdist

from service_tests.api.left_open import ROWS, created, spec_of
from service_tests.checks import array, assert_problem, post_npy, put, put_dataset

KERNELS: dict[str, dict[str, Any]] = {
    "gaussian": {},
    "laplacian": {},
    "cauchy": {},
    "matern": {"nu": 1.5},
    "rational_quadratic": {"alpha": 1.0},
    "anova": {"subsets": [[0, 1], [2, 3]]},
}


def tenth(rows: NDArray[np.float64], metric: Any = "euclidean") -> float:
    """The mean distance to the tenth neighbour."""
    return float(np.sort(cdist(rows, rows, metric), axis=1)[:, 10].mean())


@pytest.mark.parametrize("kind", KERNELS)
def test_a_length_scale_is_taken_from_all_rows_by_the_metric_of_the_kernel(
    http: httpx.Client, dataset: str, kind: str
) -> None:
    metric: Any = "cityblock" if kind == "laplacian" else "euclidean"
    told = {"nearest_neighbor": tenth(ROWS, metric), "median": float(np.median(pdist(ROWS, metric)))}
    deviations = ROWS.std(axis=0) * [1, 1, 1, 0]
    for heuristic, scale in told.items():
        kernel = {"kind": kind, "length_scale": heuristic, "dataset": dataset, **KERNELS[kind]}
        found = created(http, f"{dataset}-{heuristic}", spec_of(kernel))["spec"]["kernel"]
        assert found.items() >= {"kind": kind, **KERNELS[kind]}.items()
        assert "dataset" not in found
        assert found["length_scale"] == pytest.approx(scale, rel=1e-12)
        of_each = {**kernel, "length_scale": {"per_column": heuristic}}
        scales = created(http, f"{dataset}-{heuristic}-each", spec_of(of_each))["spec"]["kernel"]["length_scale"]
        by_hand = scale * np.append(deviations[:3] / np.sqrt(np.mean(deviations**2)), 1)
        np.testing.assert_allclose(scales, by_hand, rtol=1e-9)


@pytest.mark.parametrize("fit", ["standardize", "min_max", "robust", "max_abs"])
def test_an_input_is_fitted_and_the_length_scale_is_of_rows_after_it(
    http: httpx.Client, dataset: str, fit: str
) -> None:
    asked = spec_of({"length_scale": "nearest_neighbor"}, input={"fit": fit, "dataset": dataset, "unit_norm": True})
    spec = created(http, dataset, asked)["spec"]
    assert set(spec["input"]) == {"center", "scale", "unit_norm", "missing"}
    by_hand = (ROWS - spec["input"]["center"]) / spec["input"]["scale"]
    by_hand /= np.linalg.norm(by_hand, axis=1, keepdims=True)
    assert spec["kernel"]["length_scale"] == pytest.approx(tenth(by_hand), rel=1e-9)
    assert put(http, f"{dataset}-by-hand", {**spec, "input": None}).status_code == 201
    raw = array(post_npy(http, f"{dataset}/transform", ROWS))
    scaled = array(post_npy(http, f"{dataset}-by-hand/transform", by_hand))
    np.testing.assert_allclose(raw, scaled, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("kernel", "members", "pointer", "said"),
    [
        ({"length_scale": "median", "dataset": "none"}, {}, "/kernel/dataset", "there is no dataset 'none'"),
        ({"length_scale": "median"}, {}, "/kernel/length_scale", "no dataset to take the length scale from"),
        ({"length_scale": "median", "dataset": "DATASET"}, {"input_dim": 5}, "/kernel/dataset", "4 columns"),
        ({"length_scale": "nearest_neighbor", "dataset": "DATASET-ten"}, {}, "/kernel/length_scale", "needs 11"),
        ({"length_scale": "median", "dataset": "DATASET-equal"}, {}, "/kernel/length_scale", "is 0"),
        ({"length_scale": "mean", "dataset": "DATASET"}, {}, "/kernel/length_scale", 'got "mean"'),
        (
            {"length_scale": {"dataset": "DATASET"}},
            {},
            "/kernel/length_scale",
            "got an object without per_column",
        ),
        ({"length_scale": {"per_column": "median", "rows": 5}}, {}, "/kernel/length_scale/rows", "not permitted"),
        ({"length_scale": 2, "dataset": "DATASET"}, {}, "/kernel/dataset", "not permitted"),
        ({"length_scale": "median", "sigma": 2, "dataset": "DATASET"}, {}, "/kernel", "exactly one"),
        ({"kind": "correlation_rbf", "gamma": 1, "length_scale": "median"}, {}, "/kernel/length_scale", "no length"),
        ({"length_scale": 1}, {"input": {"fit": "robust"}}, "/input/dataset", "required"),
        ({"length_scale": 1}, {"input": {"fit": "z", "dataset": "DATASET"}}, "/input/fit", '"z" came'),
        ({"length_scale": 1}, {"input": {"dataset": "DATASET"}}, "/input/dataset", "not permitted"),
        (
            {"length_scale": 1},
            {"input": {"fit": "robust", "dataset": "DATASET"}, "input_dim": 9},
            "/input/dataset",
            "9",
        ),
    ],
)
def test_what_cannot_be_settled_is_refused_at_its_place(
    http: httpx.Client, dataset: str, kernel: dict[str, Any], members: dict[str, Any], pointer: str, said: str
) -> None:
    put_dataset(http, f"{dataset}-ten", ROWS[:10])
    put_dataset(http, f"{dataset}-equal", ROWS[[3] * 20])
    body = json.dumps(spec_of(kernel, **members)).replace("DATASET", dataset).encode()
    document = assert_problem(http, put(http, f"{dataset}-map", body), 422, "invalid-input", pointer)
    assert said in document["detail"]
    assert http.get(f"/v1/maps/{dataset}-map").status_code == 404
