"""A service that is killed and comes back, and one that is too busy, behind an address that stays."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bochner_client import Client, JobEvent
from service_tests.jobs.site import PROGRAM
from service_tests.running import Running, start, stop
from service_tests.servers import Wire, until

SPEC = {"kernel": {"kind": "gaussian", "length_scale": 1.5}, "sampler": {"kind": "monte_carlo"}, "input_dim": 3}


class Behind:
    """A service behind an address that stays when it is killed and another takes its data over."""

    def __init__(self, data_dir: Path, *options: str) -> None:
        self._data_dir, self._options = data_dir, options
        self.running = self._start()
        self._wire = Wire(self._target())
        self.url = f"http://127.0.0.1:{self._wire.port}"

    def kill(self) -> None:
        """Kill it."""
        self.running.process.kill()
        self.running.process.wait(30)

    def come_back(self) -> None:
        """Start another on the same data."""
        self.running = self._start()
        self._wire._address = self._target().partition("://")[2]

    def end(self) -> None:
        """End it, and take the address away."""
        stop(self.running)
        self._wire.close()

    def _start(self) -> Running:
        return start(self._data_dir, *self._options, program=PROGRAM)

    def _target(self) -> str:
        return self.running.url.replace("http://", "tcp://")


@pytest.fixture
def behind(tmp_path: Path) -> Iterator[Behind]:
    """A service whose Monte Carlo takes long and goes to a job at once."""
    made = Behind(tmp_path / "data", "--job-workers", "1", "--max-request-seconds", "0")
    yield made
    made.end()


def transform_while(still: Callable[[], bool], client: Client, rows: Any, found: list[Any]) -> None:
    while still():
        found.append(client.transform("quick", rows))


@pytest.mark.nightly
def test_calls_and_waits_go_on_when_the_service_is_killed_and_comes_back(behind: Behind) -> None:
    rows = np.ones((50, 3), np.float32)
    with Client(behind.url) as client, ThreadPoolExecutor(2) as threads:
        client.put_map("quick", {**SPEC, "sampler": {"kind": "sobol"}, "s": 8})
        wanted = client.transform("quick", rows)
        seen: list[JobEvent] = []
        record = client.put_map("slow", {**SPEC, "s": 4}, wait=False)
        job = client.job(str(record.job))
        made = threads.submit(job.wait, progress=seen.append)
        found: list[Any] = []
        transforms = threads.submit(transform_while, lambda: not made.done(), client, rows, found)
        until(lambda: bool(found) and any(event.state == "running" for event in seen))
        behind.kill()
        before = len(found)
        time.sleep(0.5)
        behind.come_back()
        assert made.result(100).status == "ready"
        transforms.result(30)
    assert len(found) > before, "no call was answered after the service came back"
    assert all(np.array_equal(one, wanted) for one in found)
    ids = [tuple(map(int, event.event_id.split("-"))) for event in seen]
    assert ids == sorted(set(ids)), "an event came twice, or out of order"
