from typing import Any

import pytest

from bochner_client import Client, JobFailed, JobHasEnded, JobHasNoResult
from service_tests.client.conftest import Asked

PATIENT = {"kernel": {"kind": "gaussian", "length_scale": 1.5}, "sampler": {"kind": "monte_carlo"}, "input_dim": 3}
"""A spec that takes a second in `jobs_service`; with s = 1 it fails there."""


def test_a_map_that_takes_a_job_is_waited_for(jobs_client: Client, name: str) -> None:
    seen: list[Any] = []
    record = jobs_client.put_map(name, {**PATIENT, "s": 4}, progress=seen.append)
    assert (record.status, record.job) == ("ready", None)
    assert [event.state for event in seen[-1:]] == ["succeeded"]
    assert [event.last for event in seen] == [False] * (len(seen) - 1) + [True]
    assert [event.progress for event in seen] == sorted(event.progress for event in seen)


def test_a_job_that_fails_says_why(jobs_client: Client, name: str) -> None:
    with pytest.raises(JobFailed, match="unlucky") as failed:
        jobs_client.put_map(name, {**PATIENT, "s": 1})
    assert (failed.value.record.state, failed.value.record.subject) == ("failed", {"map": name})


def test_a_job_is_cancelled_and_only_once(jobs_client: Client, name: str) -> None:
    job = jobs_client.job(str(jobs_client.put_map(name, {**PATIENT, "s": 4}, wait=False).job))
    with pytest.raises(JobHasNoResult):
        jobs_client.get_job_result(job.id)
    with pytest.raises(TimeoutError, match="goes on"):
        job.wait(timeout=0.1)
    job.cancel()
    with pytest.raises(JobFailed, match="cancelled"):
        job.wait()
    with pytest.raises(JobHasEnded):
        jobs_client.cancel_job(job.id)


def test_events_go_on_after_the_one_that_is_named(ask: Asked, standing: dict[str, str]) -> None:
    job = ask.start_diagnosis(standing["phase"], "gram", [[1.0, 2, 3], [2, 3, 5], [0, 1, 1]])
    events = job.events()
    assert events[-1].last
    assert job.events(after=events[-2].event_id) == events[-1:]
    assert ask.watch_job(job.id) == events
    assert job.id in {one.id for one in ask.iter_jobs("succeeded")}
