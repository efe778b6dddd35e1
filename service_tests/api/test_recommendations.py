"""Recommendations over HTTP."""

from typing import Any

import httpx
import numpy as np
import pytest

from service_tests.cases import each
from service_tests.checks import RESPOND_ASYNC, assert_problem, finished, put, put_dataset

ROWS = np.random.default_rng(6).normal(size=(50, 4)).round(3)
BODY: dict[str, Any] = {
    "vectors": ROWS.tolist(),
    "kernel": {"kind": "gaussian", "length_scale": "nearest_neighbor"},
    "budget": 64,
    "seeds": 2,
    "seed": 3,
}


FIXED: dict[str, Any] = {"kind": "gaussian", "length_scale": 1}


def recommend(http: httpx.Client, accept: str = "application/json", **members: Any) -> httpx.Response:
    body = {name: value for name, value in (BODY | members).items() if value is not None}
    return http.post("/v1/recommendations", json=body, headers={"Accept": accept})


def test_the_best_spec_is_ready_to_put(http: httpx.Client, name: str) -> None:
    answer = recommend(http)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    of_rows = {"rows", "reported_rows", "learned_rows"}
    assert set(found) == of_rows | {"target_reached", "ranked", "best", "baselines", "skipped", "notes"}
    assert (found["rows"], found["reported_rows"], found["learned_rows"]) == (50, 16, None)
    assert found["target_reached"] is None
    assert "a dataset of the rows" in found["notes"][0]
    members = {
        "spec",
        "n_output",
        "error_mean",
        "error_sd",
        "error_low",
        "error_high",
        "bytes",
        "seconds_per_1000_rows",
    }
    members |= {"choosing_error", "score_mean", "score_sd", "choosing_score", "maps", "tied_with_best"}
    assert all(set(trial) == members for trial in found["ranked"])
    assert all(trial["error_low"] < trial["error_mean"] < trial["error_high"] for trial in found["ranked"])
    assert found["best"] == found["ranked"][0]["spec"]
    made = put(http, name, found["best"])
    assert made.status_code == 201, made.text
    assert made.json()["n_output"] == found["ranked"][0]["n_output"] <= 64
    assert made.json()["bytes"] == found["ranked"][0]["bytes"]
    distances = np.sort(np.linalg.norm(ROWS[:, None] - ROWS[None], axis=2))[:, 10]
    assert found["best"]["kernel"]["length_scale"] == pytest.approx(distances.mean(), rel=1e-5)
    errors = [trial["choosing_error"] for trial in found["ranked"]]
    assert errors == sorted(errors)
    assert found["ranked"][0]["tied_with_best"] is True
    assert all(one["reason"] for one in found["skipped"])


def test_as_many_kernels_as_may_be_are_tried_by_a_job_at_scales_of_their_own(http: httpx.Client) -> None:
    kernel = {"kind": "gaussian", "length_scale": "median"}
    rows = np.random.default_rng(7).normal(size=(30, 3))
    body = {"vectors": rows.tolist(), "y": [3e307 * row[0] for row in rows], "kernel": [kernel] * 10, "budget": 8}
    body |= {"samplers": ["monte_carlo"], "seeds": 1, "labels_are": "numbers"}
    taken = http.post("/v1/recommendations", json=body, headers=RESPOND_ASYNC)
    assert taken.status_code == 202, taken.text
    job = finished(http, taken)
    assert job["state"] == "succeeded", job
    assert len({one["spec"]["kernel"]["length_scale"] for one in http.get(job["result"]).json()["ranked"]}) == 3


def test_samplers_may_learn_from_a_dataset(http: httpx.Client, name: str) -> None:
    samplers = [{"kind": "weighted", "dataset": name}, {"kind": "reweighted_grid", "dataset": name}]
    document = assert_problem(http, recommend(http, samplers=samplers), 404, "dataset-not-found", None)
    assert name in document["detail"]
    assert http.put(f"/v1/datasets/{name}", json={"vectors": ROWS.tolist()}).status_code == 201
    taken = http.post("/v1/recommendations", json=BODY | {"samplers": samplers}, headers=RESPOND_ASYNC)
    assert taken.status_code == 202, taken.text
    job = finished(http, taken)
    assert job["state"] == "succeeded", job
    found = http.get(job["result"]).json()
    assert {trial["spec"]["sampler"]["kind"] for trial in found["ranked"]} == {"weighted", "reweighted_grid"}
    spec = found["best"]
    assert put(http, f"{name}-best", spec).status_code == 201
    assert http.get(f"/v1/maps/{name}-best").json()["n_output"] == found["ranked"][0]["n_output"]


@each(
    ("members", "pointer"),
    [
        ({"budget": None}, "/budget"),
        ({"target_error": 0}, "/target_error"),
        ({"objective": "width", "target_error": 0.1}, "/objective"),
        ({"kernel": None}, "/kernel"),
        ({"kernel": {"kind": "gaussian", "length_scale": "mean"}}, "/kernel/length_scale"),
        ({"samplers": ["dice"]}, "/samplers/0/kind"),
        ({"samplers": ["gcws"]}, "/samplers"),
        ({"seeds": 0}, "/seeds"),
        ({"objective": "score"}, "/y"),
        ({"y": [0, 1] * 25, "objective": "error"}, "/objective"),
        ({"y": [0] * 50}, "/y"),
        ({"y": ["a", "b"] * 25, "labels_are": "numbers"}, "/labels_are"),
        ({"y": {"column": 0}}, "/y/dataset"),
        ({"kernel": [{"kind": "gaussian", "length_scale": 1}, {"kind": "square"}]}, "/kernel/1/kind"),
        ({"kernel": [FIXED, {"kind": "gaussian", "length_scale": [1, 2]}]}, "/kernel/1/length_scale"),
        (
            {"kernel": [FIXED, {"kind": "gaussian", "length_scale": "median", "dataset": "nowhere"}]},
            "/kernel/1/dataset",
        ),
        ({"multiples": [0]}, "/multiples/0"),
        ({"vectors": None}, "/vectors"),
        ({"vectors": [{"indices": [0], "values": [1]}]}, "/input_dim"),
        ({"colour": "red"}, "/colour"),
    ],
)
def test_bad_requests_are_refused_by_name(http: httpx.Client, members: dict[str, Any], pointer: str) -> None:
    assert_problem(http, recommend(http, **members), 422, "invalid-input", pointer)


