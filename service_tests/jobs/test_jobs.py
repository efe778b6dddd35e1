"""Jobs that no worker takes, and what attempts at them leave for the next."""

import time
from functools import partial

import pytest

from app.jobs import checkpoints, scripts
from app.jobs import job_context as attempts
from app.jobs.checkpoints import Checkpoint
from app.jobs.jobs import Jobs, say_starting
from app.jobs.record import JobHasEnded, JobState, TooManyJobs
from app.jobs.scripts import INDEX, key
from app.jobs.worker import JobLimits, Message, Queue, Worker
from app.store.maps import MapStore
from service_tests.checks import keys
from service_tests.jobs.site import Site
from service_tests.servers import until


@pytest.fixture(autouse=True)
def _empty(site: Site) -> None:
    site.client.flushall()


def test_a_waiting_job_is_cancelled_at_once_and_leaves_its_record_only(site: Site) -> None:
    job = site.jobs.submit("test-walk", {}, attachments={"rows": bytes(3 << 20)})
    assert len(site.keys_of(job.id)) == 5
    assert site.jobs.cancel(job.id).state is JobState.cancelled
    assert site.keys_of(job.id) == set()
    assert site.counts() == (0, 0)
    assert site.jobs.events(job.id, "0")[-1].last
    with pytest.raises(JobHasEnded, match="has already been cancelled"):
        site.jobs.cancel(job.id)


def test_a_waiting_job_says_what_it_waits_for(site: Site) -> None:
    job = site.jobs.submit("test-walk", {})
    assert job.waiting_for == "a worker"
    say_starting(site.client, "features, hashes")
    assert site.jobs.get(job.id).waiting_for == "a worker that starts, and compiles features, hashes"
    say_starting(site.client, "")
    assert site.jobs.page(None, None, 9).jobs[0].waiting_for == "a worker"
    assert site.jobs.cancel(job.id).waiting_for is None


def test_more_than_may_wait_are_refused_and_leave_nothing(site: Site) -> None:
    few = Jobs(site.client, 2, 600)
    kept = [few.submit("test-walk", {}).id for _ in range(2)]
    before = keys(site.client)
    with pytest.raises(TooManyJobs) as refused:
        few.submit("test-walk", {}, attachments={"rows": bytes(3 << 20)})
    assert (refused.value.allowed, refused.value.limit) == (2, "max_queued_jobs")
    assert keys(site.client) == before
    few.cancel(kept[0])
    few.submit("test-walk", {})
    site.attempt(kept[1])
    few.submit("test-walk", {})  # one that runs does not wait
    with pytest.raises(TooManyJobs):
        few.submit("test-walk", {})


def test_no_key_takes_more_of_the_queue_than_it_leaves_to_others(site: Site) -> None:
    jobs = Jobs(site.client, 10, 600)
    of_a = [jobs.submit("test-walk", {}, owner="a").id for _ in range(5)]
    with pytest.raises(TooManyJobs, match=r"^5 jobs wait; max_queued_jobs is 10, and 5 jobs of this key wait or run"):
        jobs.submit("test-walk", {}, owner="a")
    message = site.queue.next(1)
    assert message is not None
    assert site.queue.take_back(message, 0)  # it waits again, and still as one of its key
    for owner, more in (("a", 0), ("b", 3), ("c", 1)):
        for _ in range(more):
            jobs.submit("test-walk", {}, owner=owner)
        with pytest.raises(TooManyJobs, match="of this key"):
            jobs.submit("test-walk", {}, owner=owner)
    jobs.submit("test-walk", {})  # without keys nobody is told apart
    with pytest.raises(TooManyJobs, match=r"^10 jobs wait; max_queued_jobs is 10$"):
        jobs.submit("test-walk", {}, owner="d")
    for job in of_a:
        jobs.cancel(job)
    jobs.submit("test-walk", {}, owner="a")


def test_jobs_are_listed_page_by_page_in_the_order_they_came(site: Site) -> None:
    ids = []
    for i in range(7):
        ids.append(site.jobs.submit("test-walk", {}).id)
        if i % 2:
            site.jobs.cancel(ids[-1])
        time.sleep(0.002)  # an id has the milliseconds
    for state, wanted in ((None, ids), (JobState.queued, ids[::2]), (JobState.cancelled, ids[1::2])):
        for limit in (1, 2, 3, 7, 8):
            seen: list[str] = []
            cursor = None
            while True:
                page = site.jobs.page(state, cursor, limit)
                assert len(page.jobs) <= limit
                seen += [job.id for job in page.jobs]
                cursor = page.next
                if cursor is None:
                    break
            assert seen == wanted, (state, limit)
    assert site.jobs.page(JobState.failed, None, 10).jobs == []


