"""Clients that stop halfway, against a service of little patience."""

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from service_tests.checks import post_npy
from service_tests.connections.wire import connected
from service_tests.running import Running, service, start

pytestmark = pytest.mark.nightly
BEGUN = b"POST /v1/maps/small/transform HTTP/1.1\r\nHost: here\r\nContent-Type: application/x-npy\r\n"
BEGUN += b"Content-Length: 1000\r\n\r\n\x93"


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service that waits some seconds for its clients and serves two at once."""
    options = ("--client-timeout", "3", "--max-requests", "2")
    with service(tmp_path_factory.mktemp("impatient") / "data", *options) as running:
        spec = {"kernel": {"kind": "gaussian", "length_scale": 1.0}, "sampler": {"kind": "sobol"}, "input_dim": 1}
        with running.client() as client:
            client.put("/v1/maps/small", json={**spec, "s": 1024}).raise_for_status()
        yield running


def transform(running: Running) -> int:
    with running.client() as http:
        return post_npy(http, "small/transform", np.ones((1, 1))).status_code


def test_an_upload_that_stalls_is_given_up_and_locks_nobody_out(impatient: Running) -> None:
    with closing(connected(impatient)) as one, closing(connected(impatient)) as other:
        for stalled in (one, other):
            stalled.sendall(BEGUN)
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


def test_a_stalled_client_does_not_keep_the_service_from_stopping(tmp_path: Path) -> None:
    running = start(tmp_path / "data", "--client-timeout", "600")
    with closing(connected(running)) as stalled:
        stalled.sendall(BEGUN)
        time.sleep(0.2)  # long enough to be inside; too short only makes the test easier
        running.process.terminate()
        assert running.process.wait(30) == 0
    assert not (tmp_path / "data" / "store.sock").exists()
