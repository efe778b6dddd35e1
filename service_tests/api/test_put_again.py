"""Maps whose length scale, input or seed was left open, put again: the same request finds the same map."""

import json
import socket
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis

from service_tests.api.left_open import ROWS, created, spec_of
from service_tests.checks import RESPOND_ASYNC, assert_problem, finished, put, put_dataset
from service_tests.races import at_once
from service_tests.running import Running, service, start, stop
from service_tests.servers import EVERY_WRITE, until, valkey, wire


def test_a_seed_is_drawn_once(http: httpx.Client, name: str) -> None:
    asked = spec_of({"length_scale": 1}, seed=None)
    seeds = {created(http, f"{name}-{i}", asked)["spec"]["seed"] for i in range(3)}
    assert len(seeds) == 3
    assert 0 <= min(seeds) <= max(seeds) < 1 << 53, "a client whose numbers are doubles can send it again"
    for other in (spec_of({"length_scale": 1}), spec_of({"length_scale": 2}, seed=None), {**asked, "s": 17}):
        assert_problem(http, put(http, f"{name}-0", other), 409, "map-exists")
    assert put(http, f"{name}-plain", spec_of({"length_scale": 1})).status_code == 201
    assert_problem(http, put(http, f"{name}-plain", asked), 409, "map-exists")


def test_what_was_asked_is_found_again_when_the_dataset_is_another_or_gone(http: httpx.Client, dataset: str) -> None:
    asked = spec_of(
        {"length_scale": "median", "dataset": dataset}, seed=None, input={"fit": "robust", "dataset": dataset}
    )
    record = created(http, dataset, asked)
    assert http.delete(f"/v1/datasets/{dataset}").status_code == 204
    reordered = json.dumps({**asked, "form": "cos_sin", "normalize": False}, sort_keys=True).encode()
    for again in (asked, record["spec"], reordered):
        assert put(http, dataset, again).json() == record
    assert put_dataset(http, dataset, ROWS[:50] ** 3).status_code == 201
    assert put(http, dataset, asked).json() == record
    others = [
        asked | {"kernel": asked["kernel"] | {"length_scale": "nearest_neighbor"}},
        asked | {"kernel": asked["kernel"] | {"length_scale": {"per_column": "median"}}},
        asked | {"kernel": asked["kernel"] | {"dataset": "another"}},
        asked | {"input": asked["input"] | {"fit": "min_max"}},
        asked | {"input": asked["input"] | {"unit_norm": True}},
        asked | {"seed": record["spec"]["seed"]},
        asked | {"s": 32},
        {name: asked[name] for name in asked if name != "input"},
        record["spec"] | {"seed": None},
    ]
    for other in others:
        assert_problem(http, put(http, dataset, other), 409, "map-exists")
    assert http.get(f"/v1/maps/{dataset}").json() == record


@pytest.mark.parametrize("headers", [{}, RESPOND_ASYNC], ids=["at once", "by a job"])
def test_eight_that_ask_at_the_same_time_get_one_map(
    running: Running, http: httpx.Client, dataset: str, headers: dict[str, str]
) -> None:
    asked = spec_of({"length_scale": {"per_column": "median"}, "dataset": dataset}, seed=None)

    def ask(_: int) -> tuple[int, Any]:
        with running.client(**headers) as client:
            answer = client.put(f"/v1/maps/{dataset}", json=asked)
            return answer.status_code, answer.json()

    answers = at_once(8, ask)
    assert sum(status == 201 for status, _ in answers) == (0 if headers else 1)
    assert {status for status, _ in answers} <= {200, 201, 202}
    assert len({json.dumps(record["spec"]) for _, record in answers}) == 1
    if headers:
        jobs = {record["job"] for _, record in answers} - {None}
        assert len(jobs) == 1
        finished(http, httpx.Response(202, headers={"Location": jobs.pop()}))
    found = put(http, dataset, asked)
    assert (found.status_code, found.json()["spec"]) == (200, answers[0][1]["spec"])


