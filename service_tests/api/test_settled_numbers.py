"""Maps whose length scale or input is taken from a dataset: the numbers that they get, and what gives none."""

import json
from typing import Any

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.distance import cdist, pdist

from service_tests.api.left_open import ROWS, created, spec_of
from service_tests.checks import RESPOND_ASYNC, array, assert_problem, finished, post_npy, put, put_dataset

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


def test_the_dataset_may_be_named_in_four_places(http: httpx.Client, dataset: str) -> None:
    scale, median = float(np.median(pdist(ROWS))), {"length_scale": "median"}
    learned = {"kind": "landmarks", "dataset": dataset}
    specs = [
        spec_of({**median, "dataset": dataset}),
        spec_of({"length_scale": {"per_column": "median", "dataset": dataset}}),
        spec_of(median, sampler=learned),
        spec_of(median, input={"fit": "max_abs", "dataset": dataset}),
    ]
    for i, spec in enumerate(specs):
        found = created(http, f"{dataset}-{i}", spec)["spec"]["kernel"]["length_scale"]
        if i in (0, 2):
            assert found == pytest.approx(scale, rel=1e-12)
    other = {"per_column": "median", "dataset": dataset}
    twice = put(http, f"{dataset}-twice", spec_of({"length_scale": other, "dataset": dataset}))
    assert_problem(http, twice, 422, "invalid-input", "/kernel/length_scale/dataset")


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


def test_an_input_that_leaves_rows_of_zeros_to_hashes_warns(http: httpx.Client, name: str) -> None:
    rows = np.array([[0.0, 1], [1, 0], [0, 0], [2, 3], [0, 0]])
    assert put_dataset(http, name, rows).status_code == 201
    hashes = {"input_dim": 2, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "s": 8}
    for fit, warned in (("min_max", True), ("standardize", False)):
        fitted = {**hashes, "input": {"fit": fit, "dataset": name}}
        warnings = created(http, f"{name}-{fit}", fitted)["warnings"]
        assert any("2 of the 5 rows" in one for one in warnings) == warned
        answer = http.put(f"/v1/maps/{name}-{fit}-job", json=fitted, headers=RESPOND_ASYNC)
        assert answer.json()["warnings"] == warnings
        finished(http, httpx.Response(202, headers={"Location": answer.json()["job"]}))
        assert http.get(f"/v1/maps/{name}-{fit}-job").json()["warnings"] == warnings


def test_sparse_rows_have_the_same_scales(http: httpx.Client, dataset: str) -> None:
    rows = np.where(np.random.default_rng(12).random((60, 4)) < 0.5, 0, ROWS[:60])
    listed = [{"indices": np.flatnonzero(row).tolist(), "values": row[row != 0].tolist()} for row in rows]
    sparse = put_dataset(http, f"{dataset}-sparse", {"vectors": listed, "input_dim": 4})
    assert (sparse.status_code, sparse.json()["sparse"]) == (201, True)
    scales = {}
    for form in ("sparse", "dense"):
        put_dataset(http, f"{dataset}-{form}", rows)
        scaled = {"length_scale": {"per_column": "nearest_neighbor", "dataset": f"{dataset}-{form}"}}
        asked = spec_of(scaled, input={"fit": "max_abs", "dataset": f"{dataset}-{form}"})
        scales[form] = created(http, f"{dataset}-{form}", asked)["spec"]["kernel"]["length_scale"]
    np.testing.assert_allclose(scales["sparse"], scales["dense"], rtol=1e-12)
    centred = spec_of({"length_scale": 1}, input={"fit": "standardize", "dataset": f"{dataset}-sparse"})
    assert_problem(http, put(http, f"{dataset}-c", centred), 422, "invalid-input", "/input/fit")


