"""Jobs over HTTP: maps and indexes that are made in the background, and everything about their jobs."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from unittest.mock import AsyncMock, Mock

import httpx
import numpy as np
import pytest
import redis
from starlette.requests import ClientDisconnect

from app.api.routes import jobs
from app.jobs.record import JobNotFound
from app.store.errors import StoreUnavailable
from service_tests.cases import each
from service_tests.checks import assert_problem, keys, keys_of, post, put, put_dataset
from service_tests.races import at_once
from service_tests.running import Running
from service_tests.servers import until

SPEC = {"input_dim": 3, "kernel": {"kind": "gaussian", "length_scale": 1.5}, "sampler": {"kind": "monte_carlo"}, "s": 4}
LONG = {**SPEC, "s": 400}
ROWS = {"vectors": [[1, 2, 3]]}


@pytest.fixture
def http(jobs_service: Running) -> Iterator[httpx.Client]:
    with jobs_service.client() as client:
        yield client


@pytest.fixture
def store(jobs_service: Running) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(jobs_service.socket) as client:
        yield client


def ended(http: httpx.Client, link: str) -> dict[str, Any]:
    until(lambda: http.get(link).json()["state"] not in ("queued", "running"))
    job: dict[str, Any] = http.get(link).json()
    return job


def events(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    event: dict[str, Any] = {}
    for line in lines:
        if not line:
            if "data" in event:
                yield {**json.loads(event["data"]), "event": event["event"], "event_id": event["id"]}
            event = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(": ")
            event[name] = value


def test_a_map_is_building_then_ready(http: httpx.Client, store: redis.Redis, name: str) -> None:
    answer = put(http, name, SPEC)
    assert answer.status_code == 202
    assert answer.headers["location"] == f"/v1/maps/{name}"
    record = answer.json()
    assert (record["status"], record["digest"], record["n_output"], record["error"]) == ("building", None, None, None)
    job = http.get(record["job"]).json()
    assert (job["kind"], job["subject"]) == ("build-map", {"map": name})
    job = ended(http, record["job"])
    assert (job["state"], job["progress"], job["result"]) == ("succeeded", 1, f"/v1/maps/{name}")
    ready = http.get(f"/v1/maps/{name}").json()
    assert (ready["status"], ready["job"], ready["n_output"]) == ("ready", None, 8)
    assert put(http, name, SPEC).status_code == 200
    assert len(keys_of(store, name)) == 4
    result = http.get(record["job"] + "/result")
    assert (result.status_code, result.headers["location"]) == (303, f"/v1/maps/{name}")
    assert_problem(http, http.delete(record["job"]), 409, "job-has-ended")


def test_a_map_that_is_not_ready_says_so_everywhere_and_goes_without_a_trace(
    http: httpx.Client, store: redis.Redis, name: str
) -> None:
    link = put(http, name, LONG).json()["job"]
    for answer in (
        post(http, f"{name}/transform", ROWS),
        post(http, f"{name}/kernel", {"x": [[1, 2, 3]]}),
        http.get(f"/v1/maps/{name}/frequencies"),
    ):
        assert assert_problem(http, answer, 409, "map-not-ready")["job"] == link
    assert_problem(http, put(http, name, {**LONG, "seed": 9}), 409, "map-exists")
    assert name in [record["name"] for record in http.get("/v1/maps?limit=1000").json()["maps"]]
    until(lambda: http.get(link).json()["state"] == "running")
    assert link in ["/v1/jobs/" + job["id"] for job in http.get("/v1/jobs?state=running").json()["jobs"]]
    assert_problem(http, http.get(link + "/result"), 409, "job-has-no-result")
    assert http.delete(f"/v1/maps/{name}").status_code == 204
    assert_problem(http, http.get(f"/v1/maps/{name}"), 404, "map-not-found")
    assert ended(http, link)["state"] == "cancelled"
    assert keys_of(store, name) == set()


@pytest.fixture
def aimed(http: httpx.Client, name: str) -> dict[str, Any]:
    """The body of an index whose bands a job finds, while the worker is kept from it by another map."""
    hashes = {**LONG, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}}
    assert http.put(f"/v1/maps/{name}", json=hashes, headers={"Prefer": "wait=30"}).status_code == 201
    assert put_dataset(http, name, np.random.default_rng(5).normal(size=(200, 3))).status_code == 201
    other = put(http, f"{name}-long", LONG).json()["job"]
    until(lambda: http.get(other).json()["state"] == "running")
    return {"map": name, "keep": "vectors", "target": {"recall": 0.5, "k": 1, "dataset": name}}


def test_an_index_is_building_then_ready(http: httpx.Client, name: str, aimed: dict[str, Any]) -> None:
    path, lives, keeps = f"/v1/indexes/{name}", {"ttl": 600}, ("vectors", "codes")
    answers = at_once(4, lambda i: http.put(path, json={**aimed, "keep": keeps[i % 2]}, params=lives))
    first, again = (answer for answer in answers if answer.status_code == 202)  # one of the two has the name
    job = (record := first.json())["job"]
    assert [again.json(), http.get(path).json()] == [record, record]
    assert http.get(f"/v1/indexes?prefix={name}").json()["indexes"] == [record]
    assert (again.headers["location"], again.headers["link"]) == (path, f'<{job}>; rel="monitor"')
    assert (record["status"], record["banding"], record["expires_at"]) == ("building", None, None)
    assert_problem(http, http.put(path, json={"map": name}), 409, "index-exists")
    for answer in (
        *(http.post(f"{path}/{call}", json={"ids": [1], **ROWS}) for call in ("vectors", "search")),
        http.delete(f"{path}/vectors/1"),
        http.post(f"{path}/duplicates", json={"min_similarity": 1}),
    ):
        assert assert_problem(http, answer, 409, "index-not-ready")["job"] == job
    assert assert_problem(http, http.delete(f"/v1/maps/{name}"), 409, "map-in-use")["indexes"] == [name]
    assert http.delete(f"/v1/maps/{name}-long").is_success
    assert ended(http, job)["state"] == "succeeded"
    ready = http.get(path).json()
    assert (ready["status"], ready["job"], ready["banding"] is None, ready["ttl"]) == ("ready", None, False, 600)
    assert http.put(path, json={**aimed, "keep": record["keep"]}, params=lives).status_code == 200


def test_an_index_that_is_not_made_leaves_its_name_and_its_map(
    http: httpx.Client, store: redis.Redis, name: str, aimed: dict[str, Any]
) -> None:
    path, of_map = f"/v1/indexes/{name}", f"/v1/maps/{name}"
    for cancelled in ("index", "job"):
        job = http.put(path, json=aimed).json()["job"]
        assert http.delete(path if cancelled == "index" else job).is_success
        assert_problem(http, http.get(path), 404, "index-not-found")
        assert ended(http, job)["state"] == "cancelled"
        assert keys_of(store, name, "index") == set()
    for made_otherwise in (True, False):
        assert put(http, f"{name}-long", LONG).status_code == 202
        assert put_dataset(http, name, np.random.default_rng(5).normal(size=(200, 3))).is_success
        job = http.put(path, json=aimed).json()["job"]
        assert http.delete(f"/v1/datasets/{name}").status_code == 204
        assert http.delete(f"{of_map}-long").status_code == 204
        error = ended(http, job)["error"]
        assert error["reason"] == "invalid-input"
        assert {"status": "failed", "job": job, "error": error}.items() <= http.get(path).json().items()
        assert_problem(http, http.post(f"{path}/search", json=ROWS), 409, "index-not-ready")
        assert not made_otherwise or http.put(path, json={"map": name}).status_code == 201
        assert http.delete(of_map).status_code == (409 if made_otherwise else 204)
        assert http.delete(path).status_code == 204


def test_events_come_as_they_happen_and_go_on_where_they_were_lost(http: httpx.Client, name: str) -> None:
    link = put(http, name, {**SPEC, "s": 3}).json()["job"]
    with http.stream("GET", link + "/events") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        seen = list(events(stream.iter_lines()))
    assert [one["event"] for one in seen] == ["progress"] * (len(seen) - 1) + ["end"]
    assert (seen[0]["state"], seen[-1]["state"], seen[-1]["progress"]) == ("queued", "succeeded", 1)
    assert any(one["step"] for one in seen[:-1])
    middle = len(seen) // 2
    for last, rest in ((seen[middle]["event_id"], seen[middle + 1 :]), ("", seen), ("5", seen)):
        with http.stream("GET", link + "/events", headers={"Last-Event-ID": last}) as stream:
            assert list(events(stream.iter_lines())) == rest
    assert http.get(link + "/events", headers={"Last-Event-ID": seen[-1]["event_id"]}).status_code == 204


def test_listeners_take_no_place_of_those_that_want_work_done(
    http: httpx.Client, jobs_service: Running, name: str
) -> None:
    link = put(http, name, LONG).json()["job"]
    with ExitStack() as stack:
        for _ in range(8):
            client = stack.enter_context(jobs_service.client())
            stack.enter_context(client.stream("GET", link + "/events"))
            stack.callback(client.close)  # gone, without a word
        sobol, waits = {**SPEC, "sampler": {"kind": "sobol"}}, {"Prefer": "wait=20"}
        assert http.put(f"/v1/maps/{name}-b", json=sobol, headers=waits).status_code == 201
    http.delete(link)
    ended(http, link)


def test_more_jobs_than_may_wait_are_refused(http: httpx.Client, store: redis.Redis, name: str) -> None:
    first = put(http, name, LONG).json()["job"]
    until(lambda: http.get(first).json()["state"] == "running")
    links = [first] + [put(http, f"{name}-{i}", LONG).json()["job"] for i in range(3)]
    before = keys(store)
    answer = put(http, f"{name}-x", LONG)
    document = assert_problem(http, answer, 429, "overloaded")
    assert (document["limit"], document["value"]) == ("max_queued_jobs", 3)
    assert document["setting"] == "BOCHNER_MAX_QUEUED_JOBS"
    assert int(answer.headers["retry-after"]) > 0
    assert {key for key in keys(store) - before if b"{map:" in key} == set()
    for link in reversed(links):
        assert http.delete(link).status_code == 202
    assert {ended(http, link)["state"] for link in links} == {"cancelled"}


def test_what_makes_no_sense_is_refused(http: httpx.Client) -> None:
    for path in ("0" * 24, "0" * 24 + "/result", "0" * 23 + "*/events"):
        assert_problem(http, http.get(f"/v1/jobs/{path}"), 404, "job-not-found")
    for query in ("state=lost", "cursor=x"):
        assert_problem(http, http.get(f"/v1/jobs?{query}"), 422, "invalid-input")


@each("error", [ClientDisconnect(), JobNotFound("a job"), StoreUnavailable("away")])
def test_events_end_without_a_word_where_nobody_can_go_on(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that leaves while the service looks, and so after its answer has begun, is no failed request."""
    monkeypatch.setattr(jobs, "_LOOK_SECONDS", 0)
    request, context = Mock(scope={"state": {"key": None}}), Mock()
    context.shutdown.begun, request.is_disconnected = False, AsyncMock(return_value=False)
    context.access.holds, context.admission.ask = AsyncMock(return_value=True), AsyncMock(side_effect=error)

    async def watch() -> list[bytes]:
        return [one async for one in jobs._events(request, context, "a job", "0", [])]

    assert asyncio.run(watch()) == []
