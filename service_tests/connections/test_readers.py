"""Clients that do not read what they are sent."""

import socket
import time
from contextlib import ExitStack
from pathlib import Path

import httpx
import numpy as np
import psutil
import pytest

from service_tests.checks import npy, post_npy, put
from service_tests.running import service

CLIENTS = 6


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