@pytest.mark.parametrize(
    ("kernel", "members", "pointer", "said"),
    [
        ({"length_scale": "median", "dataset": "none"}, {}, "/kernel/dataset", "there is no dataset 'none'"),
        ({"length_scale": "median"}, {}, "/kernel/length_scale", "no dataset is named"),
        ({"length_scale": "median", "dataset": "DATASET"}, {"input_dim": 5}, "/kernel/dataset", "4 columns"),
        ({"length_scale": "nearest_neighbor", "dataset": "DATASET-ten"}, {}, "/kernel/length_scale", "needs 11"),
        ({"length_scale": "median", "dataset": "DATASET-equal"}, {}, "/kernel/length_scale", "is 0"),
        ({"length_scale": {"per_column": "median", "dataset": "none"}}, {}, "/kernel/length_scale/dataset", "no data"),
        ({"length_scale": "mean", "dataset": "DATASET"}, {}, "/kernel/length_scale", '"mean" came; a number, a list'),
        ({"length_scale": {"per_column": "mean"}}, {}, "/kernel/length_scale/per_column", '"mean" came'),
        (
            {"length_scale": {"dataset": "DATASET"}},
            {},
            "/kernel/length_scale",
            "without per_column came; a number, a list",
        ),
        (
            {"length_scale": {"median": True}},
            {},
            "/kernel/length_scale",
            '"nearest_neighbor", "median" or {"per_column"',
        ),
        ({"length_scale": None}, {}, "/kernel/length_scale", "null came; a number, a list"),
        ({"length_scale": {"per_column": "median", "rows": 5}}, {}, "/kernel/length_scale/rows", "not permitted"),
        ({"length_scale": "median", "dataset": "a b"}, {}, "/kernel/dataset", "a b"),
        ({"length_scale": "median", "dataset": "DATASET", "un": 1}, {}, "/kernel/un", "not permitted"),
        ({"length_scale": 2, "dataset": "DATASET"}, {}, "/kernel/dataset", "not permitted"),
        ({"length_scale": ["median"] * 4, "dataset": "DATASET"}, {}, "/kernel/length_scale/0", "number"),
        ({"sigma": "median", "dataset": "DATASET"}, {}, "/kernel/sigma", "number"),
        ({"gamma": {"per_column": "median"}}, {}, "/kernel/gamma", "number"),
        ({"length_scale": "median", "sigma": 2, "dataset": "DATASET"}, {}, "/kernel", "exactly one"),
        ({"kind": "matern", "length_scale": "median", "dataset": "DATASET"}, {}, "/kernel/nu", "required"),
        ({"kind": "square", "length_scale": "median", "dataset": "DATASET"}, {}, "/kernel/kind", "square"),
        ({"kind": ["gaussian"], "length_scale": "median", "dataset": "DATASET"}, {}, "/kernel/kind", "gaussian"),
        ({"kind": {}, "length_scale": {"per_column": "median"}}, {}, "/kernel/kind", "tag"),
        ({"kind": "correlation_rbf", "gamma": 1, "length_scale": "median"}, {}, "/kernel/length_scale", "no length"),
        ({"kind": "gmm", "length_scale": "median"}, {}, "/kernel/length_scale", "gmm has no length_scale"),
        ({"kind": "polynomial", "length_scale": "median"}, {}, "/kernel/length_scale", "no length_scale"),
        ({"kind": "chi_squared", "length_scale": "median"}, {}, "/kernel/length_scale", "no length_scale"),
        ({"length_scale": 1}, {"input": {"fit": "robust"}}, "/input/dataset", "required"),
        ({"length_scale": 1}, {"input": {"fit": "robust", "dataset": "none"}}, "/input/dataset", "no dataset 'none'"),
        ({"length_scale": 1}, {"input": {"fit": "z", "dataset": "DATASET"}}, "/input/fit", '"z" came'),
        ({"length_scale": 1}, {"input": {"fit": "robust", "dataset": "DATASET", "scale": 2}}, "/input/scale", "not"),
        ({"length_scale": 1}, {"input": {"dataset": "DATASET"}}, "/input/dataset", "not permitted"),
        (
            {"length_scale": 1},
            {"input": {"fit": "robust", "dataset": "DATASET"}, "input_dim": 9},
            "/input/dataset",
            "9",
        ),
        ({"length_scale": 1}, {"seed": None, "sede": 1}, "/sede", "not permitted"),
        ({"length_scale": 1}, {"seed": "null"}, "/seed", "integer"),
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


@pytest.mark.nightly
def test_the_length_scale_of_recommendations_is_that_of_the_whole_dataset(http: httpx.Client, dataset: str) -> None:
    body = {"dataset": dataset, "rows": 20, "budget": 8, "seeds": 1, "samplers": ["halton"]}
    for scale in ("nearest_neighbor", {"per_column": "nearest_neighbor"}):
        kernel = {"kind": "cauchy", "length_scale": scale}
        answer = http.post("/v1/recommendations", json={**body, "kernel": kernel})
        assert answer.status_code == 200, answer.text
        asked = spec_of({**kernel, "dataset": dataset})
        record = created(http, f"{dataset}-{'each' if isinstance(scale, dict) else 'all'}", asked)
        assert answer.json()["best"]["kernel"] == record["spec"]["kernel"]
        taken = http.post("/v1/recommendations", json={**body, "kernel": kernel}, headers=RESPOND_ASYNC)
        job = finished(http, taken)
        assert http.get(job["result"]).json()["best"]["kernel"] == record["spec"]["kernel"]
    posted = {"vectors": ROWS.tolist(), "budget": 8, "seeds": 1, "samplers": ["halton"], "kernel": kernel}
    assert http.post("/v1/recommendations", json=posted).json()["best"]["kernel"] == record["spec"]["kernel"]
