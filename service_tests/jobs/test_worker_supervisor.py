from pathlib import Path

import httpx
import psutil
import pytest

from service_tests.checks import NPY, put
from service_tests.conftest import AT_ONCE
from service_tests.jobs.site import PROGRAM, gone
from service_tests.running import start, stop
from service_tests.servers import until

SPEC = {"input_dim": 3, "kernel": {"kind": "gaussian", "length_scale": 1.5}, "sampler": {"kind": "monte_carlo"}, "s": 3}


def state(http: httpx.Client, job: str) -> str:
    """How a job has ended."""
    until(lambda: http.get(job).json()["ended_at"])
    return str(http.get(job).json()["state"])


@pytest.mark.nightly
def test_a_service_that_is_killed_takes_its_worker_along_and_the_next_goes_on(tmp_path: Path, name: str) -> None:
    """The frozen map is the one that nobody disturbed."""
    running = start(tmp_path / "data", "--job-workers", "1", *AT_ONCE, program=PROGRAM)
    try:
        with running.client() as client:
            assert state(client, put(client, name, SPEC).json()["job"]) == "succeeded"
            link = put(client, f"{name}-b", SPEC).json()["job"]
            until(lambda: (client.get(link).json()["step"] or 0) > 30)
            beside = psutil.Process(running.process.pid).children(recursive=True)
        working = [process for process in beside if "worker" in process.cmdline()]
        assert len(working) == 2
        running.process.kill()
        running.process.wait(10)
        gone(working)
        running = start(tmp_path / "data", "--job-workers", "1", *AT_ONCE, program=PROGRAM)
        with running.client(Accept=NPY) as client:
            assert state(client, link) == "succeeded"
            one, other = (client.get(f"/v1/maps/{each}/frequencies").content for each in (name, f"{name}-b"))
            assert one == other
    finally:
        stop(running)
