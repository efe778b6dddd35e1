"""A queue as version 0.1.0 left it; see also stored/."""

import time

import pytest
import redis

from app.jobs.prelude import QUEUE, key
from app.jobs.queue import Queue
from app.jobs.record import JobState
from service_tests.jobs.site import Site

QUEUED, RUNNING = "bochner:jobs:queued", "bochner:jobs:running"


@pytest.fixture
def client(site: Site) -> redis.Redis:
    site.client.flushall()
    return site.client


def left(site: Site, state: str, lease: float = -1) -> str:
    """A job of that version."""
    job_id = site.jobs.submit("test-walk", {"steps": 3, "seed": 3}).id
    record = key(job_id, "record")
    site.client.hdel(record, "format", "message")
    site.client.delete(QUEUE)
    site.client.hset(record, mapping={"state": state, "token": "0" * 16})
    if state == "queued":
        site.client.zadd(QUEUED, {job_id: time.time()})
        site.client.rpush("rq:queue:bochner", job_id)
        site.client.sadd("rq:queues", "rq:queue:bochner", "rq:queue:others")
    else:
        site.client.zadd(RUNNING, {job_id: time.time() + lease})
    site.client.hset(f"rq:job:{job_id}", "status", "queued")
    return job_id


def test_jobs_that_were_left_are_taken_on_and_nothing_is_left_of_the_old_queue(site: Site, client: redis.Redis) -> None:
    waiting, running, held = left(site, "queued"), left(site, "running"), left(site, "running", lease=60)
    client.hset("rq:worker:1", "pid", "1")
    client.sadd("rq:workers:bochner", "rq:worker:1")
    client.sadd("rq:workers", "rq:worker:1", "rq:worker:2")
    Queue(site.client, 60).tend()
    for job_id in (running, waiting):
        assert site.jobs.get(job_id).state is JobState.queued
        site.attempt(job_id)
    assert site.jobs.get(held).state is JobState.running
    assert client.zrange(RUNNING, 0, -1) == [held.encode()]
    assert not client.exists(QUEUED)
    assert set(client.scan_iter(match="rq:*")) == {b"rq:queues", b"rq:workers", f"rq:job:{held}".encode()}
    assert client.smembers("rq:queues") == {b"rq:queue:others"}
    assert client.smembers("rq:workers") == {b"rq:worker:2"}


@pytest.mark.parametrize(
    ("state", "lease", "cancelled"), [("queued", 0, True), ("running", -1, True), ("running", 60, False)]
)
def test_a_job_that_was_left_is_cancelled_without_a_worker(
    site: Site, client: redis.Redis, state: str, lease: float, cancelled: bool
) -> None:
    """A worker of that version may still hold the last one, and looks at what the record says."""
    job_id = left(site, state, lease)
    assert (site.jobs.cancel(job_id).state is JobState.cancelled) == cancelled
    Queue(site.client, 60).tend()
    assert site.counts() == (0, 0)
    assert client.hget(key(job_id, "record"), "cancel") == (None if cancelled else b"1")
