"""Two workers and what they are given."""

import random
from collections import Counter
from pathlib import Path

import psutil
import pytest

from app.jobs.record import JobHasNoResult, JobState
from app.jobs.scripts import QUEUE, key
from service_tests.jobs.site import Site
from service_tests.servers import until

LIMITS = ("--max-job-bytes", "600000000")


@pytest.fixture(scope="module")
def two(site: Site) -> Site:
    """A store with two workers that give their jobs little memory."""
    for _ in range(2):
        site.start(*LIMITS)
    site.ended(site.walk(1))
    return site


def test_a_job_runs_to_its_end_and_tells_how_far_it_is(two: Site) -> None:
    job_id = two.walk(100)
    job = two.ended(job_id)
    assert (job.state, job.progress, job.step, job.of, job.eta_seconds) == (JobState.succeeded, 1.0, 100, 100, None)
    assert None not in (job.started_at, job.ended_at)
    assert job.result == f"/v1/jobs/{job_id}/result"
    events = two.jobs.events(job_id, "0")
    steps = [event.changed["step"] for event in events if event.changed["step"] is not None]
    assert steps == sorted(steps)
    assert len(set(steps)) >= 3
    assert any(event.changed["eta_seconds"] is not None for event in events)
    assert [event.changed["state"] for event in (events[0], events[1], events[-1])] == [
        "queued",
        "running",
        "succeeded",
    ]
    assert two.jobs.events(job_id, events[1].id) == events[2:]
    assert [body.media_type for body in two.jobs.result(job_id)] == ["application/json", "text/plain"]
    assert two.result(job_id).startswith(b'{"end": "0x1.')


@pytest.mark.parametrize("length", [0, (1 << 20) + 1])
def test_bytes_go_in_and_come_out_unchanged(two: Site, length: int) -> None:
    data = random.Random(length).randbytes(length)
    job_id = two.jobs.submit("test-echo", {"name": "rows"}, attachments={"other": b"x", "rows": data}).id
    assert two.ended(job_id).state is JobState.succeeded
    assert two.result(job_id) == data
    assert all("result" in part for part in two.keys_of(job_id))


@pytest.mark.parametrize(
    ("how", "reason", "pointer"),
    [
        ("invalid", "invalid-input", "/sampler/dataset"),
        ("defect", "internal-error", None),
        ("newer", "newer-version", None),
    ],
)
def test_a_job_that_fails_says_why_and_no_more(two: Site, how: str, reason: str, pointer: str | None) -> None:
    job = two.ended(two.jobs.submit("test-fail", {"how": how}).id)
    assert job.state is JobState.failed
    assert job.error is not None
    assert (job.error.reason, job.error.pointer) == (reason, pointer)
    assert "secret" not in job.error.detail
    assert "Traceback" not in job.error.detail
    assert (job.id in job.error.detail) == (reason == "internal-error")
    assert two.keys_of(job.id) == set()
    with pytest.raises(JobHasNoResult, match="failed"):
        two.jobs.result(job.id)


def test_jobs_of_one_owner_keep_those_of_others_waiting_for_a_moment_only(two: Site) -> None:
    walk = {"steps": 1500, "seed": 3}  # half a minute
    many = [two.jobs.submit("test-walk", walk, owner="a").id for _ in range(4)]
    two.running(many[1])
    other = two.jobs.submit("test-walk", {**walk, "steps": 3}, owner="b").id
    assert two.ended(other).state is JobState.succeeded
    assert not any(two.jobs.get(one).state.ended for one in many)
    assert sum(two.jobs.get(one).step or 0 for one in many) > 10, "what was done is kept"
    for one in many:
        two.jobs.cancel(one)
        assert two.ended(one).state is JobState.cancelled


@pytest.mark.gate
def test_a_job_that_takes_too_much_memory_is_ended(two: Site) -> None:
    job = two.ended(two.jobs.submit("test-fail", {"how": "memory", "count": 80}).id)
    assert job.error is not None
    assert job.error.reason == "memory"
    assert "max_job_bytes is 600000000" in job.error.detail


@pytest.mark.nightly
def test_jobs_at_once_all_end_and_none_twice(two: Site, tmp_path: Path) -> None:
    def memory() -> int:
        return sum(psutil.Process(worker.pid).memory_info().rss for worker in two.workers)

    note = tmp_path / "completed"
    before = memory()
    ids = [two.walk(3, note=str(note), seed=i) for i in range(100)]
    states = Counter(two.ended(job_id).state for job_id in ids)
    assert states == {JobState.succeeded: 100}
    assert sorted(note.read_text().split()) == sorted(ids)
    assert memory() < before + 20_000_000
    assert two.counts() == (0, 0)
    assert two.client.xlen(QUEUE) == 0


@pytest.mark.nightly
def test_a_worker_that_is_told_to_stop_gives_its_job_back(two: Site) -> None:
    undisturbed = two.walk(100, pause=0)
    two.ended(undisturbed)
    two.idle()
    job_id = two.walk(100, pause=0.1)  # that it does not end before its worker is told
    two.running(job_id)
    until(lambda: (two.jobs.get(job_id).step or 0) > 10)
    stopped, _ = two.holder()
    stopped.terminate()
    assert stopped.wait(60) == 0
    two.workers.remove(stopped)
    assert two.ended(job_id).state is JobState.succeeded
    assert two.result(job_id) == two.result(undisturbed)
    two.start(*LIMITS)


@pytest.mark.nightly
def test_a_job_that_cannot_be_read_fails_and_costs_no_worker_its_life(site: Site, tmp_path: Path) -> None:
    site.clean()
    damage = ({"kind": b"\xff"}, {"payload_pieces": b"9"}, {"payload_pieces": b"many"}, {"ran": b"long"})
    damaged = {site.walk(1): one for one in damage}
    for job_id, change in damaged.items():
        site.client.hset(key(job_id, "record"), mapping=change)  # type: ignore[arg-type]
    log = tmp_path / "log"
    with log.open("wb") as output:
        worker = site.start(stderr=output)
    try:
        for job_id in damaged:
            until(lambda job_id=job_id: site.client.hget(key(job_id, "record"), "state") == b"failed")  # type: ignore[misc]
        assert site.ended(site.walk(1)).state is JobState.succeeded
        assert worker.poll() is None
        assert "Traceback" not in log.read_text()
        assert log.read_text().count("cannot be read") == len(damaged)
    finally:
        site.clean()


@pytest.mark.nightly
def test_a_job_that_runs_too_long_is_ended(two: Site) -> None:
    two.clean()
    two.start("--max-job-seconds", "4")
    job = two.ended(two.jobs.submit("test-fail", {"how": "time"}).id)
    assert job.error is not None
    assert job.error.reason == "time"
    assert "max_job_seconds is 4" in job.error.detail