@pytest.mark.nightly
def test_what_was_asked_outlives_the_service_also_while_a_job_waits(tmp_path: Path) -> None:
    asked = spec_of({"length_scale": "median", "dataset": "rows"}, seed=None)
    running = start(tmp_path / "data")
    with running.client() as http:
        put_dataset(http, "rows", ROWS)
        ready, waiting = put(http, "ready", asked), http.put("/v1/maps/waiting", json=asked, headers=RESPOND_ASYNC)
        assert (ready.status_code, waiting.status_code) == (201, 202)
        assert http.delete("/v1/datasets/rows").status_code == 204
    stop(running)
    with service(tmp_path / "data", "--job-workers", "1") as again, again.client() as http:
        assert put(http, "ready", asked).json() == ready.json()
        seen = put(http, "waiting", asked)
        assert seen.json()["spec"] == waiting.json()["spec"]
        finished(http, httpx.Response(202, headers={"Location": waiting.json()["job"]}))
        for spec in (asked, waiting.json()["spec"]):
            built = put(http, "waiting", spec)
            assert (built.status_code, built.json()["status"]) == (200, "ready")
            assert built.json()["spec"] == waiting.json()["spec"]
        assert_problem(http, put(http, "waiting", asked | {"s": 17}), 409, "map-exists")


def test_a_client_that_lost_its_answer_finds_the_map(running: Running, http: httpx.Client, dataset: str) -> None:
    asked = spec_of({"length_scale": "median", "dataset": dataset}, seed=None)
    body = json.dumps(asked)
    head = f"PUT /v1/maps/{dataset} HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", httpx.URL(running.url).port), timeout=30) as line:
        line.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
        until(lambda: http.get(f"/v1/maps/{dataset}").status_code == 200)
    assert http.delete(f"/v1/datasets/{dataset}").status_code == 204
    found = put(http, dataset, asked)
    assert (found.status_code, found.json()) == (200, http.get(f"/v1/maps/{dataset}").json())


@pytest.mark.nightly
def test_a_reply_of_the_store_that_is_lost_draws_no_second_seed(tmp_path: Path) -> None:
    asked = spec_of({"length_scale": 1}, seed=None)
    with (
        valkey(tmp_path, *EVERY_WRITE) as url,
        wire(url) as cut,
        service(tmp_path / "data", "--redis-url", cut.url) as running,
        running.client() as http,
    ):
        cut.lose_reply_to(b"schema_version")  # which only the script that commits the map is given
        made = put(http, "m", asked)
        assert (made.status_code, cut.lost) == (201, 1)
        assert put(http, "m", asked).json() == made.json() == http.get("/v1/maps/m").json()


def test_a_map_that_could_not_be_built_is_asked_for_anew(http: httpx.Client, name: str) -> None:
    asked = spec_of({"length_scale": 1e-300}, seed=None, dtype="float32")
    seeds = set()
    for _ in range(2):
        answer = http.put(f"/v1/maps/{name}", json=asked, headers=RESPOND_ASYNC)
        seeds.add(answer.json()["spec"]["seed"])
        job = finished(http, httpx.Response(202, headers={"Location": answer.json()["job"]}))
        assert job["state"] == "failed", job
    assert len(seeds) == 2
    created(http, name, asked | {"kernel": {"kind": "gaussian", "length_scale": 1}})


def test_a_manifest_without_what_was_asked_is_that_of_a_plain_spec(
    http: httpx.Client, store: redis.Redis, name: str
) -> None:
    spec = spec_of({"length_scale": 1})
    created(http, name, spec)
    key = f"bochner:{{map:{name}}}:manifest"
    manifest = json.loads(bytes(store.get(key)))  # type: ignore[arg-type]
    assert "asked" not in manifest
    store.set(key, json.dumps(manifest | {"schema_version": 2}))
    assert put(http, name, spec).status_code == 200
    assert_problem(http, put(http, name, spec | {"seed": None}), 409, "map-exists")
