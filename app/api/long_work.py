"""Work that may take long: it begins in its request, and a job goes on with it when the time for it is over."""

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
    """How long a request may take."""

    preferences: Preferences
    """What the client has said of it."""
    ends_at: float
    """The moment when its time is over, as `time.monotonic` tells it."""
    is_patient: bool
    """Whether the client waits longer than others."""


def started(request: Request, context: Context) -> Clock:
    """A clock that starts now. Call it when the whole request has arrived."""
    usual = context.settings.max_request_seconds
    wanted = preferences(request, context.settings.max_wait_seconds)
    seconds = usual if wanted.wait is None else wanted.wait
    return Clock(wanted, time.monotonic() + seconds, seconds > usual)


async def run_or_submit(
    context: Context,
    clock: Clock,
    places: asyncio.Semaphore,
    work: Callable[[TimedProgress | None], Outcome],
    client: Request | None = None,
) -> Outcome:
    """Do work in its request until its time is over; then submit a job that goes on with it.

    The work is given a progress, and submits a job when that ends the work; or None, where it shall submit one at once.
    Its `places` are those of `Admission` for such work. `client` is whom it is for, unless it is of use to others too.

    Raises:
        ClientDisconnect: the client has gone, and the work has ended with it.
    """
    outcome = None
    if not clock.preferences.at_once:
        progress = TimedProgress(clock.ends_at)
        places = context.admission.patient if clock.is_patient else places
        async with _watched(client, progress):
            try:
                outcome = await context.admission.run_by(clock.ends_at, places, lambda: work(progress))
            except Abandoned:
                raise ClientDisconnect from None
    return outcome if outcome is not None else await context.admission.compute(lambda: work(None))


async def ended(context: Context, clock: Clock, job_id: str) -> JobRecord | None:
    """The record of a job that ends while its client waits; None if it does not, or if the client has set no time."""
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
async def _watched(client: Request | None, progress: TimedProgress) -> AsyncIterator[None]:
    """Mark the work as abandoned when the client closes its connection."""
    if client is None:
        yield
        return

    async def watch() -> None:
        while (await client.receive())["type"] != "http.disconnect":
            pass
        progress.abandoned = True

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()
