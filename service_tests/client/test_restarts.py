"""A service that is killed and comes back, and one that is too busy, behind an address that stays."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from bochner_client import Client, JobEvent
from service_tests.jobs.site import PROGRAM
from service_tests.running import start, stop
from service_tests.servers import Wire, until

SPEC = {"kernel": {"kind": "gaussian", "length_scale": 1.5}, "sampler": {"kind": "monte_carlo"}, "input_dim": 3}


class Behind:
    """A service behind an address that stays when it is killed and another takes its data over."""

    def __init__(self, data_dir: Path) -> None:
        self._start = partial(start, data_dir, "--job-workers", "1", "--max-request-seconds", "0", program=PROGRAM)
        self.running = self._start()
        self._wire = Wire(self.running.url.replace("http://", "tcp://"))
        self.url = f"http://127.0.0.1:{self._wire.port}"

    def kill(self) -> None:
        """Kill it."""
        self.running.process.kill()
        self.running.process.wait(30)

    def come_back(self) -> None:
        """Start another on the same data."""
        self.running = self._start()
        self._wire._address = self.running.url.partition("://")[2]

    def end(self) -> None:
        """End it, and take the address away."""
        stop(self.running)
        self._wire.close()


@pytest.fixture
def behind(tmp_path: Path) -> Iterator[Behind]:
    """A service whose Monte Carlo takes long and goes to a job at once."""
    made = Behind(tmp_path / "data")
    yield made
    made.end()


@pytest.mark.nightly
def test_calls_and_waits_go_on_when_the_service_is_killed_and_comes_back(behind: Behind) -> None:
    rows = np.ones((50, 3), np.float32)
    with Client(behind.url) as client, ThreadPoolExecutor(2) as threads:
        client.put_map("quick", {**SPEC, "sampler": {"kind": "sobol"}, "s": 8})
        wanted = client.transform("quick", rows)
        seen: list[JobEvent] = []
        record = client.put_map("slow", {**SPEC, "s": 4}, wait=False)
        made = threads.submit(client.job(str(record.job)).wait, progress=seen.append)
        until(lambda: any(event.state == "running" for event in seen))
        behind.kill()
        found = threads.submit(client.transform, "quick", rows)
        time.sleep(0.5)
        behind.come_back()
        assert made.result(100).status == "ready"
        assert np.array_equal(found.result(30), wanted)
    ids = [tuple(map(int, event.event_id.split("-"))) for event in seen]
    assert ids == sorted(set(ids)), "an event came twice, or out of order"
