"""Recommendations over HTTP."""

from typing import Any

import httpx
import numpy as np
import pytest

from service_tests.cases import each
from service_tests.checks import RESPOND_ASYNC, assert_problem, finished, put

ROWS = np.random.default_rng(6).normal(size=(50, 4)).round(3)
BODY: dict[str, Any] = {
    "vectors": ROWS.tolist(),
    "kernel": {"kind": "gaussian", "length_scale": "nearest_neighbor"},
    "budget": 64,
    "seeds": 2,
    "seed": 3,
}


FIXED: dict[str, Any] = {"kind": "gaussian", "length_scale": 1}
SCALED: dict[str, Any] = {"kind": "gaussian", "length_scale": "nearest_neighbor"}


def recommend(http: httpx.Client, accept: str = "application/json", **members: Any) -> httpx.Response:
    body = {name: value for name, value in (BODY | members).items() if value is not None}
    return http.post("/v1/recommendations", json=body, headers={"Accept": accept})


def test_the_best_spec_is_ready_to_put(http: httpx.Client, name: str) -> None:
    answer = recommend(http)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    of_rows = {"rows", "reported_rows", "learned_rows"}
    assert set(found) == of_rows | {"target_reached", "ranked", "best", "skipped", "notes"}
    assert (found["rows"], found["reported_rows"], found["learned_rows"]) == (50, 16, None)
    assert found["target_reached"] is None
    assert "as a dataset" in found["notes"][0]
    members = {"spec", "n_output", "error_mean", "error_sd", "bytes", "seconds_per_1000_rows"}
    members |= {"choosing_error", "score_mean", "score_sd", "choosing_score", "maps", "tied_with_best"}
    assert all(set(trial) == members for trial in found["ranked"])
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


def test_the_same_request_has_the_same_answer_but_for_the_time(http: httpx.Client) -> None:
    once, again = ([t | {"seconds_per_1000_rows": 0} for t in recommend(http).json()["ranked"]] for _ in range(2))
    assert once == again


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


def test_rows_of_a_dataset_and_samplers_by_name(http: httpx.Client, name: str) -> None:
    assert http.put(f"/v1/datasets/{name}", json={"vectors": ROWS.tolist()}).status_code == 201
    samplers = ["sobol", {"kind": "halton", "scramble": "reverse_radix"}]
    given: dict[str, Any] = {"samplers": samplers, "target_error": 0.3}
    of_rows = recommend(http, **given).json()
    of_dataset = recommend(http, vectors=None, dataset=name, **given).json()
    assert of_rows["best"] == of_dataset["best"]
    assert of_rows["target_reached"] == (of_rows["ranked"][0]["error_mean"] <= 0.3)
    assert {trial["spec"]["sampler"]["kind"] for trial in of_rows["ranked"]} == {"sobol", "halton"}


def test_of_a_dataset_some_rows_are_learned_from_and_errors_are_of_the_others(http: httpx.Client, name: str) -> None:
    rows = np.random.default_rng(8).normal(size=(120, 4)).round(3)
    assert http.put(f"/v1/datasets/{name}", json={"vectors": rows.tolist()}).status_code == 201
    body = BODY | {"dataset": name, "rows": 60, "seeds": 1}
    body.pop("vectors")
    taken = http.post("/v1/recommendations", json=body, headers=RESPOND_ASYNC)
    job = finished(http, taken)
    assert job["state"] == "succeeded", job
    found = http.get(job["result"]).json()
    assert (found["rows"], found["reported_rows"], found["learned_rows"]) == (60, 12, 108)
    learned = [trial["spec"] for trial in found["ranked"] if trial["spec"]["sampler"].get("dataset") == name]
    assert len(learned) >= 6
    at_once = http.post("/v1/recommendations", json=body, headers={"Prefer": "wait=60"}).json()
    assert [t | {"seconds_per_1000_rows": 0} for t in at_once["ranked"]] == [
        t | {"seconds_per_1000_rows": 0} for t in found["ranked"]
    ]
    assert put(http, f"{name}-map", learned[0]).status_code == 201


