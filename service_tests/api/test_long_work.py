"""Long work over HTTP: in its request up to a moment, then as a job that goes on from there; `Prefer` chooses."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from service_tests.cases import with_nightly
from service_tests.checks import NPY, finished
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


def test_work_of_a_client_that_has_gone_ends(http: httpx.Client, name: str) -> None:
    assert put(http, name, LARGE).status_code == 201
    with pytest.raises(httpx.ReadTimeout), httpx.Client(base_url=http.base_url, timeout=0.5) as gone:
        measured(gone, name, 1_000_000, f"wait={WAIT_SECONDS}")
    jobs = http.get("/v1/jobs?limit=1000").json()["jobs"]
    assert measured(http, name, 100, f"wait={WAIT_SECONDS}").status_code == 200, "its place is free"
    assert http.get("/v1/jobs?limit=1000").json()["jobs"] == jobs, "nobody goes on with it"