def test_summands_and_scales_of_kernels_count_and_equal_kernels_and_samplers_do_so_once(http: httpx.Client) -> None:
    windows = {"image_shape": [128, 256], "patch_shape": [1, 1]}
    kernels = [{"kind": "anova", "length_scale": 1 + i / 10, "windows": windows} for i in range(10)]
    wide: dict[str, Any] = {"vectors": np.ones((4, 1 << 15)).tolist(), "multiples": [1 + i / 100 for i in range(10)]}
    answer = recommend(http, kernel=kernels, samplers=[{"kind": "monte_carlo"}], **wide)
    assert assert_problem(http, answer, 413, "too-large")["limit"] == "max_operations"
    scales = [{"kind": "gaussian", "length_scale": [1 + i] * (1 << 15)} for i in range(10)]
    grids = [{"kind": "subsampled_grid", "points_per_dim": i} for i in range(2, 52)]
    answer = recommend(http, kernel=scales, samplers=grids, **wide)
    assert assert_problem(http, answer, 413, "too-large")["limit"] == "max_operations"
    once, twice = (
        recommend(http, kernel=[FIXED] * n, samplers=[{"kind": "halton"}] * n).raise_for_status().json()["ranked"]
        for n in (1, 2)
    )
    assert len(once) == len(twice)


@each("of", ["vectors", "dataset"])
def test_an_input_is_fitted_to_the_rows_at_hand_unless_it_names_others(http: httpx.Client, name: str, of: str) -> None:
    """By its name or as an object."""
    for called, rows in ((name, ROWS), (f"{name}-other", 2 * ROWS)):
        put_dataset(http, called, rows).raise_for_status()
    given: dict[str, Any] = {"vectors": None, "dataset": name} if of == "dataset" else {}
    quick = given | {"budget": 8, "samplers": ["sobol"], "kernel": FIXED}
    for asked, scale in (
        ("standardize", 1),
        ({"fit": "standardize"}, 1),
        ({"fit": "standardize", "dataset": f"{name}-other"}, 2),
    ):
        answer = recommend(http, input=asked, **quick)
        assert answer.status_code == 200, answer.text
        assert answer.json()["best"]["input"]["scale"] == pytest.approx(scale * ROWS.std(axis=0))
    assert_problem(http, recommend(http, input="standardise", **quick), 422, "invalid-input", "/input/fit")


def test_labels_bring_the_score_of_a_plain_model(http: httpx.Client) -> None:
    """Labels that a linear model tells, and cross-validation of the same number of rows says how well."""
    labels = ROWS @ [1.0, -1, 0.5, 2] + 0.1 * np.random.default_rng(7).normal(size=50)
    quick: dict[str, Any] = {"budget": 8, "samplers": ["sobol"], "kernel": FIXED, "seeds": 1}
    assert recommend(http, **quick).json()["baselines"] == []
    (told,) = recommend(http, y=labels.tolist(), **quick).json()["baselines"]
    assert told["name"] == "linear"
    assert 0.98 < told["score"] < 1


def test_a_request_takes_few_length_scales_from_rows(http: httpx.Client, name: str) -> None:
    """One for each way, metric and dataset, whatever the dataset is called by."""
    for called in (name, f"{name}-other"):
        put_dataset(http, called, ROWS).raise_for_status()
    kernels: list[dict[str, Any]] = [
        {"kind": kind, "length_scale": way}
        for kind in ("gaussian", "laplacian")
        for way in ("nearest_neighbor", "median")
    ]
    kernels += [{**one, "dataset": name} for one in kernels]
    quick: dict[str, Any] = {"vectors": None, "dataset": name, "budget": 8, "samplers": ["monte_carlo"], "seeds": 1}
    assert recommend(http, kernel=kernels, **quick).status_code == 200
    kernels[-1] = {"kind": "gaussian", "length_scale": "median", "dataset": f"{name}-other"}
    refused = assert_problem(http, recommend(http, kernel=kernels, **quick), 422, "invalid-input")
    assert "too many length scales to be taken from rows" in refused["detail"]


def test_a_long_label_takes_no_more_than_its_own_length(http: httpx.Client) -> None:
    """A million characters beside a hundred thousand labels of one would be 400 GB as an array of equal strings."""
    labels = ["b" * 1_000_000, *["a"] * 99_999]
    refused = assert_problem(http, recommend(http, y=labels, kernel=FIXED), 422, "invalid-input", "/y")
    assert refused["detail"].startswith("expected 50 labels")
    told = recommend(http, y=["b" * 1_000_000, "a"] * 25, kernel=FIXED, samplers=["sobol"], seeds=1)
    assert told.status_code == 413, "it counts as a part of the spec"
    few = recommend(http, y=["b" * 1000, "a"] * 25, kernel=FIXED, samplers=["sobol"], seeds=1, budget=8)
    assert few.status_code == 200
    assert_problem(http, recommend(http, y=["a"] * 50, kernel=FIXED), 422, "invalid-input", "/y")
    merged = [2**53, 2**53 + 1] * 25
    assert_problem(http, recommend(http, y=merged, kernel=FIXED), 422, "invalid-input", "/y")
