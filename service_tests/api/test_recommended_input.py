"""Recommendations for raw rows: what is done to them first is part of every spec, and of what is measured."""

from typing import Any

import httpx
import numpy as np
import pytest

from service_tests.checks import RESPOND_ASYNC, assert_problem, finished, put

RNG = np.random.default_rng(21)
# Far from 0, and columns of very different sizes.
RAW = np.round(1e5 + RNG.normal(size=(60, 4)) * [0.5, 3, 40, 500], 3)
CENTER, SCALE = RAW.mean(axis=0), RAW.std(axis=0)
FIGURES = ("error_mean", "error_sd", "choosing_error")
SAMPLERS = ["halton", "monte_carlo", {"kind": "moment_matching", "base": {"kind": "halton"}}]
BODY: dict[str, Any] = {
    "kernel": {"kind": "gaussian", "length_scale": "median"},
    "budget": 32,
    "samplers": SAMPLERS,
    "seeds": 2,
}


def recommend(http: httpx.Client, **members: Any) -> httpx.Response:
    return http.post("/v1/recommendations", json=BODY | members)


def dataset(http: httpx.Client, name: str, rows: Any) -> None:
    assert http.put(f"/v1/datasets/{name}", json={"vectors": rows.tolist()}).status_code == 201


def assert_ranked_alike(found: dict[str, Any], expected: dict[str, Any]) -> None:
    """The specs differ in their input alone, and the figures by rounding."""
    assert len(found["ranked"]) == len(expected["ranked"]) > 3
    for one, other in zip(found["ranked"], expected["ranked"], strict=True):
        assert one["spec"]["sampler"] == other["spec"]["sampler"]
        scales = one["spec"]["kernel"]["length_scale"], other["spec"]["kernel"]["length_scale"]
        assert scales[0] == pytest.approx(scales[1], rel=1e-9)
        assert [one[figure] for figure in FIGURES] == pytest.approx([other[figure] for figure in FIGURES], rel=1e-4)


@pytest.mark.parametrize("way", ["numbers", "fit"])
def test_raw_rows_are_ranked_as_rows_that_are_standardised_by_hand(http: httpx.Client, name: str, way: str) -> None:
    dataset(http, name, RAW)
    numbers = {"center": CENTER.tolist(), "scale": SCALE.tolist()}
    given = numbers if way == "numbers" else {"fit": "standardize", "dataset": name}
    found = recommend(http, vectors=RAW.tolist(), input=given)
    assert found.status_code == 200, found.text
    by_hand = recommend(http, vectors=((RAW - CENTER) / SCALE).tolist())
    assert_ranked_alike(found.json(), by_hand.json())
    best = found.json()["best"]
    assert best["input"]["center"] == pytest.approx(CENTER.tolist(), rel=1e-12)
    assert best["input"]["scale"] == pytest.approx(SCALE.tolist(), rel=1e-9)
    assert put(http, f"{name}-best", best).status_code == 201
    without = recommend(http, vectors=RAW.tolist()).json()
    assert without["best"]["kernel"]["length_scale"] > 100 * best["kernel"]["length_scale"]


def landmark_errors(found: dict[str, Any]) -> dict[str, float]:
    errors = {}
    for trial in found["ranked"]:
        sampler = trial["spec"]["sampler"]
        if sampler["kind"] == "landmarks":
            errors[f"{sampler['selection']} {trial['n_output']}"] = trial["error_mean"]
    return errors


@pytest.mark.nightly
def test_samplers_learn_from_rows_after_the_input_and_a_job_finds_the_same(http: httpx.Client, name: str) -> None:
    dataset(http, name, RAW)
    dataset(http, f"{name}-scaled", (RAW - CENTER) / SCALE)
    members = {"samplers": None, "input": {"fit": "standardize", "dataset": name}}
    found = recommend(http, dataset=name, **members, budget=16).json()
    by_hand = recommend(http, dataset=f"{name}-scaled", samplers=None, budget=16).json()
    kinds = {trial["spec"]["sampler"]["kind"] for trial in found["ranked"]}
    assert {"landmarks", "reweighted_grid"} <= kinds
    errors, of_scaled = (landmark_errors(of) for of in (found, by_hand))
    assert errors == pytest.approx(of_scaled, rel=1e-3)
    job = http.post("/v1/recommendations", json=BODY | members | {"dataset": name, "budget": 16}, headers=RESPOND_ASYNC)
    again = http.get(finished(http, job)["result"]).json()
    figures = [[[trial[figure] for figure in FIGURES] for trial in of["ranked"]] for of in (found, again)]
    assert figures[0] == figures[1]


def test_missing_entries_are_filled_in_where_the_input_says_how(http: httpx.Client) -> None:
    rows = RAW.tolist()
    rows[3][1] = None
    assert_problem(http, recommend(http, vectors=rows), 422, "invalid-input", "/vectors/3/1")
    filled = {"center": CENTER.tolist(), "scale": SCALE.tolist(), "missing": CENTER[1]}
    assert recommend(http, vectors=rows, input=filled).status_code == 200


def test_labels_of_sparse_rows_with_an_input_are_told_as_those_of_dense_ones(http: httpx.Client) -> None:
    rows = np.random.default_rng(22).poisson(0.8, size=(60, 5)).astype(float)
    rows[:, 4] += 1  # kernel gmm has no rows of zeros
    y = (rows[:, 0] - np.sqrt(rows[:, 1]) + 0.5 * rows[:, 2]).tolist()
    sparse = [{"indices": np.flatnonzero(row).tolist(), "values": row[row > 0].tolist()} for row in rows]
    task = {"y": y, "input": {"scale": [1, 2, 1, 2, 1]}, "samplers": ["sobol", "gcws"], "seeds": 1}
    task["kernel"] = [BODY["kernel"], {"kind": "gmm"}]
    dense, found = (
        recommend(http, vectors=posted, **members).json()
        for posted, members in ((rows.tolist(), task), (sparse, task | {"input_dim": 5}))
    )
    # Half, once and twice the median, and a kernel without a scale.
    assert len({str(trial["spec"]["kernel"]) for trial in found["ranked"]}) == 4
    assert found["best"]["input"]["scale"] == [1, 2, 1, 2, 1]
    # R² of a smooth function, of which a constant tells 0.
    assert 0.5 < found["ranked"][0]["score_mean"] <= 1
    scores, of_dense = ([trial["score_mean"] for trial in of["ranked"]] for of in (found, dense))
    assert scores == pytest.approx(of_dense, rel=1e-4)


def test_an_input_that_does_not_fit_is_refused_by_name(http: httpx.Client, name: str) -> None:
    short = recommend(http, vectors=RAW.tolist(), input={"center": [1.0]})
    assert_problem(http, short, 422, "invalid-input", "/input/center")
    nothing = recommend(http, vectors=RAW.tolist(), input={"fit": "standardize", "dataset": name})
    assert_problem(http, nothing, 422, "invalid-input", "/input/dataset")
    for n in (0, 1, 3):
        empty = recommend(http, vectors=[[]] * n, input={"center": 1.0})
        assert_problem(http, empty, 422, "invalid-input", "/vectors")
    typo = recommend(http, vectors=RAW.tolist(), input={"centre": 1.0})
    assert_problem(http, typo, 422, "invalid-input", "/input/centre")
