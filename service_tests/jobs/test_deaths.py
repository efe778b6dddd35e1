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
from service_tests.cases import few_and_many
from service_tests.jobs.site import Site, gone, kill
from service_tests.servers import STORE_PROGRAM, answers, until

STEPS_PER_DEATH = 50
"""More than are made until then, so that the walk does not end before the last death."""


@pytest.fixture(scope="module")
def two(site: Site) -> Site:
    """A store with two workers."""
    for _ in range(2):
        site.start()
    return site


def undisturbed(site: Site, steps: int) -> bytes:
    """The end of a walk that nobody has disturbed."""
    job_id = site.walk(steps, pause=0)
    assert site.ended(job_id).state is JobState.succeeded
    return site.result(job_id)


@pytest.mark.gate
@pytest.mark.parametrize("deaths", few_and_many(2, 60))
def test_deaths_in_one_job_change_nothing_and_leave_nobody_computing(two: Site, deaths: int) -> None:
    """In turn of the process that works, and of its worker, whose job waits for the end of the lease."""
    chance, steps = random.Random(2), STEPS_PER_DEATH * deaths
    wanted = undisturbed(two, steps)
    two.idle()
    job_id = two.walk(steps, pause=0.02)
    for i in range(deaths):
        if i % 6 == 5:  # thirteen deaths in a row without a step fail a job
            before = two.jobs.get(job_id).progress
            until(lambda before=before: two.jobs.get(job_id).progress > before)  # type: ignore[misc]
        worker, working = two.holder()
        time.sleep(chance.uniform(0, 0.6))
        if i % 2:
            worker.kill()
            worker.wait(10)
            two.workers.remove(worker)
            two.start()
        else:
            for process in working:
                kill(process)
        gone(working)
        assert not two.jobs.get(job_id).state.ended
    assert two.ended(job_id).state is JobState.succeeded
    assert two.result(job_id) == wanted
    assert {part.partition(":")[0] for part in two.keys_of(job_id)} == {"result"}


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[Site]:
    """A store that comes back when it is killed, with one worker."""
    with EmbeddedStore(tmp_path / "data", STORE_PROGRAM) as store, connect(store.url, 5) as client:
        here = Site(store.url, client)
        here.start()
        yield here
        here.clean()


@pytest.mark.gate
@pytest.mark.parametrize("deaths", few_and_many(2, 20))
def test_deaths_of_the_store_change_nothing(embedded: Site, deaths: int) -> None:
    chance, steps = random.Random(4), STEPS_PER_DEATH * deaths
    wanted = undisturbed(embedded, steps)
    job_id = embedded.walk(steps)
    embedded.running(job_id)
    for _ in range(deaths):
        time.sleep(chance.uniform(0.3, 1.5))
        pid = int(embedded.client.info("server")["process_id"])
        os.kill(pid, signal.SIGKILL)
        until(lambda: answers(embedded.url))
    assert embedded.ended(job_id).state is JobState.succeeded
    assert embedded.result(job_id) == wanted
    assert psutil.Process(embedded.workers[0].pid).is_running()
