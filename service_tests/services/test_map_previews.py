"""A dry run says what a PUT would make and cost, refuses what a PUT would refuse, and leaves nothing behind."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis

from service_tests.checks import NO_WAIT, RESPOND_ASYNC, assert_problem, keys, put

EXAMPLES = Path(__file__).parents[2] / "openapi" / "examples"
# Of all forms and both precisions, with a rule that dictates s, a signature, warnings, an input, and codes.
TRIED = [
    *("gaussian_halton", "gaussian_ard_sobol", "anova-windows", "antithetic-complex", "sparse-grid", "gmm_gcws"),
    *("laplacian_sobol_normalized", "input", "structured-orthogonal", "uploaded-landmarks"),
]
LEARNED: dict[str, Any] = {
    "input_dim": 16,
    "kernel": {"kind": "gaussian", "length_scale": 5.0},
    "sampler": {"kind": "global_adaptive", "base": {"kind": "halton"}, "box": 4.0, "iterations": 1000},
    "s": 1024,
    "form": "phase",
}


def dry_run(http: httpx.Client, name: str, spec: Any, **headers: str) -> httpx.Response:
    return http.put(f"/v1/maps/{name}?dry_run=true", json=spec, headers=headers)


@pytest.mark.parametrize("title", TRIED)
def test_it_says_what_the_map_then_is_and_stores_nothing(
    http: httpx.Client, store: redis.Redis, name: str, title: str
) -> None:
    spec = json.loads((EXAMPLES / f"put_map.{title}.json").read_text())
    before = keys(store)
    answer = dry_run(http, name, spec)
    assert answer.status_code == 200, answer.text
    assert "location" not in answer.headers
    assert keys(store) == before
    preview, record = answer.json(), put(http, name, spec).json()
    for member in ("name", "spec", "n_frequencies", "n_output", "bytes", "report", "warnings"):
        assert preview[member] == record[member], member
    assert preview["at_once"]
    assert not preview["exists"]
    assert 0 <= preview["seconds"] < 30
    assert preview["building_bytes"] >= preview["bytes"]
    assert dry_run(http, name, spec).json() == preview | {"exists": True, "seconds": pytest.approx(0, abs=30)}


@pytest.mark.parametrize("headers", [NO_WAIT, RESPOND_ASYNC], ids=["in its time", "at once"])
def test_what_takes_long_is_told_by_its_largest_sizes_and_no_job_is_made(
    http: httpx.Client, store: redis.Redis, name: str, headers: dict[str, str]
) -> None:
    before = keys(store)
    preview = dry_run(http, name, LEARNED, **headers).json()
    assert keys(store) == before
    assert not preview["at_once"]
    assert (preview["n_frequencies"], preview["n_output"]) == (1024, 1024)
    assert preview["bytes"] >= 1024 * (16 + 2) * 4
    if headers == NO_WAIT:
        told = preview["seconds"]
        assert told is None or told > 3, "twice as long as the request at least, if a step was done in it"
    else:
        assert preview["seconds"] is None


@pytest.mark.parametrize(
    ("spec", "status", "slug"),
    [
        (LEARNED | {"s": -1}, 422, "invalid-input"),
        (LEARNED | {"s": 1 << 24, "sampler": {"kind": "halton"}}, 413, "too-large"),
        (LEARNED | {"sampler": LEARNED["sampler"] | {"box": None, "dataset": "none"}}, 404, "dataset-not-found"),
        (LEARNED | {"kernel": {"kind": "gmm"}}, 422, "invalid-input"),
    ],
    ids=["a number below 0", "too large", "no dataset", "no such combination"],
)
def test_it_refuses_as_a_put_does(http: httpx.Client, name: str, spec: dict[str, Any], status: int, slug: str) -> None:
    told = assert_problem(http, dry_run(http, name, spec), status, slug)
    made = put(http, name, spec).json()
    assert told | {"instance": ""} == made | {"instance": ""}
