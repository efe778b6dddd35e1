"""Attempts at jobs: what they report, and what they leave for the next."""

from functools import partial

import pytest

from app.jobs import checkpoints
from app.jobs import job_context as attempts
from service_tests.checks import keys
from service_tests.jobs.site import Site


@pytest.fixture(autouse=True)
def _empty(site: Site) -> None:
    site.client.flushall()


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
