"""Calls for jobs: list, read, watch, wait, cancel, and fetch results."""

import math
import time
from contextlib import suppress
from typing import Any

from bochner_client.errors import BochnerError, JobFailed, ServiceAway
from bochner_client.events import EventReader
from bochner_client.exchange import exchange, opened, paged
from bochner_client.pages import JobPage
from bochner_client.progress import Hear, Progress, shown
from bochner_client.records import IndexRecord, JobEvent, JobRecord, MapRecord, State
from bochner_client.refusals import Unavailable
from bochner_client.requests import (
    JSON,
    Close,
    Flow,
    Give,
    Joined,
    Read,
    Reading,
    Request,
    Sleep,
    Stream,
    address,
    advance,
    as_bytes,
    as_document,
    as_json,
    as_nothing,
    last_segment,
)

# The service sends something at least every ten seconds.
_SILENCE_SECONDS = 30.0
# How long a wait may exceed its timeout.
_TOLERANCE_SECONDS = 0.5
_PAUSE_SECONDS = 0.25
# Longest pause between two requests. If a request fails closer than this to the deadline, the next attempt would be too
# late, so the wait has timed out.
_NEAR_SECONDS = 10.0
_EVENTS: dict[int, Reading[Any]] = {**as_bytes("text/event-stream"), **as_nothing()}
_MADE: dict[str, type[IndexRecord | MapRecord]] = {"indexes": IndexRecord, "maps": MapRecord}


def list_jobs(state: State | None = None, *, limit: int = 100, cursor: str | None = None) -> Request[JobPage]:
    """Return one page of the jobs, oldest first.

    Args:
        state: state of the jobs. With it, a page may be short although more follow: rely on `next`.
        limit: most jobs on the page.
        cursor: `next` of the previous page; None for the first page.
    """
    return Request(
        method="GET",
        path="/v1/jobs",
        params={"state": state, "limit": limit, "cursor": cursor},
        reads=as_json(JobPage.read),
    )


def iter_jobs(state: State | None = None) -> Stream[JobRecord]:
    """Iterate over all jobs, or those in a state, oldest first."""
    return paged(lambda cursor: list_jobs(state, cursor=cursor), lambda page: page.jobs)


def get_job(job: str) -> Request[JobRecord]:
    """Return the record of a job, given its id or link."""
    return Request(method="GET", path=_path(job), reads=as_json(JobRecord.read))


def cancel_job(job: str) -> Flow[JobRecord]:
    """Cancel a job. A queued job is `cancelled` at once, a running job within two seconds.

    Raises:
        JobHasEnded: the job has ended and cannot be cancelled.
    """
    request = Request(
        method="DELETE", path=_path(job), reads=as_json(JobRecord.read, 202), done_by=frozenset({"job-has-ended"})
    )
    record: JobRecord | None = yield from exchange(request)
    if record is None:  # the answer to the first request was lost
        record = yield from exchange(get_job(job))
    return record


def get_job_result(job: str, *, cursor: str | None = None) -> Flow[Any]:
    """Return the result of a job: what its request would have returned, or the record of the map or index that it made.

    Args:
        job: id or link of the job.
        cursor: `next` of the previous page, if the result has pages; None for the first page.

    Raises:
        JobHasNoResult: the job has not succeeded.
    """
    reads = {**as_json(as_document), 303: Reading("*", lambda headers: Joined(lambda _: _made(headers["location"])))}
    asked = Request(
        method="GET", path=_path(job, "result"), params={"cursor": cursor}, headers={"Accept": JSON}, reads=reads
    )
    found = yield from exchange(asked)
    return (yield from exchange(found)) if isinstance(found, Request) else found


def _made(link: str) -> Request[Any]:
    """Return the request for the record of the map or index that a job has made, given its link."""
    kind, name = link.split("/")[-2:]
    return Request(method="GET", path=address("v1", kind, name), reads=as_json(_MADE[kind].read))


