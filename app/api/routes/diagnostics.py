"""What a map is worth, and which one to take."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from app.api import bodies, long_work
from app.api.answers import HeldResponse
from app.api.context import Context, ContextOf, MapName
from app.api.diagnostic_documents import (
    DIAGNOSTIC_ANSWER,
    DIAGNOSTIC_BODY,
    RECOMMENDATION_ANSWER,
    RECOMMENDATION_BODY,
)
from app.api.negotiation import favourite, posted_format
from app.core.diagnostics import DIAGNOSTICS
from app.core.progress import Progress
from app.formats import findings, json_measuring
from app.formats.json import Json
from app.jobs.record import JobRecord, JobState, link
from app.pictures import MEDIA_TYPE as SVG
from app.services.measurements import Measurement
from app.services.recommendations import gate

JSON = Json.media_type

router = APIRouter(prefix="/v1", tags=["diagnostics"], default_response_class=Response)


def _named(kind: str) -> str:
    if kind not in DIAGNOSTICS:
        *most, last = map(repr, DIAGNOSTICS)
        raise PydanticCustomError("enum", f"Input should be {', '.join(most)} or {last}")
    return kind


DiagnosticKind = Annotated[
    str, Path(description="Name of a diagnostic.", json_schema_extra={"enum": [*DIAGNOSTICS]}), AfterValidator(_named)
]


@router.post(
    "/maps/{name}/diagnostics/{kind}",
    operation_id="diagnose",
    openapi_extra=DIAGNOSTIC_BODY,
    responses=DIAGNOSTIC_ANSWER,
)
async def diagnose(name: MapName, kind: DiagnosticKind, request: Request, context: ContextOf) -> Response:
    """Measure a map, on rows or by itself; at once, or by a job where it takes long."""
    wanted = DIAGNOSTICS[kind]

    def prepare(body: bytes) -> Measurement:
        subject = context.maps.open(name)
        spec = subject.feature_map.spec
        options, posted = json_measuring.diagnostic(body, wanted, spec.input_dim, bodies.parse)
        return context.measurements.diagnostic(subject, options, context.datasets.gated(posted, spec.gate))

    return await _answer(request, context, [JSON, SVG] if wanted.draws else [JSON], prepare)


@router.post(
    "/recommendations", operation_id="recommend", openapi_extra=RECOMMENDATION_BODY, responses=RECOMMENDATION_ANSWER
)
async def recommend(request: Request, context: ContextOf) -> Response:
    """Try samplers and sizes on rows, and rank them; at once, or by a job where it takes long."""

    def prepare(body: bytes) -> Measurement:
        options, posted = json_measuring.recommendation(body, bodies.parse)
        given = context.datasets.gated(posted, gate(options.seed))
        scaled = context.recommendations.scaled_kernel(options, given.rows["vectors"])
        return context.recommendations.measurement(options, json_measuring.kernel(scaled, bodies.parse), given)

    return await _answer(request, context, [JSON, SVG], prepare)


async def _answer(
    request: Request, context: Context, media_types: list[str], prepare: Callable[[bytes], Measurement]
) -> Response:
    posted_format(request, (JSON,))
    media_type = favourite(request, media_types)
    async with AsyncExitStack() as inside:
        await inside.enter_async_context(context.admission.enter())
        body = await bodies.read(request, context.limits.check_body, context.admission.client_timeout)
        clock = long_work.started(request, context)
        measurement = await context.admission.compute(lambda: prepare(body))

        def work(progress: Progress | None) -> bytes | JobRecord:
            outcome = context.measurements.run_or_submit(measurement, progress)
            return outcome if isinstance(outcome, JobRecord) else findings.writers(outcome)[media_type]()

        answer = await long_work.run_or_submit(context, clock, context.admission.measuring, work, request)
        if isinstance(answer, JobRecord):
            answer = await _job_answer(context, clock, answer, media_type)
        response = _taken(answer) if isinstance(answer, JobRecord) else Response(answer, media_type=media_type)
        response.headers.update(clock.preferences.applied(response.status_code))
        if len(media_types) > 1:
            response.headers["Vary"] = "Accept, Prefer"
        return HeldResponse(response, inside.pop_all(), context.admission.client_timeout)


async def _job_answer(
    context: Context, clock: long_work.Clock, submitted: JobRecord, media_type: str
) -> bytes | JobRecord:
    """The answer of a job that ends while the client waits; else the record of the job."""
    job = await long_work.ended(context, clock, submitted.id)
    if job is None or job.state is not JobState.succeeded:
        return job or submitted

    def read() -> bytes:
        kept = next(body for body in context.jobs.result(job.id) if body.media_type == media_type)
        return b"".join(context.jobs.parts(kept))

    return await context.admission.ask(read)


def _taken(job: JobRecord) -> Response:
    headers = {"Location": link(job.id), "Link": f'<{link(job.id)}>; rel="monitor"'}
    return Response(job.model_dump_json(), 202, headers, JSON)
