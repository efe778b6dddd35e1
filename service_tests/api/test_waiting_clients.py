"""Clients that wait, with `Prefer: wait`, for work or for a job: they keep no others out, and hold up no shutdown."""

import json
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from service_tests.jobs.program import LONG_CALL
from service_tests.jobs.site import PROGRAM
from service_tests.running import Running, service, start, stop
from service_tests.servers import until

KERNEL = {"kind": "gaussian", "length_scale": 1.5}
QUICK: dict[str, Any] = {"input_dim": 3, "kernel": KERNEL, "sampler": {"kind": "sobol"}, "s": 16}
# 32 seconds in steps of 20 milliseconds.
SLOW: dict[str, Any] = {"input_dim": 3, "kernel": KERNEL, "sampler": {"kind": "monte_carlo"}, "s": 40}
# Its work is left to a job at once.
LEFT = SLOW | {"s": LONG_CALL}
WAIT = "wait=30"
MOST_LISTENERS = 256
STOP_SECONDS = 10


@pytest.fixture
def narrow(tmp_path: Path) -> Iterator[Running]:
    """A service with two places for requests, one for patient work, a slow Monte Carlo, and nobody to run jobs."""
    running = start(tmp_path / "data", "--max-requests", "2", "--threads", "1", program=PROGRAM)
    yield running
    stop(running)


def waiting(running: Running, name: str, spec: dict[str, Any]) -> socket.socket:
    """A client that has put a slow map and waits, and has not been answered."""
    line = socket.create_connection(("127.0.0.1", httpx.URL(running.url).port), timeout=30)
    body = json.dumps(spec)
    head = f"PUT /v1/maps/{name} HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\nPrefer: {WAIT}\r\n"
    line.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
    return line


@pytest.mark.nightly
@pytest.mark.parametrize("spec", [LEFT, SLOW])
def test_clients_that_wait_keep_others_out_no_longer_than_any_request(narrow: Running, spec: dict[str, Any]) -> None:
    with narrow.client() as http, ExitStack() as stack:
        assert http.put("/v1/maps/quick", json=QUICK).status_code == 201

        def served() -> bool:
            return http.post("/v1/maps/quick/transform", json={"vectors": [[1, 2, 3]]}).status_code == 200

        for number in range(6):
            until(served)
            stack.enter_context(waiting(narrow, f"slow-{number}", spec))
            time.sleep(0.1)
        until(served)


@pytest.mark.nightly
def test_the_place_of_a_client_that_has_hung_up_is_free(tmp_path: Path) -> None:
    options = ("--max-requests", str(2 * MOST_LISTENERS))
    with service(tmp_path / "data", *options) as running, running.client(Prefer="respond-async") as http:
        job = http.put("/v1/maps/slow", json=SLOW).json()["job"]

        def listens() -> bool:
            with http.stream("GET", f"{job}/events") as stream:
                return stream.status_code == 200

        assert listens()
        with ExitStack() as stack:

            def is_full() -> bool:
                # A place that a stream of this test has just left is free a little later, and wants one client more.
                stack.enter_context(waiting(running, "slow", SLOW))
                return not listens()

            for _ in range(MOST_LISTENERS - 1):
                stack.enter_context(waiting(running, "slow", SLOW))
            until(is_full)
            answer = http.put("/v1/maps/slow", json=SLOW, headers={"Prefer": WAIT})
            assert (answer.status_code, answer.json()["job"]) == (202, job), "answered, and not refused"
            assert answer.elapsed.total_seconds() < 5
        until(listens)


@pytest.mark.nightly
def test_a_shutdown_answers_those_who_wait_with_their_jobs(tmp_path: Path) -> None:
    running = start(tmp_path / "data", "--threads", "1", program=PROGRAM)

    def put(name: str, spec: dict[str, Any]) -> httpx.Response:
        with running.client(Prefer=WAIT) as http:
            return http.put(f"/v1/maps/{name}", json=spec)

    specs = {"job": LEFT, "begun": SLOW, "no-place": SLOW}
    with ThreadPoolExecutor() as clients:
        answers = {}
        for name, spec in specs.items():
            answers[name] = clients.submit(put, name, spec)
            time.sleep(0.4)
        assert not any(answer.done() for answer in answers.values())
        began = time.monotonic()
        running.process.terminate()
        answered = {name: answer.result(STOP_SECONDS) for name, answer in answers.items()}
    assert running.process.wait(STOP_SECONDS) == 0
    assert time.monotonic() < began + STOP_SECONDS
    for name, answer in answered.items():
        assert answer.status_code == 202, answer.text
        assert answer.headers["location"] == f"/v1/maps/{name}"
        assert answer.headers["link"] == f'<{answer.json()["job"]}>; rel="monitor"'
    log = "".join(log.read_text() for log in tmp_path.glob("*.log"))
    assert "Traceback" not in log
    assert "timeout graceful shutdown" not in log
    with service(tmp_path / "data") as again, again.client() as http:
        steps = {name: http.get(answer.json()["job"]).json()["step"] or 0 for name, answer in answered.items()}
        assert steps["begun"] >= 10, "what the request has done is not done again"