def test_a_dataset_of_two_rows_is_not_shared_out(http: httpx.Client, name: str) -> None:
    assert http.put(f"/v1/datasets/{name}", json={"vectors": ROWS[:2].tolist()}).status_code == 201
    given: dict[str, Any] = {"vectors": None, "dataset": name, "kernel": {"kind": "gaussian", "length_scale": 1}}
    assert recommend(http, **given).json()["learned_rows"] is None
    answer = recommend(http, samplers=[{"kind": "landmarks", "dataset": name}], **given)
    assert "2 rows" in assert_problem(http, answer, 422, "invalid-input", "/samplers")["detail"]


def test_a_column_that_is_not_there_is_named(http: httpx.Client, name: str) -> None:
    assert http.put(f"/v1/datasets/{name}", json={"vectors": ROWS.tolist()}).status_code == 201
    for y, pointer in (({"column": 4}, "/y/column"), ({"dataset": name, "column": 4}, "/y/column")):
        answer = recommend(http, vectors=None, dataset=name, y=y)
        assert_problem(http, answer, 422, "invalid-input", pointer)
    assert_problem(http, recommend(http, y={"dataset": "nowhere"}), 404, "dataset-not-found", None)


def test_a_picture_has_a_curve_for_each_sampler(http: httpx.Client) -> None:
    answer = recommend(http, accept="image/svg+xml", samplers=["sobol", "orthogonal"])
    assert answer.headers["content-type"] == "image/svg+xml"
    best = recommend(http, samplers=["sobol", "orthogonal"]).json()["best"]["sampler"]["kind"]
    for words in (
        "sobol",
        "orthogonal",
        "output columns",
        "relative Frobenius error",
        "Maps for posted rows: gaussian",
    ):
        assert words in answer.text
    assert f"best: {best}<" in answer.text
    image = recommend(http, accept="image/png", samplers=["sobol", "orthogonal"])
    assert image.headers["content-type"] == "image/png"
    assert image.content.startswith(b"\x89PNG")


