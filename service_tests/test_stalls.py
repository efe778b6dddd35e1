"""Clients that stop halfway, against a service of little patience."""

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from service_tests.checks import npy, post_npy
from service_tests.connections.wire import connected
from service_tests.running import Running, service, start

pytestmark = pytest.mark.nightly
PATIENCE = 3.0


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service that waits some seconds for its clients and serves two at once."""
    options = ("--client-timeout", str(PATIENCE), "--max-requests", "2", "--max-operations", "700000000")
    with service(tmp_path_factory.mktemp("impatient") / "data", *options) as running:
        with running.client() as client:
            spec = {"kernel": {"kind": "gaussian", "length_scale": 1.0}, "sampler": {"kind": "sobol"}}
            client.put("/v1/maps/small", json={**spec, "input_dim": 1, "s": 1024}).raise_for_status()
        yield running


def request(length: int) -> bytes:
    return (
        "POST /v1/maps/small/transform HTTP/1.1\r\nHost: here\r\nContent-Type: application/x-npy\r\n"
        f"Content-Length: {length}\r\n\r\n"
    ).encode()


def transform(running: Running) -> int:
    with running.client() as http:
        return post_npy(http, "small/transform", np.ones((1, 1))).status_code


def test_an_upload_that_stalls_is_given_up_and_locks_nobody_out(impatient: Running) -> None:
    with closing(connected(impatient)) as one, closing(connected(impatient)) as other:
        for stalled in (one, other):
            stalled.sendall(request(1000) + b"\x93")
        deadline = time.monotonic() + 30
        while transform(impatient) != 503:
            assert time.monotonic() < deadline
        for stalled in (one, other):
            answer = stalled.recv(4096)
            while b"\r\n\r\n{" not in answer:  # head and body may come apart
                answer += stalled.recv(4096)
            assert answer.startswith(b"HTTP/1.1 408 ")
            assert b"/problems/request-timeout" in answer
    assert transform(impatient) == 200


def test_a_client_that_does_not_read_is_given_up(impatient: Running) -> None:
    body = npy(np.ones((1700, 1), np.float32))
    with closing(connected(impatient)) as one, closing(connected(impatient)) as other:
        for slow in (one, other):
            slow.sendall(request(len(body)) + body)
        for slow in (one, other):
            assert slow.recv(16).startswith(b"HTTP/1.1 200")
        assert transform(impatient) == 503  # an answer that is being sent still counts
        deadline = time.monotonic() + 30
        while transform(impatient) != 200:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_a_stalled_client_does_not_keep_the_service_from_stopping(tmp_path: Path) -> None:
    running = start(tmp_path / "data", "--client-timeout", "600")
    with closing(connected(running)) as stalled:
        stalled.sendall(request(1000) + b"\x93")
        time.sleep(0.2)  # long enough to be inside; too short only makes the test easier
        running.process.terminate()
        assert running.process.wait(30) == 0
    assert not (tmp_path / "data" / "store.sock").exists()
