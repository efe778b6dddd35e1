"""Attempts at jobs: what they report, and what they leave for the next."""

from functools import partial
from types import SimpleNamespace

import pytest

from app.jobs import checkpoints
from app.jobs import job_context as attempts
from service_tests.checks import keys
from service_tests.jobs.site import Site


@pytest.fixture(autouse=True)
def _empty(site: Site) -> None:
    site.client.flushall()


def test_how_long_it_takes_is_not_said_before_it_can_be(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(attempts, "time", SimpleNamespace(monotonic=lambda: now))
    job_id = site.jobs.submit("test-walk", {}).id
    attempt = site.attempt(job_id)
    told = []
    for wait, step in ((0, 10), (0.3, 11), (0.8, 21), (2.2, 43)):
        now += wait
        attempt.report(step, 100)
        told.append(site.jobs.get(job_id).eta_seconds)
    assert told[:2] == [None, None]
    assert told[2:] == pytest.approx([1.1 / 11 * 79, 3.3 / 33 * 57], rel=1e-3)
    attempt.checkpoint(lambda: b"")
    again = site.resumed(attempt)
    for step in (20, 43):  # what was restored took no time
        again.report(step, 100)
    again.checkpoint(lambda: b"")
    now += 2
    again.report(44, 100)
    assert site.jobs.get(job_id).eta_seconds == pytest.approx(2 * 56, rel=1e-3)


def test_a_checkpoint_that_is_too_large_is_not_kept_and_the_work_goes_on(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "MAX_CHECKPOINT_BYTES", len(checkpoints.stored(b"")) + 10)
    monkeypatch.setattr(attempts, "_SHORTEST_PAUSE", 0.0)
    monkeypatch.setattr(attempts, "_PAUSE_FACTOR", 0.0)
    job_id = site.jobs.submit("test-walk", {}).id
    attempt = site.attempt(job_id)
    made = []

    def state(digits: int) -> bytes:
        made.append(digits)
        return b"0" * digits

    for digits in (10, 11, 12):
        attempt.checkpoint(partial(state, digits))
    assert made == [10, 11]
    assert site.resumed(attempt).restored() == b"0" * 10


def test_a_checkpoint_of_other_versions_is_not_gone_on_from(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "_SHORTEST_PAUSE", 0.0)
    job_id = site.jobs.submit("test-walk", {}).id
    attempt = site.attempt(job_id)
    attempt.checkpoint(lambda: b"state")
    assert site.resumed(attempt).restored() == b"state"
    monkeypatch.setattr(checkpoints, "_MAKERS", b"bochner 0.2.0\n")
    assert site.resumed(attempt).restored() is None


def test_a_full_store_is_not_left_full_of_checkpoints_that_were_not_kept(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "_SHORTEST_PAUSE", 0.0)
    monkeypatch.setattr(attempts, "_PAUSE_FACTOR", 0.0)
    job_id = site.jobs.submit("test-walk", {}).id
    attempt = site.attempt(job_id)
    attempt.checkpoint(lambda: b"kept")
    before = keys(site.client)
    site.client.config_set("maxmemory", int(site.client.info("memory")["used_memory"]) + 3_000_000)
    try:
        attempt.checkpoint(lambda: bytes(20_000_000))
    finally:
        site.client.config_set("maxmemory", 0)
    assert keys(site.client) == before
    attempt.checkpoint(lambda: b"kept again")
    assert site.resumed(attempt).restored() == b"kept again"
