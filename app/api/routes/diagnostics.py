"""Diagnostics of a map, and recommendations of one; at once, or by a job where they take long."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel

from app.api import bodies, long_work
from app.api.access import owner_of
from app.api.answer_headers import headers
from app.api.array_answers import WARNING, warning_headers
from app.api.array_documents import GIVEN, ROWS
from app.api.context import Context, ContextOf, MapName
from app.api.documents import asked_members, preferring_body
from app.api.negotiation import JSON, favourite, posted_format
from app.api.schemas import BINARY, list_of, schema_of, with_warnings
from app.core.diagnostics import DIAGNOSTICS
from app.core.progress import Progress
from app.core.recommendations import RecommendationOptions
from app.core.recommendations.answer import Ranking
from app.formats import Body, Format, json_measurements
from app.formats.json_measurements import ROW_MEMBERS, ROW_MEMBERS_TO_RECOMMEND_FOR
from app.jobs.record import JobRecord, JobState, link
from app.pictures import PNG, SVG
from app.services.measurements import Measurement

router = APIRouter(prefix="/v1", tags=["diagnostics"], default_response_class=Response)

_MEMBERS: dict[str, dict[str, Any]] = {
    "vectors": {"oneOf": ROWS["oneOf"], "description": "Rows; instead, `dataset`."},
    "input_dim": {"type": "integer", "minimum": 1, "description": "Length of a row; must be there for sparse rows."},
    "dataset": {"type": "string", "description": "Name of a dataset to take rows from."},
    "rows": {"type": "integer", "minimum": 1, "description": "Size of a sample of the dataset; without it, all rows."},
    "x": {**GIVEN, "description": "Rows; row i goes with row i of y."},
    "y": {**GIVEN, "description": "As many rows."},
    "seed": {"type": "integer", "minimum": 0, "description": "Of the sample."},
}


_FORMS = [JSON, SVG, PNG]


def _body_schema(model: type[BaseModel], members: tuple[str, ...]) -> dict[str, Any]:
    """The schema of a body that has the options of a model, and rows in these members."""
    schema = schema_of(model)
    options = schema["properties"]
    properties = {name: _MEMBERS[name] for name in members if name not in options} | options
    return {**schema, "title": f"{model.__name__}Body", "properties": properties, "additionalProperties": False}


def _answers(schema: dict[str, Any], description: str) -> dict[int | str, dict[str, Any]]:
    content = {JSON: {"schema": schema}, SVG: {"schema": {"type": "string"}}, PNG: {"schema": BINARY}}
    return {
        200: {"description": description, "content": content, **headers("Vary", "Preference-Applied", WARNING)},
        202: {
            "model": JobRecord,
            "description": "It takes long: a job will have the same answer at its `result`. "
            "Or the client waited for a job that failed: then the record says so, and why.",
            **headers("Link", "Vary", "Preference-Applied", WARNING, location="Link of the job."),
        },
    }


def _recommendation_body() -> dict[str, Any]:
    """The schema of a request for recommendations.

    Its kernels and its input are those of specs as they are put; a sampler may be named by its kind alone.
    """
    schema, asked = _body_schema(RecommendationOptions, ROW_MEMBERS_TO_RECOMMEND_FOR), asked_members()
    members = schema["properties"]
    every, none = members["samplers"]["anyOf"]
    samplers = every | {"items": {"anyOf": [every["items"], {"type": "string"}]}}
    described = {
        "kernel": {"anyOf": [asked["kernel"], list_of(asked["kernel"])]},
        "input": {key: asked["input"][key] for key in ("anyOf", "default")},
        "samplers": {"anyOf": [samplers, none], "default": None},
    }
    for name, one in described.items():
        members[name] = {key: value for key, value in members[name].items() if key == "description"} | one
    return {**schema, "title": "RecommendationBody"}


_EVERY = DIAGNOSTICS.values()


@router.post(
    "/maps/{name}/diagnostics/{kind}",
    operation_id="diagnose",
    openapi_extra=preferring_body(
        {"title": "DiagnosticBody", "anyOf": [_body_schema(one, ROW_MEMBERS[one.takes]) for one in _EVERY]}
    ),
    responses=_answers(
        {"title": "Finding", "anyOf": [with_warnings(schema_of(one.answer)) for one in _EVERY]},
        "The figures, and a picture of them.",
    ),
)
async def diagnose(
    name: MapName,
    kind: Annotated[Literal[tuple(DIAGNOSTICS)], Path(description="Name of a diagnostic.")],  # type: ignore[valid-type]
    request: Request,
    context: ContextOf,
) -> Response:
    """Measure a map, on rows or by itself; at once, or by a job where it takes long."""
    wanted = DIAGNOSTICS[kind]

    def prepare(body: Body) -> Measurement:
        subject = context.maps.open(name)
        spec = subject.feature_map.spec
        options, posted = json_measurements.diagnostic(body, wanted, spec.input_dim, bodies.parse)
        return context.measurements.diagnostic(subject, options, context.datasets.gated(posted, spec.gate))

    return await _answer(request, context, _FORMS if wanted.draws else [JSON], prepare)


@router.post(
    "/recommendations",
    operation_id="recommend",
    openapi_extra=preferring_body(_recommendation_body()),
    responses=_answers(with_warnings(schema_of(Ranking)), "The ranking; also as a picture, error against columns."),
)
async def recommend(request: Request, context: ContextOf) -> Response:
    """Try samplers and sizes on rows, and rank them; at once, or by a job where it takes long."""

    def prepare(body: Body) -> Measurement:
        options, posted = json_measurements.recommendation(body, bodies.parse)
        return context.recommendations.measurement(options, posted, bodies.parse)

    return await _answer(request, context, _FORMS, prepare)


async def _answer(
    request: Request, context: Context, media_types: list[str], prepare: Callable[[Body], Measurement]
) -> Response:
    form, media_type = posted_format(request, (JSON,)), favourite(request, media_types)
    clock, warnings, answer = await _measured(form, request, context, media_type, prepare)
    if isinstance(answer, JobRecord):
        answer = await _job_answer(request, context, clock, answer, media_type)
    if isinstance(answer, JobRecord):
        headers = {"Location": link(answer.id), "Link": f'<{link(answer.id)}>; rel="monitor"'}
        response = Response(answer.model_dump_json(), 202, headers, JSON)
    else:
        response = Response(answer, media_type=media_type)
    response.headers.update(clock.preferences.applied(response.status_code) | warning_headers(warnings))
    if len(media_types) > 1:
        response.headers["Vary"] = "Accept, Prefer"
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
            return json_measurements.writers(outcome, measurement.warnings)[media_type]()

        answer = await long_work.run_or_submit(context, clock, context.admission.measurements, work, request)
        return clock, measurement.warnings, answer


async def _job_answer(
    request: Request, context: Context, clock: long_work.Clock, submitted: JobRecord, media_type: str
) -> bytes | JobRecord:
    """The answer of a job that ends while the client waits; else the record of the job."""
    job = await long_work.followed(context, clock, submitted.id, request) or submitted
    if job.state is not JobState.succeeded:
        return job

    def read() -> bytes:
        kept = next(body for body in context.jobs.result(job.id) if body.media_type == media_type)
        return b"".join(context.jobs.parts(kept))

    return await context.admission.ask(read)
