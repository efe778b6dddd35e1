"""The end of a service that clients listen to."""

import signal
import socket
import time
from pathlib import Path

import httpx
import numpy as np
import pytest

from service_tests.checks import npy, put
from service_tests.running import Running, start, stop
from service_tests.servers import answers, until

ANSWER_BYTES = 32 << 20


@pytest.mark.nightly
@pytest.mark.parametrize("options", [["--workers", "2"], []], ids=["two processes", "one process"])
def test_a_listener_holds_up_nobody(tmp_path: Path, name: str, options: list[str]) -> None:
    running = start(tmp_path / "data", *options)  # without a worker: the job goes on waiting
    spec = {
        "input_dim": 3,
        "kernel": {"kind": "gaussian", "length_scale": 1.5},
        "sampler": {"kind": "weighted", "box": 1.0},
        "s": 1000,
    }
    with running.client(Prefer="respond-async") as http:
        link = http.put(f"/v1/maps/{name}", json=spec).json()["job"]
        with http.stream("GET", link + "/events") as stream:
            lines = stream.iter_lines()
            assert next(lines).startswith("id: ")
            running.process.terminate()
            assert "event: end" not in list(lines)  # the stream ends whole, and the job is none of its business
    stop(running)
    assert running.process.returncode == 0
    assert not answers(running.socket)
    log = "".join(log.read_text() for log in tmp_path.glob("*.log"))
    assert "Traceback" not in log
    assert "timeout graceful shutdown" not in log  # nobody had to be cut off


def request(body: bytes, length: int) -> bytes:
    head = "POST /v1/maps/wide/transform HTTP/1.1\r\nHost: here\r\nContent-Type: application/x-npy\r\n"
    return f"{head}Content-Length: {length}\r\n\r\n".encode() + body


def begun(running: Running, body: bytes, length: int) -> socket.socket:
    """A client that has sent a request, or the beginning of one, and reads little by little."""
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    line.settimeout(60)
    line.connect(("127.0.0.1", httpx.URL(running.url).port))
    line.sendall(request(body, length))
    return line


def wide(running: Running) -> bytes:
    """Make a map, and give a body whose answer is of `ANSWER_BYTES` and a head."""
    spec = {"kernel": {"kind": "gaussian", "length_scale": 1.0}, "sampler": {"kind": "monte_carlo"}}
    with running.client() as http:
        assert put(http, "wide", {**spec, "input_dim": 1, "s": 1024, "form": "phase"}).status_code == 201
    return npy(np.ones((ANSWER_BYTES // 4096, 1), np.float32))


@pytest.mark.nightly
def test_an_answer_under_way_is_sent_to_its_end_and_nothing_new_begun(tmp_path: Path) -> None:
    seconds = 20
    running = start(tmp_path / "data", "--job-workers", "1")
    body = wide(running)
    with begun(running, body, len(body)) as line:
        came = len(line.recv(1 << 16))
        running.process.terminate()
        running.process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        until(lambda: not connects(running))
        assert answers(running.socket), "the store is there until the last answer is sent"
        pieces = 0
        while piece := line.recv(1 << 20):
            came, pieces = came + len(piece), pieces + 1
            ahead = came / ANSWER_BYTES * seconds - (time.monotonic() - began)
            time.sleep(max(0, ahead))
            if pieces % 100 == 0:
                running.process.send_signal(signal.SIGTERM)
        assert came > ANSWER_BYTES
        assert time.monotonic() - began > seconds - 1
    stop(running)
    assert running.process.returncode == 0
    assert not answers(running.socket)
    assert "timeout graceful shutdown" not in "".join(log.read_text() for log in tmp_path.glob("*.log"))


def connects(running: Running) -> bool:
    try:
        socket.create_connection(("127.0.0.1", httpx.URL(running.url).port), 5).close()
    except ConnectionRefusedError:
        return False
    return True
