"""Answers of measurements: JSON or a picture, at once, or by a job where they take long."""

from collections.abc import Callable
from typing import Any

from fastapi import Request, Response

from app.api import bodies, long_work
from app.api.access import owner_of
from app.api.answer_headers import headers
from app.api.array_answers import WARNING, warning_headers
from app.api.context import Context
from app.api.negotiation import JSON, favourite, posted_format
from app.api.schemas import BINARY
from app.core.progress import Progress
from app.formats import Body, Format, option_bodies
from app.jobs.record import JobRecord
from app.pictures import PNG, SVG
from app.services.measurements import Measurement

FORMS = [JSON, SVG, PNG]
"""The media types of what is drawn."""


def answers(
    schema: dict[str, Any], description: str, media_types: list[str] = FORMS
) -> dict[int | str, dict[str, Any]]:
    """The responses of a route whose answer has a schema, for the document."""
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
    """The answer of a measurement that `prepare` makes of the body of a request, in one of the media types."""
    form, media_type = posted_format(request, (JSON,)), favourite(request, media_types)
    clock, warnings, found = await _measured(form, request, context, media_type, prepare)
    if isinstance(found, JobRecord):
        found = await _job_answer(request, context, clock, found, media_type)
    response = _response(clock, found, media_type)
    response.headers.update(warning_headers(warnings))
    if len(media_types) > 1:
        response.headers["Vary"] = "Accept, Prefer"
    return response


async def job_answer(request: Request, context: Context, clock: long_work.Clock, job: JobRecord) -> Response:
    """The answer of a job, in JSON, where it ends while the client waits, as it prefers; else the record of the job."""
    return _response(clock, await _job_answer(request, context, clock, job, JSON), JSON)


def _response(clock: long_work.Clock, found: bytes | JobRecord, media_type: str) -> Response:
    response = long_work.taken(found) if isinstance(found, JobRecord) else Response(found, media_type=media_type)
    response.headers.update(clock.preferences.applied(response.status_code))
    return response


async def _measured(
    form: Format, request: Request, context: Context, media_type: str, prepare: Callable[[Body], Measurement]
) -> tuple[long_work.Clock, tuple[str, ...], bytes | JobRecord]:
    """The clock of the request, warnings about its rows, and the answer or the record of a job.

    The work takes a place of a request; rows are let go when it leaves that.
    """
    with context.admission.inside:
        body = await bodies.read_in(form, request, context)
        clock = long_work.started(request, context)
        measurement = await context.admission.compute(lambda: prepare(body))

        def work(progress: Progress | None) -> bytes | JobRecord:
            outcome = context.measurements.run_or_submit(measurement, progress, owner_of(request))
            if isinstance(outcome, JobRecord):
                return outcome
            return option_bodies.writers(outcome, measurement.warnings)[media_type]()

        answer = await long_work.run_or_submit(context, clock, context.admission.measurements, work, request)
        return clock, measurement.warnings, answer


async def _job_answer(
    request: Request, context: Context, clock: long_work.Clock, submitted: JobRecord, media_type: str
) -> bytes | JobRecord:
    """The answer of a job that ends while the client waits; else the record of the job."""

    def read(job: JobRecord) -> bytes:
        kept = next(body for body in context.jobs.result(job.id) if body.media_type == media_type)
        return b"".join(context.jobs.parts(kept))

    return await long_work.awaited(context, clock, submitted, request, read)
