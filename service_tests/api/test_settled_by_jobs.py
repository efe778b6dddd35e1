"""Maps whose numbers a job takes from a dataset, as that takes longer than a request may."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from service_tests.checks import NO_WAIT, RESPOND_ASYNC, assert_problem, finished, put, put_dataset
from service_tests.conftest import AT_ONCE
from service_tests.running import service

# So many that their neighbours are sought in several steps.
ROWS = np.random.default_rng(5).normal(size=(9000, 3)) * [1, 4, 0.5] + [1e3, 0, -3]
ASKED: dict[str, Any] = {
    "input_dim": 3,
    "s": 8,
    "seed": None,
    "sampler": {"kind": "halton"},
    "kernel": {"kind": "gaussian", "length_scale": {"per_column": "nearest_neighbor"}},
    "input": {"fit": "robust", "dataset": "rows"},
}


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of a service that hands work over to jobs as soon as it can; it does not wait for them."""
    data: Path = tmp_path_factory.mktemp("quick") / "data"
    with service(data, *AT_ONCE, "--job-workers", "1") as running, running.client(**NO_WAIT) as http:
        assert put_dataset(http, "rows", ROWS).status_code == 201
        yield http


@pytest.mark.nightly
@pytest.mark.parametrize("prefer", [NO_WAIT, RESPOND_ASYNC, {"Prefer": "wait=0"}], ids=["none", "async", "wait=0"])
def test_a_job_finds_the_numbers_that_a_request_would_find(
    quick: httpx.Client, name: str, prefer: dict[str, str]
) -> None:
    asked = ASKED | {"seed": 3}
    taken = quick.put(f"/v1/maps/{name}", json=asked, headers=prefer)
    assert (taken.status_code, taken.json()["status"]) == (202, "building")
    job = finished(quick, httpx.Response(202, headers={"Location": taken.json()["job"]}))
    assert job["state"] == "succeeded", job
    patient = quick.put(f"/v1/maps/{name}-patient", json=asked, headers={"Prefer": "wait=30"})
    assert patient.status_code == 201
    found = quick.get(f"/v1/maps/{name}").json()
    assert (found["spec"], found["digest"]) == (patient.json()["spec"], patient.json()["digest"])
    quartiles = np.quantile(ROWS, (0.25, 0.5, 0.75), axis=0)
    np.testing.assert_allclose(found["spec"]["input"]["center"], quartiles[1], rtol=1e-12)
    np.testing.assert_allclose(found["spec"]["input"]["scale"], quartiles[2] - quartiles[0], rtol=1e-12)
    for again in (asked, found["spec"]):
        assert put(quick, name, again).json() == found


@pytest.mark.nightly
def test_the_record_says_what_was_asked_until_there_are_numbers(quick: httpx.Client, name: str) -> None:
    taken = put(quick, name, ASKED)
    shown = taken.json()["spec"]
    assert taken.status_code == 202
    assert shown["kernel"] == ASKED["kernel"] | {"length_scale": {"per_column": "nearest_neighbor"}}
    assert shown["input"] == ASKED["input"] | {"missing": "refuse", "unit_norm": False}
    assert shown["seed"] is None
    for same in (ASKED, shown):
        assert put(quick, name, same).status_code in (200, 202)
    in_their_place = ASKED | {"kernel": {"kind": "gaussian", "length_scale": 1.0}, "input": None, "seed": 0}
    assert_problem(quick, put(quick, name, in_their_place), 409, "map-exists")
    finished(quick, httpx.Response(202, headers={"Location": taken.json()["job"]}))
    found = put(quick, name, ASKED)
    assert (found.status_code, found.json()["status"]) == (200, "ready")
    assert found.json()["spec"]["seed"] < 1 << 53


def test_what_cannot_be_settled_fails_the_job_at_its_place(quick: httpx.Client, name: str) -> None:
    equal = np.repeat([[1.0, 2.0, 3.0]], 9000, axis=0)
    assert put_dataset(quick, name, equal).status_code == 201
    asked = ASKED | {"kernel": {"kind": "gaussian", "length_scale": "nearest_neighbor", "dataset": name}, "input": None}
    job = finished(quick, httpx.Response(202, headers={"Location": put(quick, name, asked).json()["job"]}))
    assert (job["state"], job["error"]["reason"]) == ("failed", "invalid-input")
    assert job["error"]["pointer"] == "/kernel/length_scale"
    failed = quick.get(f"/v1/maps/{name}").json()
    assert (failed["status"], failed["spec"]["kernel"]["length_scale"]) == ("failed", "nearest_neighbor")


def test_few_rows_are_settled_at_once(quick: httpx.Client, name: str) -> None:
    assert put_dataset(quick, name, ROWS[:500]).status_code == 201
    asked = ASKED | {"input": {"fit": "robust", "dataset": name}}
    taken = quick.put(f"/v1/maps/{name}", json=asked, headers=RESPOND_ASYNC)
    assert taken.status_code == 202
    assert len(taken.json()["spec"]["kernel"]["length_scale"]) == 3
