from typing import Any

import pytest

from bochner_client import DatasetRows, JobFailed, JobHasEnded, JobHasNoResult, MapRecord
from service_tests.client.conftest import Asked

PATIENT = {"kernel": {"kind": "gaussian", "length_scale": 1.5}, "sampler": {"kind": "monte_carlo"}, "input_dim": 3}
"""A spec that takes a second in `jobs_service`; with s = 1 it fails there."""


def test_a_map_that_takes_a_job_is_waited_for(jobs_ask: Asked, name: str) -> None:
    seen: list[Any] = []
    record = jobs_ask.put_map(name, {**PATIENT, "s": 4}, progress=seen.append)
    assert (record.status, record.job) == ("ready", None)
    assert [event.state for event in seen[-1:]] == ["succeeded"]
    assert [event.last for event in seen] == [False] * (len(seen) - 1) + [True]
    assert [event.progress for event in seen] == sorted(event.progress for event in seen)


@pytest.mark.nightly
def test_a_map_that_is_not_waited_for_has_a_job_whose_result_it_is(jobs_ask: Asked, name: str) -> None:
    record = jobs_ask.put_map(name, {**PATIENT, "s": 4}, wait=False)
    assert record.status == "building"
    job = jobs_ask.job(record.job)
    with pytest.raises(JobHasNoResult):
        jobs_ask.get_job_result(job.id)
    made = job.wait()
    assert isinstance(made, MapRecord)
    assert made == jobs_ask.get_map(name)
    assert job.record().state == "succeeded"
    assert jobs_ask.get_job_result(job.id) == made
    assert job.id in {one.id for one in jobs_ask.iter_jobs("succeeded")}


def test_a_job_that_fails_says_why(jobs_ask: Asked, name: str) -> None:
    with pytest.raises(JobFailed, match="unlucky") as failed:
        jobs_ask.put_map(name, {**PATIENT, "s": 1})
    assert (failed.value.record.state, failed.value.record.subject) == ("failed", {"map": name})


def test_a_job_is_cancelled_and_only_once(jobs_ask: Asked, name: str) -> None:
    job = jobs_ask.job(jobs_ask.put_map(name, {**PATIENT, "s": 4}, wait=False).job)
    job.cancel()
    with pytest.raises(JobFailed, match="cancelled"):
        job.wait()
    with pytest.raises(JobHasEnded):
        jobs_ask.cancel_job(job.id)


def test_events_go_on_after_the_one_that_is_named(ask: Asked, standing: dict[str, str], name: str) -> None:
    ask.put_dataset(name, [[1.0, 2, 3], [2, 3, 5], [0, 1, 1]])
    job = ask.start_diagnosis(standing["phase"], "gram", DatasetRows(name))
    events = job.events()
    assert events[-1].last
    assert job.events(after=events[-2].event_id) == events[-1:]
    assert job.events(after=events[-1].event_id) == []
    assert ask.watch_job(job.id) == events
