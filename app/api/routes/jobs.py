"""Routes of jobs: list, inspect, watch, cancel, and fetch results."""

import asyncio
import re
import time
from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from fastapi.responses import RedirectResponse, StreamingResponse
from pydantic import AfterValidator
from starlette.requests import ClientDisconnect

from app.api.access import owner_of
from app.api.admission import Held
from app.api.context import Admitted, Context, ContextOf, Limit, Listening
from app.api.negotiation import JSON, favourite, streamed
from app.api.problems import Refusal
from app.api.schemas import headers
from app.core.errors import InvalidOption
from app.jobs.jobs import Event, JobPage
from app.jobs.record import JobNotFound, JobRecord, JobState, ResultElsewhere
from app.store.errors import StoreUnavailable
from app.store.keys import Role
from app.store.pieces import PIECE_BYTES

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])

_ID = r"^[0-9a-f]{24}$"


def _known_form(job_id: Annotated[str, Path(alias="id", description="Id of a job.")]) -> str:
    """Return the id in the address; raise JobNotFound if no job can have it."""
    if not re.fullmatch(_ID, job_id):
        raise JobNotFound(job_id[:80])
    return job_id


JobId = Annotated[str, Depends(_known_form)]


def _position(event_id: str) -> str:
    """Return an event id as the store reads it: two numbers of 64 bits. The empty id comes before all other ids."""
    milliseconds, _, number = (event_id or "0").partition("-")
    first, second = int(milliseconds), int(number or 0)
    # The store answers the largest id with an error, as no id can come after it.
    if first >= 1 << 64 or second >= 1 << 64 or (first, second) == ((1 << 64) - 1,) * 2:
        raise ValueError("the parts of an event id are below 2^64")
    return f"{first}-{second}"


LastEventId = Annotated[
    str,
    Header(description="Go on after this event.", pattern=r"^([0-9]{1,20}(-[0-9]{1,20})?)?$"),
    AfterValidator(_position),
]

_RESULT: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "What the request that became a job would have been answered.",
        "content": {JSON: {"schema": {}}, "*/*": {"schema": {"type": "string", "format": "binary"}}},
        **headers("Vary"),
    },
    303: {
        "description": "The job has made a map: `Location` says where it is.",
        **headers(location="Link of the map."),
    },
}
_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Events `progress` and, at last, `end`; `data` has id, state, progress, step, of, objective and "
        "eta_seconds of the job's record. Reconnect with `Last-Event-ID`.",
        # Without a schema: tools differ on whether it would describe one event or the whole stream.
        "content": {"text/event-stream": {}},
        **headers("X-Accel-Buffering"),
    },
    204: {"description": "The job has ended, and no event of it comes after `Last-Event-ID`."},
}

_LOOK_SECONDS = 0.25
# Proxies close connections that are silent for long.
_HEARTBEAT_SECONDS = 10.0


@router.get("", operation_id="list_jobs")
async def list_jobs(
    context: ContextOf,
    state: Annotated[JobState | None, Query(description="Only jobs in this state.")] = None,
    limit: Limit = 100,
    cursor: Annotated[str | None, Query(description="`next` of the page before.", pattern=_ID)] = None,
) -> JobPage:
    """List jobs, oldest first. With `state`, a page may be short or empty without being the last: follow `next`."""
    return await context.admission.ask(lambda: context.jobs.page(state, cursor, limit))


@router.get("/{id}", operation_id="get_job")
async def get_job(job_id: JobId, context: ContextOf) -> JobRecord:
    """Return the record of a job."""
    return await context.admission.ask(lambda: context.jobs.get(job_id))


@router.delete("/{id}", operation_id="cancel_job", status_code=202)
async def cancel_job(job_id: JobId, request: Request, context: ContextOf) -> JobRecord:
    """Cancel a job. A waiting job is `cancelled` at once, a running job within two seconds; 409 if it has ended.

    A key with role `read` can cancel only jobs that it has submitted.
    """
    may_all = request.scope["state"]["role"].includes(Role.write)

    def work() -> JobRecord:
        if not may_all and context.jobs.fields(job_id).get("owner") != owner_of(request):
            raise Refusal("forbidden", f"job {job_id} was submitted with another key; to cancel it takes role write")
        return context.jobs.cancel(job_id)

    return await context.admission.ask(work)


@router.get("/{id}/result", operation_id="get_job_result", response_class=Response, responses=_RESULT)
async def get_job_result(
    job_id: JobId,
    request: Request,
    context: Admitted,
    cursor: Annotated[str, Query(description="`next` of the page before.", pattern=r"^[0-9]{1,6}$")] = "0",
) -> Response:
    """Fetch the answer of a job, or a page of it, in the media type that `Accept` prefers.

    If the job made a map, 303 leads there.
    """
    try:
        kept = await context.admission.ask(lambda: context.jobs.result(job_id))
    except ResultElsewhere as elsewhere:
        return RedirectResponse(str(elsewhere), 303)
    chosen = favourite(request, [*dict.fromkeys(body.media_type for body in kept)])
    pages = [one for one in kept if one.media_type == chosen]
    if int(cursor) >= len(pages):
        raise InvalidOption(f"got {cursor}; the result has only {len(pages)} pages", "cursor")
    parts = context.jobs.parts(job_id, pages[int(cursor)])
    return streamed(parts, Held(2 * PIECE_BYTES), {"Vary": "Accept"}, chosen, context.admission)


@router.get("/{id}/events", operation_id="watch_job", response_class=Response, responses=_EVENTS)
async def watch_job(job_id: JobId, request: Request, context: Listening, last_event_id: LastEventId = "0") -> Response:
    """Watch a job: server-sent events, each with state and progress; the last event says how the job ended.

    The answer is 204 if the job has ended and no event comes after the one in `Last-Event-ID`, so that clients which
    reconnect automatically stop.
    """
    ended = await context.admission.ask(lambda: context.jobs.get(job_id).state.ended)
    first = await context.admission.ask(lambda: context.jobs.events(job_id, last_event_id))
    if ended and not first:
        return Response(status_code=204)
    return StreamingResponse(
        _events(request, context, job_id, last_event_id, first),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _events(
    request: Request, context: Context, job_id: str, after: str, events: list[Event]
) -> AsyncIterator[bytes]:
    """Yield the events of a job until the last one, or until the client, the store or the service goes away."""
    spoke = time.monotonic()
    while True:
        for event in events:
            after, spoke = event.id, time.monotonic()
            name = "end" if event.last else "progress"
            data = orjson.dumps({"id": job_id, **event.changed})
            yield b"id: %s\nevent: %s\ndata: %s\n\n" % (event.id.encode(), name.encode(), data)
            if event.last:
                return
        silent = time.monotonic() > spoke + _HEARTBEAT_SECONDS
        if silent:
            spoke = time.monotonic()
            yield b": still there\n\n"
        await asyncio.sleep(_LOOK_SECONDS)
        if context.shutdown.begun or await request.is_disconnected():
            return
        try:
            if not await context.access.holds(request.scope["state"]["key"]):
                return
            # Asked before the events are read: the last event of a job that has ended is then among them, unless the
            # client has made up an id that comes after it.
            ended = silent and await context.admission.ask(lambda: context.jobs.get(job_id).state.ended)
            events = await context.admission.ask(partial(context.jobs.events, job_id, after))
        except (ClientDisconnect, JobNotFound, StoreUnavailable):
            return
        except Refusal:  # too many calls to the store; try again in a moment
            ended, events = False, []
        if ended and not events:
            return
