"""Long work over HTTP: in its request up to a moment, then as a job that goes on from there; `Prefer` chooses."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import httpx
import pytest

from service_tests.cases import with_nightly
from service_tests.checks import NPY, assert_problem, finished
from service_tests.jobs.program import LONG_CALL
from service_tests.jobs.site import PROGRAM
from service_tests.running import start, stop

KERNEL = {"kind": "gaussian", "length_scale": 1.5}
# 160 steps, 3.2 seconds.
SLOW: dict[str, Any] = {"input_dim": 3, "kernel": KERNEL, "sampler": {"kind": "monte_carlo"}, "s": 4}
LARGE = {"input_dim": 3, "kernel": KERNEL, "sampler": {"kind": "sobol"}, "s": 4096}
REQUEST_SECONDS, WAIT_SECONDS = 1, 20


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of a service with little time, a worker, one thread, and a slow Monte Carlo."""
    options = ["--max-request-seconds", str(REQUEST_SECONDS), "--max-wait-seconds", str(WAIT_SECONDS), "--threads", "1"]
    running = start(tmp_path_factory.mktemp("long") / "data", "--job-workers", "1", *options, program=PROGRAM)
    try:
        with running.client() as client:
            yield client
    finally:
        stop(running)


def put(http: httpx.Client, name: str, spec: dict[str, Any], *prefer: str) -> httpx.Response:
    answer = http.put(f"/v1/maps/{name}", json=spec, headers=[("Prefer", one) for one in prefer])
    assert answer.headers.get("vary") == "Prefer" or not answer.is_success
    return answer


def measured(http: httpx.Client, name: str, samples: int, *prefer: str, accept: str = "*/*") -> httpx.Response:
    """The greatest errors of a map, `samples` of them; a million of a large map take half a minute."""
    headers = [("Accept", accept), *(("Prefer", one) for one in prefer)]
    body = {"diameters": [1.0, 2.0], "samples": samples}
    return http.post(f"/v1/maps/{name}/diagnostics/max-error", json=body, headers=headers)


def built(http: httpx.Client, answer: httpx.Response) -> bytes:
    """The frequencies of a map, once its job has made it."""
    assert answer.status_code == 202, answer.text
    assert finished(http, httpx.Response(202, headers={"Location": answer.json()["job"]}))["state"] == "succeeded"
    return frozen(http, answer.json()["name"])


def frozen(http: httpx.Client, name: str) -> bytes:
    return http.get(f"/v1/maps/{name}/frequencies", headers={"Accept": NPY}).content


def first_event(http: httpx.Client, job: str) -> Any:
    """How a job began."""
    with http.stream("GET", f"{job}/events") as events:
        return next(json.loads(line.removeprefix("data: ")) for line in events.iter_lines() if line.startswith("data"))


@pytest.mark.nightly
def test_a_build_that_is_out_of_time_goes_on_where_it_was_to_the_same_map(http: httpx.Client, name: str) -> None:
    began = time.monotonic()
    taken = put(http, name, SLOW)
    seconds = time.monotonic() - began
    assert taken.status_code == 202, taken.text
    assert seconds >= REQUEST_SECONDS
    assert first_event(http, taken.json()["job"])["step"] >= 5, "what the request has done is not done again"
    assert "preference-applied" not in taken.headers
    waited = put(http, f"{name}-waited", SLOW, f"wait={WAIT_SECONDS}")
    assert (waited.status_code, waited.headers["preference-applied"]) == (201, f"wait={WAIT_SECONDS}")
    assert waited.json()["status"] == "ready"
    asked = put(http, f"{name}-async", SLOW, "respond-async")
    assert built(http, taken) == built(http, asked) == frozen(http, f"{name}-waited")


@pytest.mark.parametrize(
    ("prefer", "status", "applied"),
    with_nightly(
        [
            (["Respond-Async;x=y, unheard-of"], 202, "respond-async"),
            (["wait=1000"], 201, f"wait={WAIT_SECONDS}"),
        ],
        [
            (["respond-async, wait=1"], 202, "respond-async, wait=1"),
            (["wait=soon"], 202, None),
            (["respond-async"], 202, "respond-async"),
            (["wait=0"], 202, "wait=0"),
            (["wait=1"], 202, "wait=1"),
            (["respond-async", f"wait={WAIT_SECONDS}"], 201, f"wait={WAIT_SECONDS}"),
        ],
    ),
)
def test_the_client_chooses(http: httpx.Client, name: str, prefer: list[str], status: int, applied: str | None) -> None:
    answer = put(http, name, SLOW, *prefer)
    assert (answer.status_code, answer.headers.get("preference-applied")) == (status, applied)
    assert answer.headers["location"] == f"/v1/maps/{name}"
    if status == 202:
        assert http.delete(f"/v1/maps/{name}").status_code == 204


@pytest.mark.nightly
def test_who_waits_waits_for_a_job_too(http: httpx.Client, name: str) -> None:
    """Work before a call that cannot be interrupted is handed over while there is time left."""
    spec = SLOW | {"s": LONG_CALL}
    began = time.monotonic()
    taken = put(http, f"{name}-taken", spec)
    assert taken.status_code == 202, taken.text
    assert time.monotonic() < began + WAIT_SECONDS
    waited = put(http, name, spec, f"wait={WAIT_SECONDS}")
    assert (waited.status_code, waited.headers["preference-applied"]) == (201, f"wait={WAIT_SECONDS}")
    assert waited.headers["etag"] == f'"{waited.json()["digest"]}"'
    jobs = http.get("/v1/jobs?limit=1000").json()["jobs"]
    assert {"map": name} in [job["subject"] for job in jobs], "a job has done it"
    assert built(http, taken) == frozen(http, name)


