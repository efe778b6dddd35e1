"""Work that may take long: done in its request as long as it is quick, and gone on with by a job."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple, TypeVar

from fastapi import Request
from starlette.requests import ClientDisconnect

from app.api.context import Context
from app.api.preferences import Preferences, preferences
from app.core.progress import Abandoned, TimedProgress
from app.jobs.errors import JobNotFound
from app.jobs.record import JobRecord

Outcome = TypeVar("Outcome")

_LOOK_SECONDS = 0.1


class Clock(NamedTuple):
    """What the client prefers, and the moment up to which it waits, as `time.monotonic` tells it."""

    preferences: Preferences
    ends_at: float
    is_patient: bool
    """Whether the client waits longer than others do."""


def started(request: Request, context: Context) -> Clock:
    """A clock that runs from now on, the whole of the request having arrived."""
    wanted = preferences(request, context.max_wait_seconds)
    seconds = context.max_request_seconds if wanted.wait is None else wanted.wait
    return Clock(wanted, time.monotonic() + seconds, seconds > context.max_request_seconds)


async def run_or_submit(
    request: Request,
    context: Context,
    clock: Clock,
    places: asyncio.Semaphore,
    work: Callable[[TimedProgress | None], Outcome],
) -> Outcome:
    """Do work until the clock has run down.

    Args:
        request: who waits. Once it is gone, the work is ended where it can be.
        context: of the process.
        clock: when to end.
        places: how much of this work may be done at once, of `Admission`.
        work: does it under the progress it is given, and has a job go on with it where that ends it; with None it has
            a job do all of it.

    Raises:
        ClientDisconnect: the client has gone.
    """
    outcome = None
    if not clock.preferences.at_once:
        progress = TimedProgress(clock.ends_at)
        places = context.admission.patient if clock.is_patient else places
        async with _watched(request, progress):
            try:
                outcome = await context.admission.run_by(clock.ends_at, places, lambda: work(progress))
            except Abandoned:
                raise ClientDisconnect from None
    return outcome if outcome is not None else await context.admission.compute(lambda: work(None))


async def ended(context: Context, clock: Clock, job_id: str) -> JobRecord | None:
    """The record of a job that ends while a client still waits that said how long it would; None for all others."""
    while clock.preferences.wait is not None and time.monotonic() < clock.ends_at:
        try:
            job = await context.admission.ask(lambda: context.jobs.get(job_id))
        except JobNotFound:
            return None
        if job.state.ended:
            return job
        await asyncio.sleep(_LOOK_SECONDS)
    return None


@asynccontextmanager
async def _watched(request: Request, progress: TimedProgress) -> AsyncIterator[None]:
    """Tell the work of a request whose client goes away."""

    async def watch() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        progress.abandoned = True

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()
