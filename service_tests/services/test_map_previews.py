"""A dry run says what a PUT would make and cost, refuses what a PUT would refuse, and leaves nothing behind."""

import json
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import redis

from service_tests.cases import each
from service_tests.checks import assert_problem, keys, put, put_dataset

EXAMPLES = Path(__file__).parents[2] / "openapi" / "examples"
# Of all forms and both precisions, with a rule that dictates s, a signature, warnings, an input, and codes.
TRIED = [
    *("gaussian_halton", "gaussian_ard_sobol", "anova-windows", "antithetic-complex", "sparse-grid", "gmm_gcws"),
    *("laplacian_sobol_normalized", "input", "structured-orthogonal", "uploaded-landmarks"),
]


def dry_run(http: httpx.Client, name: str, spec: Any) -> httpx.Response:
    return http.put(f"/v1/maps/{name}?dry_run=true", json=spec)


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


@each(
    ("change", "status", "slug"),
    [
        ({"s": -1}, 422, "invalid-input"),
        ({"s": 1 << 24, "input_dim": 16}, 413, "too-large"),
        ({"sampler": {"kind": "global_adaptive", "dataset": "none"}}, 404, "dataset-not-found"),
        ({"kernel": {"kind": "gmm"}}, 422, "invalid-input"),
    ],
)
def test_it_refuses_as_a_put_does(
    http: httpx.Client, name: str, gaussian: dict[str, Any], change: dict[str, Any], status: int, slug: str
) -> None:
    told = assert_problem(http, dry_run(http, name, gaussian | change), status, slug)
    made = put(http, name, gaussian | change).json()
    assert told | {"instance": ""} == made | {"instance": ""}


def test_it_has_the_preconditions_of_a_put(http: httpx.Client, name: str) -> None:
    spec = json.loads((EXAMPLES / "put_map.gmm_gcws.json").read_text())
    for header, status in (({"If-Match": "*"}, 412), ({"If-None-Match": "*"}, 200)):
        assert http.put(f"/v1/maps/{name}?dry_run=true", json=spec, headers=header).status_code == status
    put(http, name, spec)
    for header, status in (({"If-Match": "*"}, 200), ({"If-None-Match": "*"}, 412)):
        assert http.put(f"/v1/maps/{name}?dry_run=true", json=spec, headers=header).status_code == status


def test_building_takes_the_memory_of_sparse_rows_that_are_made_dense(http: httpx.Client, name: str) -> None:
    """By a centre, or to learn frequencies from them; landmarks stay sparse, but for those of k-means."""
    body = {"input_dim": 5000, "vectors": [{"indices": [i], "values": [1.0]} for i in range(40)]}
    assert put_dataset(http, name, json.dumps(body).encode()).status_code == 201
    landmarks = {"kind": "landmarks", "dataset": name}
    learned = {"kind": "weighted", "base": {"kind": "monte_carlo"}, "dataset": name}
    gaussian = {"kind": "gaussian", "length_scale": 1.0}
    for kernel, sampler, is_dense in (
        ({"kind": "gmm"}, landmarks, False),
        ({"kind": "gmm", "center": [1.0] * 5000}, landmarks, True),
        (gaussian, landmarks, False),
        (gaussian, landmarks | {"selection": "k_means"}, True),
        (gaussian, learned, True),
    ):
        spec = {"input_dim": 5000, "kernel": kernel, "s": 4, "sampler": sampler}
        assert (dry_run(http, name, spec).json()["building_bytes"] >= 4 * 8 * 40 * 5000) == is_dense, spec["sampler"]
    assert http.delete(f"/v1/datasets/{name}").status_code == 204


def test_building_takes_the_memory_of_dense_rows_in_float64(http: httpx.Client, name: str) -> None:
    assert put_dataset(http, name, np.eye(40, 5000, dtype=np.uint8)).status_code == 201
    usual = {"input_dim": 5000, "kernel": {"kind": "gaussian", "length_scale": 1.0}, "s": 4}
    for sampler, is_wide in (
        ({"kind": "weighted", "base": {"kind": "monte_carlo"}}, True),
        ({"kind": "landmarks", "selection": "k_means"}, True),
        ({"kind": "landmarks", "selection": "uniform"}, False),
    ):
        spec = {**usual, "sampler": {**sampler, "dataset": name}}
        assert (dry_run(http, name, spec).json()["building_bytes"] >= 4 * (4 + 8) * 40 * 5000) == is_wide, sampler
    assert http.delete(f"/v1/datasets/{name}").status_code == 204
