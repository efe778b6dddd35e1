"""Workers, their processes and their store, killed at random moments."""

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from app.jobs.record import JobState
from app.store.connection import connect
from app.store.embedded import EmbeddedStore
from service_tests.jobs.site import Site, gone, kill
from service_tests.servers import answers, until

STEPS = 300


@pytest.fixture(scope="module")
def two(site: Site) -> Site:
    """A store with two workers."""
    for _ in range(2):
        site.start()
    return site


@pytest.fixture(scope="module")
def undisturbed(two: Site) -> bytes:
    """The end of a walk that nobody has disturbed."""
    job_id = two.walk(STEPS, pause=0)
    assert two.ended(job_id).state is JobState.succeeded
    return two.result(job_id)


def test_ten_deaths_in_one_job_change_nothing_and_leave_nobody_computing(two: Site, undisturbed: bytes) -> None:
    """In turn of the process that works, and of its worker, whose job waits for the end of the lease."""
    chance = random.Random(2)
    two.idle()
    job_id = two.walk(STEPS, pause=0.05)  # that it does not end before the last death
    for i in range(10):
        worker, working = two.holder()
        time.sleep(chance.uniform(0, 0.6))
        if i % 2:
            worker.kill()
            worker.wait(10)
            two.workers.remove(worker)
            two.start()
        else:
            for horse in working:
                kill(horse)
        gone(working)
        assert not two.jobs.get(job_id).state.ended
    assert two.ended(job_id, 120).state is JobState.succeeded
    assert two.result(job_id) == undisturbed
    assert {part.partition(":")[0] for part in two.keys_of(job_id)} == {"result"}


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[Site]:
    """A store that comes back when it is killed, with one worker."""
    with EmbeddedStore(tmp_path / "data") as store, connect(store.url, 5) as client:
        here = Site(store.url, client)
        here.start()
        yield here
        here.clean()


def test_deaths_of_the_store_change_nothing(embedded: Site, undisturbed: bytes) -> None:
    chance = random.Random(4)
    job_id = embedded.walk(STEPS)
    embedded.running(job_id)
    for _ in range(3):
        time.sleep(chance.uniform(0.3, 1.5))
        pid = int(embedded.client.info("server")["process_id"])
        os.kill(pid, signal.SIGKILL)
        until(lambda: answers(embedded.url))
    assert embedded.ended(job_id).state is JobState.succeeded
    assert embedded.result(job_id) == undisturbed
    assert psutil.Process(embedded.workers[0].pid).is_running()