def test_ended_jobs_expire_whole(site: Site) -> None:
    brief = Jobs(site.client, 10, 1)
    job = brief.submit("test-walk", {})
    brief.cancel(job.id)
    until(lambda: brief.page(None, None, 10).jobs == [])

    def swept() -> bool:
        Queue(site.client, 60).tend()
        return site.client.zcard(INDEX) == 0

    until(swept)
    until(lambda: {one for one in keys(site.client) if b"{job:" in one} == set())


@pytest.mark.parametrize("length", [0, 2_500_000])
def test_a_job_goes_on_from_the_state_it_was_submitted_with(site: Site, length: int) -> None:
    state = bytes(range(256)) * (length // 256) + b"x" * (length % 256)
    job = site.jobs.submit("test-walk", {}, checkpoint=Checkpoint(state, 5, 20, 0.25))
    assert (job.state, job.progress, job.step, job.of, job.objective) == (JobState.queued, 0.25, 5, 20, 0.25)
    assert {site.client.ttl(one) for one in site.client.scan_iter(match=key(job.id, "*"))} == {-1}
    attempt = site.attempt(job.id)
    assert attempt.restore() == state
    site.jobs.cancel(job.id)
    site.queue.take_back(Message(attempt.message, job.id), deaths=0)
    assert site.jobs.get(job.id).state is JobState.cancelled
    assert site.keys_of(job.id) == set()


@pytest.mark.parametrize("runs", [False, True], ids=["waiting", "running"])
def test_what_takes_memory_is_cancelled_though_the_store_has_none_left(site: Site, runs: bool) -> None:
    maps, building = MapStore(site.client), site.jobs.new_id()
    site.jobs.submit("build-map", {}, reservation=maps.reserve("m", "{}", building)[1], job_id=building)
    attempts = [site.attempt(building)] if runs else []
    site.client.config_set("maxmemory", 1)
    try:
        assert site.jobs.cancel(building, "a receipt").state is (JobState.running if runs else JobState.cancelled)
        assert maps.find("m") is None
        for attempt in attempts:
            scripts.run(site.client, "end", building, attempt.message, "succeeded", 60, "", "[]")
    finally:
        site.client.config_set("maxmemory", 0)
    assert site.jobs.get(building).state is JobState.cancelled


def test_a_job_makes_way_once_it_has_got_further_and_what_a_turn_loses_makes_the_next_longer(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "_SHORTEST_PAUSE", 0.0)
    job_id = site.jobs.submit("test-walk", {}).id
    worker = Worker(lambda: site.client, 5.0, {}, JobLimits(60.0, 1 << 40), 60.0)
    attempt = site.attempt(job_id)
    attempt.report(1, 9)
    attempt.checkpoint(lambda: b"state")
    for step, state, taken, kept_waiting, is_over, lost in (
        (2, b"state", 500.0, 29.0, False, None),  # alone most of the time
        (3, b"state", 500.0, 31.0, True, "31.000"),
        (4, b"state", 500.0, 30.5, False, "31.000"),
        (5, b"state", 500.0, 40.0, True, "71.000"),
        (6, b"state", 500.0, 70.0, False, "71.000"),
        (7, b"more", 29.0, 29.0, False, "71.000"),
        (8, b"most", 31.0, 1.0, True, "71.000"),
    ):
        before = site.jobs.fields(job_id)
        attempt = site.resumed(attempt)
        attempt.report(step, 9)
        attempt.tell()
        attempt.checkpoint(partial(bytes, state))
        message = Message(attempt.message, job_id)
        scripts.run(site.client, "renew", job_id, attempt.message, "99")
        assert worker._had_its_turn(message, taken, kept_waiting, before | {"ran": "7"}) is is_over, step
        now = site.jobs.fields(job_id)
        is_lost = is_over and now.get("lost") != before.get("lost")
        assert (now.get("lost"), now["ran"]) == (lost, "7" if is_lost else "99"), step


def test_a_checkpoint_of_other_versions_is_not_gone_on_from(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "_SHORTEST_PAUSE", 0.0)
    job_id = site.jobs.submit("test-walk", {}).id
    attempt = site.attempt(job_id)
    attempt.checkpoint(lambda: b"state")
    assert site.resumed(attempt).restore() == b"state"
    monkeypatch.setattr(checkpoints, "_MAKERS", b"bochner 0.2.0\n")
    assert site.resumed(attempt).restore() is None
