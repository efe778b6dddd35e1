"""A dry run says what a PUT would make and cost, refuses what a PUT would refuse, and leaves nothing behind."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis

from service_tests.checks import assert_problem, keys, put

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
