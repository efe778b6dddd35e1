"""Clients that do not read what they are sent."""

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import numpy as np
import psutil
import pytest

from service_tests.checks import npy, post_npy, put
from service_tests.running import Running, service

CLIENTS = 6
PATIENCE = 2
# Until the requests of all clients are read and their answers begun.
MOST_SECONDS = 15


@pytest.fixture
def impatient(tmp_path: Path) -> Iterator[Running]:
    """A service that gives up clients soon, and answers in blocks of 8 MB."""
    with service(tmp_path / "data", "--client-timeout", str(PATIENCE)) as running:
        with running.client() as client:
            spec = {"kernel": {"kind": "gaussian", "length_scale": 1.0}, "sampler": {"kind": "monte_carlo"}}
            assert put(client, "wide", {**spec, "input_dim": 16, "s": 1024, "form": "phase"}).status_code == 201
            assert post_npy(client, "wide/transform", np.ones((5000, 16))).status_code == 200
        yield running


@pytest.mark.nightly
@pytest.mark.parametrize("hang_up", [False, True])
def test_clients_that_stop_reading_keep_neither_memory_nor_connections(impatient: Running, hang_up: bool) -> None:
    """Each holds 16 MB of a body and 16 MB of blocks, until it is given up or hangs up."""
    process = psutil.Process(impatient.process.pid)
    host, port = impatient.url.removeprefix("http://").split(":")
    body = npy(np.ones((1 << 18, 16), np.float32))
    head = (
        "POST /v1/maps/wide/transform HTTP/1.1\r\nHost: here\r\nContent-Type: application/x-npy\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode()
    idle, connections, most = process.memory_info().rss, process.num_fds(), 0
    with ExitStack() as lines:
        for _ in range(CLIENTS):
            line = lines.enter_context(socket.socket())
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            line.connect((host, int(port)))
            line.sendall(head + body)
        deadline = time.monotonic() + MOST_SECONDS
        while time.monotonic() < deadline:
            left = process.memory_info().rss - idle
            most = max(most, left)
            if most > CLIENTS * (20 << 20):  # nearly all of it: answers have begun
                if hang_up:
                    lines.close()
                # The allocator keeps up to six tenths for the next requests; four fifths and more were held for good.
                if left < 0.7 * most and process.num_fds() <= connections:
                    return
            time.sleep(0.05)
    pytest.fail(f"{left >> 20} of {most >> 20} MB and {process.num_fds() - connections} connections are still there")


@pytest.mark.nightly
def test_a_client_that_does_not_read_pins_two_blocks_of_its_answer(tmp_path: Path) -> None:
    """One block waits to be sent, and one is made meanwhile; the answers are of 131 MB."""
    readers, block = 12, 8 << 20
    with service(tmp_path / "data") as patient, patient.client() as client, ExitStack() as lines:
        spec = {"kernel": {"kind": "gaussian", "length_scale": 1.0}, "sampler": {"kind": "monte_carlo"}}
        assert put(client, "wide", {**spec, "input_dim": 1, "s": 1024, "form": "phase"}).status_code == 201
        assert post_npy(client, "wide/transform", np.ones((5000, 1))).status_code == 200
        process = psutil.Process(patient.process.pid)
        idle, most = process.memory_info().rss, 0
        body = npy(np.ones((32_000, 1), np.float32))
        head = (
            "POST /v1/maps/wide/transform HTTP/1.1\r\nHost: here\r\nContent-Type: application/x-npy\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        ).encode()
        for _ in range(readers):
            line = lines.enter_context(socket.socket())
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            line.connect(("127.0.0.1", httpx.URL(patient.url).port))
            line.sendall(head + body)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            most = max(most, process.memory_info().rss - idle)
            time.sleep(0.05)
        assert client.get("/health/live").status_code == 200
    assert most < readers * (2 * block + (4 << 20))
