"""Counts of jobs that the store keeps."""

import pytest

from app.jobs import scripts
from app.jobs.tally import tally
from service_tests.jobs.site import Site


@pytest.fixture(autouse=True)
def _empty(site: Site) -> None:
    site.client.flushall()


def test_jobs_are_counted_by_what_became_of_them(site: Site) -> None:
    ids = [site.jobs.submit(kind, {}).id for kind in ("walk", "walk", "walk", "run", "run")]
    assert tally(site.client)[:2] == (5, 0)
    attempts = [site.attempt(one) for one in ids[:3]]
    assert tally(site.client)[:2] == (2, 3)
    for attempt, state in zip(attempts, ("succeeded", "failed", "succeeded"), strict=True):
        for _ in range(2):  # as after a lost reply
            scripts.run(site.client, "end", attempt.job_id, attempt.message, state, 60, '{"reason": "x"}', "")
    site.jobs.cancel(ids[3])
    found = tally(site.client)
    assert (found.queued, found.running) == (1, 0)
    assert found.ended == {("walk", "succeeded"): 2, ("walk", "failed"): 1, ("run", "cancelled"): 1}
    assert found.ran["walk"].buckets[-1] == ("+Inf", 3)
    assert "run" not in found.ran, "it was cancelled before it began"
    assert found.waited["walk"].buckets[-1] == ("+Inf", 3)
