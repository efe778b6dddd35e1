"""Messages, the attempts they lead to, what becomes of those whose workers have died, and how they are counted."""

from typing import Any

import pytest

from app.jobs import scripts
from app.jobs.record import JobHasEnded, JobState, NotMine
from app.jobs.scripts import QUEUE
from app.jobs.worker import Message, Queue
from app.store.named import Reservation
from service_tests.checks import keys
from service_tests.jobs.site import Site, read


@pytest.fixture(autouse=True)
def _empty(site: Site) -> None:
    site.client.flushall()


@pytest.fixture
def queue(site: Site) -> Queue:
    """A queue that has not been tended yet."""
    return Queue(site.client, 60)


def test_messages_are_read_in_the_order_they_came_and_once(site: Site, queue: Queue) -> None:
    ids = [site.jobs.submit("test-walk", {}).id for _ in range(5)]
    assert [read(site.client).job_id for _ in range(5)] == ids
    assert queue.next(0.01) is None
    queue.tend()
    assert site.counts() == (0, 5), "none is taken from a worker that lives"


def test_a_job_that_makes_way_is_not_overtaken_by_those_of_its_owner(site: Site, queue: Queue) -> None:
    """Two long jobs have turns, and a short one of the first one's owner begins before the third of them."""
    names = {site.jobs.submit("test-walk", {}, owner=owner).id: owner + n for owner, n in ("a1", "a2", "b1")}
    began, served = [""], ""
    while len(began) <= 6:
        message = read(site.client)
        if queue.is_due(message, served):
            began, served = [*began, names[message.job_id]], message.owner
            assert scripts.run(site.client, "claim", message.job_id, message.id) == b"ok"
        assert queue.take_back(message, deaths=0)
    assert began[1:] == ["a1", "b1", "a2", "b1", "a1", "b1"]
    while queue.others_wait("a"):
        message = read(site.client)
    assert message.owner == "b"


def test_a_job_is_only_its_holders(site: Site, queue: Queue) -> None:
    job = site.jobs.submit("test-walk", {})
    first = site.attempt(job.id)
    assert scripts.run(site.client, "claim", job.id, first.message) == b"ok"  # as after a lost reply
    assert scripts.run(site.client, "claim", job.id, "1-1") == b""
    assert scripts.run(site.client, "renew", job.id, "1-1", "1") == b"lost"
    site.abandon(first.message)
    queue.tend()
    assert site.jobs.get(job.id).state is JobState.queued
    second = site.attempt(job.id)
    assert second.message != first.message
    for late in (
        scripts.run(site.client, "renew", job.id, first.message, "1") != b"lost",
        scripts.run(site.client, "progress", job.id, first.message, "1", 1, 1, "", ""),
        scripts.run(site.client, "announce", job.id, first.message, keys=["bochner:x"]),
        scripts.run(site.client, "checkpoint", job.id, first.message, "p", keys=["bochner:x"]),
        scripts.run(site.client, "end", job.id, first.message, "succeeded", 60, "", ""),
    ):
        assert late == 0
    with pytest.raises(NotMine):
        first.announce(["bochner:x"])
    with pytest.raises(NotMine):
        first.confirm()
    second.confirm()
    assert not queue.take_back(Message(first.message, job.id), deaths=1)
    assert site.jobs.get(job.id).state is JobState.running
    for _ in range(2):
        assert scripts.run(site.client, "end", job.id, second.message, "succeeded", 60, "", "") == 1
    assert len(site.jobs.events(job.id, "0")) == 5  # queued, running, queued, running, succeeded
    assert site.counts() == (0, 0)


def test_a_message_read_by_a_worker_that_died_before_it_could_claim_the_job_comes_again(
    site: Site, queue: Queue
) -> None:
    job = site.jobs.submit("test-walk", {})
    site.abandon(read(site.client).id)
    queue.tend()
    assert site.jobs.fields(job.id).get("deaths") is None
    assert site.attempt(job.id).job_id == job.id