def get_job_picture(job: str, media_type: str = "image/svg+xml") -> Request[bytes]:
    """Return the plot of a job's result as a file of the media type, if the result has one."""
    return Request(method="GET", path=_path(job, "result"), headers={"Accept": media_type}, reads=as_bytes(media_type))


def watch_job(job: str, *, after: str | None = None) -> Stream[JobEvent]:
    """Iterate over the events of a job until it ends, starting after the event with id `after`, if given.

    If the connection is interrupted, or the service restarts, the iteration continues after the last event received.
    """
    return Stream(_events(job, after, math.inf))


def wait_for_job(job: str, *, timeout: float | None = None, progress: Progress = False) -> Flow[JobRecord]:
    """Wait until a job has succeeded, and return its record.

    Args:
        job: id or link of the job.
        timeout: seconds to wait; None for no limit.
        progress: True for a progress bar, or a function that is called with each event.

    Raises:
        JobFailed: the job failed, or was cancelled.
        TimeoutError: the job has not ended in time. It goes on.
    """
    deadline = math.inf if timeout is None else time.monotonic() + timeout
    try:
        with shown(progress) as hear:
            yield from _heard(_events(job, None, deadline), hear)
    except _TimeIsOver as error:
        raise TimeoutError(f"job {last_segment(job)} has not ended in {timeout} s; it goes on") from error
    record = yield from exchange(get_job(job))
    if record.state != "succeeded":
        raise JobFailed(record)
    return record


def wait_for_result(job: str, *, timeout: float | None = None, progress: Progress = False) -> Flow[Any]:
    """Wait until a job has succeeded, and return its result. Arguments and exceptions are those of `wait_for_job`."""
    yield from wait_for_job(job, timeout=timeout, progress=progress)
    return (yield from get_job_result(job))


class _TimeIsOver(Exception):
    """A job has not ended before the deadline."""


def _events(job: str, after: str | None, deadline: float) -> Flow[None]:
    """Yield the events of a job; raise _TimeIsOver at the deadline, a time of `time.monotonic`."""
    while True:
        silence = min(_SILENCE_SECONDS, deadline - time.monotonic())
        stream = yield from _listened(job, after, silence, deadline)
        if stream is None:
            return
        reader = EventReader()
        with suppress(ServiceAway):
            while piece := (yield Read(stream)):
                for event in reader.feed(piece):
                    after = event.event_id
                    yield Give(event)
                    if event.last:
                        return
                if time.monotonic() + silence > deadline + _TOLERANCE_SECONDS:
                    break  # otherwise a silent service could delay the end of the wait
        yield Close(stream)
        yield Sleep(_PAUSE_SECONDS)


def _listened(job: str, after: str | None, silence: float, deadline: float) -> Flow[Any]:
    """Return a stream of the events after `after`, which breaks off after `silence` seconds without data.

    Returns None if there are no more events. Raises _TimeIsOver at the deadline.
    """
    if silence <= 0:
        raise _TimeIsOver
    request = Request(
        method="GET",
        path=_path(job, "events"),
        headers={} if after is None else {"Last-Event-ID": after},
        reads=_EVENTS,
        read_timeout=silence,
    )
    try:
        return (yield from opened(request, deadline))
    except (ServiceAway, Unavailable) as error:
        if time.monotonic() + _NEAR_SECONDS > deadline:
            raise _TimeIsOver from error
        raise


def _heard(flow: Flow[None], hear: Hear) -> Flow[None]:
    """Carry out a flow, but pass its values to `hear` instead of yielding them."""
    outcome: Any = None
    while True:
        try:
            step = advance(flow, outcome)
        except StopIteration:
            return
        if isinstance(step, Give):
            hear(step.value)
            outcome = None
            continue
        try:
            outcome = yield step
        except BochnerError as error:
            outcome = error


def _path(job: str, *more: str) -> str:
    return address("v1", "jobs", last_segment(job), *more)