def test_a_map_that_is_there_or_refused_takes_no_job(http: httpx.Client, name: str) -> None:
    assert put(http, name, LARGE).status_code == 201
    again = put(http, name, LARGE, "respond-async")
    assert (again.status_code, again.headers.get("preference-applied")) == (200, None)
    refused = put(http, f"{name}-b", LARGE | {"input_dim": 30_000}, "respond-async")
    assert_problem(http, refused, 422, "invalid-input")
    assert "preference-applied" not in refused.headers


@pytest.mark.nightly
def test_a_diagnostic_answers_the_same_bytes_at_once_by_a_job_and_out_of_time(http: httpx.Client, name: str) -> None:
    assert put(http, name, LARGE).status_code == 201
    waited = measured(http, name, 15_000, f"wait={WAIT_SECONDS}")
    assert (waited.status_code, waited.headers["preference-applied"]) == (200, f"wait={WAIT_SECONDS}")
    assert waited.headers["vary"] == "Accept, Prefer"
    asked, out_of_time = measured(http, name, 15_000, "respond-async"), measured(http, name, 15_000)
    assert (asked.status_code, asked.headers["preference-applied"]) == (202, "respond-async")
    assert (out_of_time.status_code, out_of_time.headers.get("preference-applied")) == (202, None)
    assert out_of_time.json()["step"] > 0
    picture = measured(http, name, 15_000, f"wait={WAIT_SECONDS}", accept="image/svg+xml").content
    for taken in (asked, out_of_time):
        result = finished(http, taken)["result"]
        assert http.get(result).content == waited.content
        assert http.get(result, headers={"Accept": "image/svg+xml"}).content == picture


@pytest.mark.nightly
def test_a_recommendation_goes_by_the_clock_too(http: httpx.Client) -> None:
    body = {"vectors": [[i, i * i % 7] for i in range(60)], "kernel": KERNEL, "budget": 16, "samplers": ["sobol"]}
    body["kernel"] = KERNEL | {"length_scale": 5.0}
    answers = [
        http.post("/v1/recommendations", json=body, headers=[("Prefer", prefer)])
        for prefer in ("wait=5", "respond-async")
    ]
    assert [one.status_code for one in answers] == [200, 202]
    assert [one.headers["preference-applied"] for one in answers] == ["wait=5", "respond-async"]
    found = [answers[0].json(), http.get(finished(http, answers[1])["result"]).json()]
    for one in found:
        for trial in one["ranked"]:
            del trial["seconds_per_1000_rows"]
    assert found[0] == found[1]


@pytest.fixture
def patient(http: httpx.Client, name: str) -> Iterator[None]:
    """A client that waits long for a diagnostic of the map, in the only place for such."""
    assert put(http, name, LARGE).status_code == 201
    finished(http, measured(http, name, 100, "respond-async"))  # the worker is up

    def wait() -> None:
        with suppress(httpx.ReadTimeout), httpx.Client(base_url=http.base_url, timeout=4) as client:
            measured(client, name, 1_000_000, f"wait={WAIT_SECONDS}")

    waiting = threading.Thread(target=wait)
    waiting.start()
    time.sleep(0.3)
    yield
    waiting.join()


@pytest.mark.usefixtures("patient")
@pytest.mark.nightly
def test_clients_that_wait_long_keep_no_others_from_their_answers(http: httpx.Client, name: str) -> None:
    assert measured(http, name, 100).status_code == 200
    assert put(http, f"{name}-b", LARGE).status_code == 201
    began = time.monotonic()
    taken = measured(http, name, 100, "wait=2")
    assert taken.status_code in (200, 202), "by a job, for want of a place"
    assert time.monotonic() < began + WAIT_SECONDS / 2
    finished(http, taken) if taken.status_code == 202 else None


@pytest.mark.nightly
@pytest.mark.usefixtures("patient")
def test_who_finds_no_place_waits_for_a_job_and_hears_how_it_is_now(http: httpx.Client, name: str) -> None:
    taken = measured(http, name, 1_000_000, "wait=3")
    assert (taken.status_code, taken.headers["preference-applied"]) == (202, "wait=3")
    assert taken.json()["state"] == "running"
    assert http.delete(taken.headers["location"]).status_code == 202


def test_work_of_a_client_that_has_gone_ends(http: httpx.Client, name: str) -> None:
    assert put(http, name, LARGE).status_code == 201
    with pytest.raises(httpx.ReadTimeout), httpx.Client(base_url=http.base_url, timeout=0.5) as gone:
        measured(gone, name, 1_000_000, f"wait={WAIT_SECONDS}")
    jobs = http.get("/v1/jobs?limit=1000").json()["jobs"]
    assert measured(http, name, 100, f"wait={WAIT_SECONDS}").status_code == 200, "its place is free"
    assert http.get("/v1/jobs?limit=1000").json()["jobs"] == jobs, "nobody goes on with it"
