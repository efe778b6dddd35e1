"""A dry run says what a PUT would make and cost, refuses what a PUT would refuse, and leaves nothing behind."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis

from service_tests.api.left_open import ROWS, spec_of
from service_tests.checks import NO_WAIT, RESPOND_ASYNC, assert_problem, keys, put, put_dataset
from service_tests.running import service

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


def test_numbers_are_found_in_datasets_and_a_seed_is_left_to_chance(http: httpx.Client, name: str) -> None:
    put_dataset(http, name, ROWS)
    spec = spec_of({"length_scale": "median", "dataset": name}, seed=None)
    told = dry_run(http, name, spec).json()["spec"]
    record = put(http, name, spec).json()["spec"]
    assert told["kernel"] == record["kernel"]
    assert told["seed"] is None
    # Without time nothing is looked for.
    assert dry_run(http, f"{name}-2", spec, Prefer="wait=0").json()["spec"]["kernel"]["length_scale"] == "median"


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


def test_a_name_that_another_spec_has_is_refused(http: httpx.Client, standing: dict[str, str]) -> None:
    assert_problem(http, dry_run(http, standing["cos_sin"], LEARNED), 409, "map-exists")


@pytest.mark.nightly
def test_a_full_store_is_told(tmp_path: Path, gaussian: dict[str, Any]) -> None:
    with service(tmp_path / "data", "--max-store-bytes", "1000") as running, running.client() as http:
        assert put(http, "there", gaussian).status_code == 201
        larger = gaussian | {"s": 256}
        assert_problem(http, dry_run(http, "another", larger), 507, "quota")
        assert dry_run(http, "there", gaussian).json()["exists"], "a PUT would find it"


@pytest.mark.parametrize("value", ["", "maybe"])
def test_a_value_that_says_nothing_is_refused(http: httpx.Client, gaussian: dict[str, Any], value: str) -> None:
    answer = http.put(f"/v1/maps/m?dry_run={value}", json=gaussian)
    assert assert_problem(http, answer, 422, "invalid-input")["errors"][0]["parameter"] == "dry_run"
