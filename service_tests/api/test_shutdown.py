"""The end of a service that clients listen to."""

from pathlib import Path

import pytest

from service_tests.cases import with_long
from service_tests.running import start, stop
from service_tests.servers import answers


@pytest.mark.parametrize("options", with_long([["--workers", "2"]], [[]]), ids=["two processes", "one process"])
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