def test_a_job_that_dies_again_and_again_is_given_up(site: Site) -> None:
    job = site.jobs.submit("test-walk", {})
    for deaths in range(1, 14):
        site.queue.take_back(Message(site.attempt(job.id).message, job.id), deaths=1)
        assert (site.jobs.get(job.id).state is JobState.failed) == (deaths == 13)
    error = site.jobs.get(job.id).error
    assert error is not None
    assert error.reason == "died"


def test_a_running_job_whose_worker_is_dead_is_cancelled_at_once(site: Site) -> None:
    job = site.jobs.submit("test-walk", {})
    attempt = site.attempt(job.id)
    assert site.jobs.cancel(job.id).state is JobState.running
    other = site.jobs.submit("test-walk", {})
    site.abandon(site.attempt(other.id).message)
    assert site.jobs.cancel(other.id).state is JobState.cancelled
    assert site.counts() == (0, 1)
    assert scripts.run(site.client, "renew", job.id, attempt.message, "1") == b"cancelled"


@pytest.mark.parametrize("died", [False, True])
def test_a_job_that_has_made_its_map_is_not_cancelled(site: Site, died: bool) -> None:
    job_id = site.jobs.new_id()
    manifest = f'{{"job": "{job_id}"}}'.encode()
    reservation = Reservation("bochner:{map:m}:manifest", "bochner:maps", "m", manifest, [], "")
    site.jobs.submit("test-walk", {}, reservation=reservation, job_id=job_id)
    attempt = site.attempt(job_id)
    site.client.set(reservation.key, b'{"token": "made"}')
    if died:
        site.queue.take_back(Message(attempt.message, job_id), deaths=1)
    before = site.jobs.get(job_id).state
    with pytest.raises(JobHasEnded):
        site.jobs.cancel(job_id)
    assert site.jobs.get(job_id).state is before
    assert site.client.get(reservation.key) == b'{"token": "made"}'


@pytest.mark.parametrize("fields", [{"job": "0" * 24}, {"other": "x"}, {"job": b"\xff\xfe"}, {"job": "", "since": "x"}])
def test_a_message_that_is_no_jobs_is_dropped(site: Site, queue: Queue, fields: Any) -> None:
    queue.tend()
    site.client.xadd(QUEUE, fields)
    message = read(site.client)
    assert scripts.run(site.client, "claim", message.job_id, message.id) == b""
    assert (site.client.xlen(QUEUE), site.counts()) == (0, (0, 0))
    site.client.xadd(QUEUE, fields)
    site.abandon(read(site.client).id)  # its reader died
    Queue(site.client, 60).tend()
    assert site.counts() == (0, 0)
    assert keys(site.client) == set()


def test_jobs_are_counted_by_what_became_of_them(site: Site) -> None:
    ids = [site.jobs.submit(kind, {}).id for kind in ("walk", "walk", "walk", "run", "run")]
    assert site.jobs.tally()[:2] == (5, 0)
    attempts = [site.attempt(one) for one in ids[:3]]
    assert site.jobs.tally()[:2] == (2, 3)
    site.abandon(attempts[0].message)
    assert site.jobs.tally()[:2] == (3, 2), "a job whose worker has died waits"
    for attempt, state in zip(attempts, ("succeeded", "failed", "succeeded"), strict=True):
        for _ in range(2):  # as after a lost reply
            scripts.run(site.client, "end", attempt.job_id, attempt.message, state, 60, '{"reason": "x"}', "")
    site.jobs.cancel(ids[3])
    found = site.jobs.tally()
    assert (found.queued, found.running) == (1, 0)
    assert found.ended == {("walk", "succeeded"): 2, ("walk", "failed"): 1, ("run", "cancelled"): 1}
    assert found.ran["walk"].buckets[-1] == ("+Inf", 3)
    assert "run" not in found.ran, "it was cancelled before it began"
    assert found.waited["walk"].buckets[-1] == ("+Inf", 3)
