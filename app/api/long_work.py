"""Work that may take long: it begins in its request, and a job continues it when the request's time is over."""

import asyncio
import re
import time
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from fastapi import Request, Response
from starlette.requests import ClientDisconnect

from app.api import bodies
from app.api.access import owner_of
from app.api.admission import Turns
from app.api.context import Context
from app.api.interest import Shutdown
from app.api.negotiation import JSON, WARNING, favourite, posted_format, warning_headers
from app.api.problems import Refusal
from app.api.schemas import BINARY, headers
from app.core.model import Frozen
from app.core.progress import Progress, TimedProgress
from app.formats import Body, Format, option_bodies
from app.jobs.record import JobNotFound, JobRecord, JobState, link
from app.pictures import PNG, SVG
from app.request_context import link_to
from app.services.measurements import Measurement
from app.store.pieces import PIECE_BYTES

_QUOTED = r'"(?:[^"\\]|\\.)*+"'
# Text between the commas of a list. An unclosed quote extends to the end.
_PIECE = re.compile(rf'(?:[^,"]|{_QUOTED}|".*+)++', re.DOTALL)
# A name and its value; parameters may follow. Quantifiers are possessive, so that no header takes long to parse.
_NAME, _VALUE = r"([!#$%&'*+.^_`|~0-9A-Za-z-]++)", rf'({_QUOTED}|[^\s;"]*+)'
_PREFERENCE = re.compile(rf"\s*+{_NAME}\s*+(?:=\s*+{_VALUE}\s*+)?+(?:;.*)?", re.DOTALL)
# A longer header is ignored, as are malformed ones.
_MOST_CHARACTERS = 8192
_SECONDS = re.compile(r'("?)([0-9]+)\1')


class Preferences(NamedTuple):
    """Preferences of a client, from the header `Prefer`."""

    respond_async: bool = False
    """Whether the client prefers a job, at once or after `wait` seconds."""
    wait: int | None = None
    """Seconds that the client prefers to wait, capped at the allowed maximum; None if it does not say."""

    @property
    def at_once(self) -> bool:
        """Whether the client wants a job without waiting."""
        return self.wait == 0 or (self.respond_async and self.wait is None)

    def applied_headers(self, status: int) -> dict[str, str]:
        """Return the headers of an answer with this status that say which preferences were applied."""
        names = ["respond-async"] if self.respond_async and status == 202 else []
        names += [] if self.wait is None else [f"wait={self.wait}"]
        return {"Vary": "Prefer"} | ({"Preference-Applied": ", ".join(names)} if names else {})


def preferences(request: Request, max_wait_seconds: float) -> Preferences:
    """Return the preferences of a request, with the wait that is granted. Malformed ones are ignored (RFC 7240)."""
    found: dict[str, str] = {}
    header = ",".join(request.headers.getlist("prefer"))
    for piece in _PIECE.findall(header) if len(header) <= _MOST_CHARACTERS else ():
        preference = _PREFERENCE.fullmatch(piece)
        if preference is not None:
            # If a preference occurs twice, the first one counts.
            found.setdefault(preference[1].lower(), preference[2] or "")
    seconds = _SECONDS.fullmatch(found.get("wait", ""))
    # Parsed as a float, as Python refuses to read whole numbers of many digits.
    wait = None if seconds is None else int(min(max_wait_seconds, float(seconds[2])))
    return Preferences(found.get("respond-async") in ("", '""'), wait)


Outcome = TypeVar("Outcome")

_LOOK_SECONDS, _MOST_LOOK_SECONDS = 0.1, 1.0


class Clock(NamedTuple):
    """Time that a request may take."""

    preferences: Preferences
    """Preferences of the client: how long it waits, and whether it wants a job."""
    shutdown: Shutdown
    """Shutdown of the process: once it begins, the time is over."""
    place_by: float
    """Time of `time.monotonic` until which the request waits for a place to work in."""
    ends_at: float
    """Time at which the request's time is over. If it is later than `place_by`, the client waits longer than usual."""

    def is_over(self) -> bool:
        """Return whether the time is over."""
        return self.shutdown.begun or time.monotonic() >= self.ends_at


def start_clock(request: Request, context: Context) -> Clock:
    """Start a clock now. Call this when the whole request has arrived."""
    now, usual = time.monotonic(), context.settings.max_request_seconds
    wanted = preferences(request, context.settings.max_wait_seconds)
    seconds = usual if wanted.wait is None else wanted.wait
    return Clock(wanted, context.shutdown, now + min(usual, seconds), now + seconds)


async def run_or_submit(
    context: Context,
    clock: Clock,
    places: Turns,
    work: Callable[[TimedProgress | None], Outcome],
    client: Request,
    *,
    same: Hashable = None,
    before: Sequence[TimedProgress] = (),
) -> Outcome:
    """Run work in its request until its time is over; then submit a job that continues it.

    The work receives a progress, and submits a job when that progress ends it. If the work receives None, it submits a
    job at once; that also happens if it gets no place in the usual time, so that its request does not keep others out.
    Once submitted, the job continues even if all clients leave.

    Args:
        context: context of the request.
        clock: time that the request may take.
        places: turns of `Admission` for this kind of work.
        work: function to run on a thread.
        client: request whose client waits. When the client leaves, the work ends, unless another client wants the same.
        same: key of the work, equal for all clients that want the same; None if it is of use to this client alone.
        before: progress of preparations that are necessary even if a job does the rest.

    Raises:
        ClientDisconnect: the client has disconnected, and the work has ended with it.
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


async def follow_job(context: Context, clock: Clock, job_id: str, client: Request) -> JobRecord | None:
    """Return the record of a job once it has ended or its client's time is over; None if the client does not wait.

    Meanwhile the client holds none of the places of requests, but one of the places for watching jobs; if none of those
    is free, its time is over at once.

    Raises:
        ClientDisconnect: the client has disconnected.
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
                # Poll less and less often: many clients may wait, and a look costs a millisecond.
                look_at = now + min(_MOST_LOOK_SECONDS, (now - began) / 10)
            await asyncio.sleep(_LOOK_SECONDS)
    return job