@each(
    ("members", "pointer"),
    [
        ({"budget": None}, "/budget"),
        ({"budget": 1}, "/budget"),
        ({"target_error": 0}, "/target_error"),
        ({"objective": "time"}, "/target_error"),
        ({"objective": "width", "target_error": 0.1}, "/objective"),
        ({"kernel": None}, "/kernel"),
        ({"kernel": "gaussian"}, "/kernel"),
        ({"kernel": {"kind": "gaussian"}}, "/kernel"),
        ({"kernel": {"kind": "gaussian", "length_scale": "mean"}}, "/kernel/length_scale"),
        ({"kernel": {"kind": "gaussian", "length_scale": [1, 2]}}, "/kernel/length_scale"),
        ({"kernel": {"kind": "square", "length_scale": 1}}, "/kernel/kind"),
        ({"samplers": ["dice"]}, "/samplers/0/kind"),
        ({"samplers": []}, "/samplers"),
        ({"samplers": ["gcws"]}, "/samplers"),
        ({"seeds": 0}, "/seeds"),
        ({"objective": "score"}, "/y"),
        ({"y": [0, 1] * 25, "objective": "error"}, "/objective"),
        ({"y": [0, 1] * 25, "target_error": 0.1}, "/target_error"),
        ({"y": [0, 1] * 25, "budget": None, "target_error": 0.1}, "/target_error"),
        ({"y": [0, 1] * 20}, "/y"),
        ({"y": [0] * 50}, "/y"),
        ({"y": ["a", 1] * 25}, "/y"),
        ({"y": ["a", "b"] * 25, "labels_are": "numbers"}, "/labels_are"),
        ({"y": {"column": 0}}, "/y/dataset"),
        ({"y": {"columns": 0}}, "/y/columns"),
        ({"y": [0, [1]]}, "/y/1"),
        ({"vectors": ROWS[:12].tolist(), "y": [0, 1] * 6}, "/y"),
        ({"kernel": []}, "/kernel"),
        ({"kernel": [{"kind": "gaussian", "length_scale": 1}, {"kind": "square"}]}, "/kernel/1/kind"),
        ({"kernel": [FIXED, {"kind": "gaussian", "length_scale": "mean"}]}, "/kernel/1/length_scale"),
        ({"kernel": [FIXED, {"kind": "gmm", "length_scale": "median"}]}, "/kernel/1/length_scale"),
        ({"kernel": [FIXED, {"kind": "gaussian", "length_scale": [1, 2]}]}, "/kernel/1/length_scale"),
        (
            {"kernel": [FIXED, {"kind": "gaussian", "length_scale": {"per_column": "mean"}}]},
            "/kernel/1/length_scale/per_column",
        ),
        (
            {"kernel": [FIXED, {"kind": "gaussian", "length_scale": "median", "dataset": "nowhere"}]},
            "/kernel/1/dataset",
        ),
        ({"kernel": [FIXED, SCALED], "vectors": ROWS[:5].tolist()}, "/kernel/1/length_scale"),
        ({"multiples": [0]}, "/multiples/0"),
        ({"multiples": [1, 1e308], "kernel": {"kind": "gaussian", "length_scale": 1e9}}, "/multiples/1"),
        ({"vectors": None}, "/vectors"),
        ({"vectors": [[1, 2, 3, 4]], "kernel": {"kind": "gaussian", "length_scale": 1}}, "/vectors"),
        ({"vectors": [], "kernel": {"kind": "gaussian", "length_scale": 1}}, "/vectors"),
        ({"kernel": {"kind": "polynomial", "degree": 2}}, "/vectors"),
        ({"vectors": [[], []], "kernel": {"kind": "gaussian", "length_scale": 1}}, "/vectors"),
        ({"vectors": [], "kernel": {"kind": "gmm"}, "budget": None, "target_error": 0.1}, "/vectors"),
        ({"vectors": ROWS[:5].tolist()}, "/kernel/length_scale"),
        ({"vectors": [{"indices": [0], "values": [1]}]}, "/input_dim"),
        ({"colour": "red"}, "/colour"),
    ],
)
def test_bad_requests_are_refused_by_name(http: httpx.Client, members: dict[str, Any], pointer: str) -> None:
    assert_problem(http, recommend(http, **members), 422, "invalid-input", pointer)


def test_zero_rows_have_no_correlations_and_no_hashes(http: httpx.Client) -> None:
    rows = [[0.0] * 4, *ROWS[:20].tolist()]
    for kernel in ({"kind": "correlation_rbf", "gamma": 2.0}, {"kind": "gmm"}):
        answer = recommend(http, kernel=kernel, vectors=rows)
        assert_problem(http, answer, 422, "invalid-input", "/vectors/0")


@pytest.mark.nightly
def test_long_work_is_a_job_with_the_same_answer(http: httpx.Client) -> None:
    short = recommend(http, samplers=["sobol", "halton"]).json()
    body = BODY | {"samplers": ["sobol", "halton"], "seeds": 20, "budget": 1 << 12, "vectors": ROWS.tolist() * 10}
    taken = http.post("/v1/recommendations", json=body, headers=RESPOND_ASYNC)
    assert taken.status_code == 202, taken.text
    job = finished(http, taken)
    assert (job["kind"], job["state"], job["progress"]) == ("recommend", "succeeded", 1)
    found = http.get(job["result"]).json()
    assert set(found) == set(short)
    assert len(found["ranked"]) == len(short["ranked"])
    picture = http.get(job["result"], headers={"Accept": "image/svg+xml"})
    assert picture.headers["content-type"] == "image/svg+xml"
    assert "output columns" in picture.text
