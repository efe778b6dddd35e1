"""Work that may take long: it begins in its request, and a job goes on with it when the time for it is over."""

import asyncio
import time
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from typing import NamedTuple, TypeVar

from fastapi import Request, Response
from starlette.requests import ClientDisconnect

from app.api.context import Context
from app.api.negotiation import JSON
from app.api.preferences import Preferences, preferences
from app.api.problems import Refusal
from app.api.shutdown import Shutdown
from app.core.progress import TimedProgress
from app.jobs.record import JobNotFound, JobRecord, JobState, link

Outcome = TypeVar("Outcome")

_LOOK_SECONDS, _MOST_LOOK_SECONDS = 0.1, 1.0


class Clock(NamedTuple):
    """How long a request may take."""

    preferences: Preferences
    """The wishes of the client: how long it waits, and whether it wants a job."""
    shutdown: Shutdown
    """When this begins, all time is over."""
    place_by: float
    """The moment until which to wait for a place to work in, as `time.monotonic` tells it."""
    ends_at: float
    """The moment when the time is over. If it is the later one, the client waits longer than others."""

    def is_over(self) -> bool:
        """Whether the time is over."""
        return self.shutdown.begun or time.monotonic() >= self.ends_at


def started(request: Request, context: Context) -> Clock:
    """A clock that starts now. Call it when the whole request has arrived."""
    now, usual = time.monotonic(), context.settings.max_request_seconds
    wanted = preferences(request, context.settings.max_wait_seconds)
    seconds = usual if wanted.wait is None else wanted.wait
    return Clock(wanted, context.shutdown, now + min(usual, seconds), now + seconds)


async def run_or_submit(
    context: Context,
    clock: Clock,
    places: asyncio.Semaphore,
    work: Callable[[TimedProgress | None], Outcome],
    client: Request,
    *,
    same: Hashable = None,
    before: Sequence[TimedProgress] = (),
) -> Outcome:
    """Do work in its request until its time is over; then submit a job that goes on with it.

    The work is given a progress, and submits a job when that ends the work; or None, where it shall submit one at once.
    That is also what becomes of work that finds no place in the usual time: its request shall not keep others out.
    What is a job by then goes on, whoever leaves.

    Args:
        context: of the request.
        clock: how long it may take.
        places: those of `Admission` for such work.
        work: what is done, on a thread.
        client: for whom. When it leaves, the work ends, unless another wants the same.
        same: what the work is, equal for all who want the same; None if it is of use to this client alone.
        before: progress of what has to be done even where a job shall do the rest.

    Raises:
        ClientDisconnect: the client has gone, and the work has ended with it.
    """
    shutdown = clock.shutdown
    progress = TimedProgress(clock.ends_at, lambda: shutdown.begun)
    async with context.interest.of(client, same or object(), [progress, *before]) as turn:

        def begin(progress: TimedProgress | None) -> Outcome:
            turn.begun = True
            return work(None if shutdown.begun else progress)

        outcome = None
        if not clock.preferences.at_once:
            places = context.admission.patient if clock.ends_at > clock.place_by else places
            async with turn.alone(clock.ends_at) as alone:
                if alone:
                    outcome = await context.admission.run_by(clock.place_by, places, lambda: begin(progress))
        if outcome is None:
            outcome = await context.admission.submit(lambda: begin(None))
    return outcome


async def tried(
    context: Context, clock: Clock, work: Callable[[TimedProgress | None], Outcome], client: Request
) -> Outcome:
    """Do as much of some work, the building of a map, as there is time for, of which no job is ever made.

    The work is given a progress, which may end it; or None, where there is neither time nor place for it.

    Raises:
        ClientDisconnect: the client has gone, and the work has ended with it.
    """
    progress = TimedProgress(clock.ends_at, lambda: clock.shutdown.begun)
    async with context.interest.of(client, object(), [progress]) as turn:

        def begin() -> Outcome:
            turn.begun = True
            return work(progress)

        outcome = None
        if not clock.preferences.at_once:
            outcome = await context.admission.run_by(clock.place_by, context.admission.building, begin)
        return await context.admission.submit(lambda: work(None)) if outcome is None else outcome


async def followed(context: Context, clock: Clock, job_id: str, client: Request) -> JobRecord | None:
    """The record of a job, looked at until it has ended or its client's time is over; None where there is no such time.

    The client takes none of the places of requests meanwhile, but one of those who watch jobs; without one of these its
    time is over at once.

    Raises:
        ClientDisconnect: the client has gone.
    """
    job = None
    began = look_at = time.monotonic()
    with suppress(Refusal, JobNotFound), context.admission.listening:
        while clock.preferences.wait is not None and not clock.is_over():
            if await client.is_disconnected():
                raise ClientDisconnect
            if (now := time.monotonic()) >= look_at:
                job = await context.admission.ask(lambda: context.jobs.get(job_id))
                if job.state.ended:
                    break
                # Ever less often: many may wait, and a look costs a millisecond.
                look_at = now + min(_MOST_LOOK_SECONDS, (now - began) / 10)
            await asyncio.sleep(_LOOK_SECONDS)
    return job


async def awaited(
    context: Context, clock: Clock, submitted: JobRecord, client: Request, read: Callable[[JobRecord], Outcome]
) -> Outcome | JobRecord:
    """What `read` finds that a job has made, where it succeeds while its client waits; else the record of the job."""
    job = await followed(context, clock, submitted.id, client) or submitted
    if job.state is not JobState.succeeded:
        return job
    return await context.admission.ask(lambda: read(job))


def monitor(job_link: str) -> dict[str, str]:
    """The header that says where a job is looked at."""
    return {"Link": f'<{job_link}>; rel="monitor"'}


def taken(job: JobRecord) -> Response:
    """The answer of a request whose work a job has taken over."""
    at = link(job.id)
    return Response(job.model_dump_json(), 202, {"Location": at, **monitor(at)}, JSON)