async def await_result(
    context: Context, clock: Clock, submitted: JobRecord, client: Request, read: Callable[[JobRecord], Outcome]
) -> Outcome | JobRecord:
    """Return the result of `read` for a job that succeeds while its client waits; else the record of the job."""
    job = await follow_job(context, clock, submitted.id, client) or submitted
    if job.state is not JobState.succeeded:
        return job
    return await context.admission.ask(lambda: read(job))


def monitor(job_link: str) -> dict[str, str]:
    """Return the header that links to a job."""
    return {"Link": f'<{job_link}>; rel="monitor"'}


def describe_put(clock: Clock, at: str, job_link: str | None, new: bool) -> tuple[int, dict[str, str]]:
    """Return status and headers of the answer to a PUT; `job_link` links to the job that still makes the resource."""
    status = 202 if job_link is not None else 201 if new else 200
    headers = clock.preferences.applied_headers(status) | ({} if job_link is None else monitor(job_link))
    return status, headers | ({} if status == 200 else {"Location": link_to(at)})


def answer_with_job(clock: Clock, job: JobRecord) -> Response:
    """Return the answer to a request whose work a job has taken over."""
    at = link(job.id)
    headers = {"Location": at, **monitor(at), **clock.preferences.applied_headers(202)}
    return Response(job.model_dump_json(), 202, headers, JSON)


FORMS = [JSON, SVG, PNG]
"""Media types of answers that can be drawn as a figure."""


def answers(
    schema: dict[str, Any], description: str, media_types: list[str] = FORMS
) -> dict[int | str, dict[str, Any]]:
    """Return the responses, in the OpenAPI document, of a route whose answer has a schema."""
    schemas = {JSON: {"schema": schema}, SVG: {"schema": {"type": "string"}}, PNG: {"schema": BINARY}}
    content = {media_type: schemas[media_type] for media_type in media_types}
    return {
        200: {"description": description, "content": content, **headers("Vary", "Preference-Applied", WARNING)},
        202: {
            "model": JobRecord,
            "description": "It takes long: a job will have the same answer at its `result`. "
            "Or the client waited for a job that failed: then the record says so, and why.",
            **headers("Link", "Vary", "Preference-Applied", WARNING, location="Link of the job."),
        },
    }


async def answer(
    request: Request, context: Context, media_types: list[str], prepare: Callable[[Body], Measurement]
) -> Response:
    """Return the answer of the measurement that `prepare` makes from a request body, in the preferred media type."""
    form, media_type = posted_format(request, (JSON,)), favourite(request, media_types)
    clock, warnings, found = await _measure(form, request, context, media_type, prepare)
    if isinstance(found, JobRecord):
        response = await job_answer(request, context, clock, found, media_type)
    else:
        response = Response(found, headers=clock.preferences.applied_headers(200), media_type=media_type)
    response.headers.update(warning_headers(warnings))
    if len(media_types) > 1:
        response.headers["Vary"] = "Accept, Prefer"
    return response


Options = TypeVar("Options", bound=Frozen)


async def submit_posted(
    request: Request, context: Context, kind: type[Options], submit: Callable[[Options, str], JobRecord]
) -> tuple[Clock, JobRecord]:
    """Submit a job for the options in a request, for its owner; return the clock of the request, and the job."""
    posted_format(request, (JSON,))
    with context.admission.inside:
        body, owner = await bodies.read_options(request, context), owner_of(request)
        clock = start_clock(request, context)
        options = await context.admission.compute(lambda: bodies.parse(kind, body))
        return clock, await context.admission.submit(lambda: submit(options, owner))


async def job_answer(
    request: Request, context: Context, clock: Clock, job: JobRecord, media_type: str = JSON
) -> Response:
    """Return the answer of a job if it ends while the client waits as it prefers; else the record of the job.

    The record too if the answer has several pages, or is longer than one may be: the result of a job is sent piece by
    piece.
    """

    def read(job: JobRecord) -> bytes | JobRecord:
        first, *more = (body for body in context.jobs.result(job.id) if body.media_type == media_type)
        if more or first.pieces * PIECE_BYTES > context.limits.max_result_bytes:
            return job
        return b"".join(context.jobs.parts(job.id, first))

    found = await await_result(context, clock, job, request, read)
    if isinstance(found, JobRecord):
        return answer_with_job(clock, found)
    return Response(found, headers=clock.preferences.applied_headers(200), media_type=media_type)


async def _measure(
    form: Format, request: Request, context: Context, media_type: str, prepare: Callable[[Body], Measurement]
) -> tuple[Clock, tuple[str, ...], bytes | JobRecord]:
    """Return the clock of the request, warnings about its rows, and the answer or the record of a job.

    The work holds a place of a request; the rows are released together with that place.
    """
    with context.admission.inside:
        body = await bodies.read_body(form, request, context)
        clock = start_clock(request, context)
        measurement = await context.admission.compute(lambda: prepare(body))

        def work(progress: Progress | None) -> bytes | JobRecord:
            outcome = context.measurements.run_or_submit(measurement, progress, owner_of(request))
            if isinstance(outcome, JobRecord):
                return outcome
            return option_bodies.writers(outcome, measurement.warnings)[media_type]()

        answer = await run_or_submit(context, clock, context.admission.measurements, work, request)
        return clock, measurement.warnings, answer
