"""Routes of diagnostics, recommendations, advice on indexes and near duplicates; jobs continue long work."""

from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from app.api import bodies
from app.api.context import ContextOf, IndexName, MapName
from app.api.documents import asked_members
from app.api.long_work import FORMS, answer, answers, job_answer, submit_posted
from app.api.negotiation import JSON, posted_format
from app.api.schemas import GIVEN, ROWS, list_of, preferring_body, schema_of, with_warnings
from app.api.schemas import body as body_of
from app.core.diagnostics import DIAGNOSTICS
from app.core.indexes.advice import AdviceOptions
from app.core.indexes.answer import Advice
from app.core.indexes.options import BandsOptions, DuplicatesOptions
from app.core.recommendations.candidates import RecommendationOptions
from app.core.recommendations.trials import Ranking
from app.formats import Body, option_bodies
from app.formats.option_bodies import ROW_MEMBERS, ROW_MEMBERS_TO_RECOMMEND_FOR
from app.services import indexes
from app.services.index_duplicates import DuplicatesAnswer
from app.services.index_recall import RecallAnswer, RecallOptions
from app.services.indexes import PlannedBands
from app.services.measurements import Measurement

router = APIRouter(prefix="/v1", default_response_class=Response)

_MEMBERS: dict[str, dict[str, Any]] = {
    "vectors": {"oneOf": ROWS["oneOf"], "description": "Rows; instead, `dataset`."},
    "input_dim": {"type": "integer", "minimum": 1, "description": "Length of a row; must be there for sparse rows."},
    "dataset": {"type": "string", "description": "Name of a dataset to take rows from."},
    "rows": {"type": "integer", "minimum": 1, "description": "Size of a sample of the dataset; without it, all rows."},
    "x": {**GIVEN, "description": "Rows; row i goes with row i of y."},
    "y": {**GIVEN, "description": "As many rows."},
    "seed": {"type": "integer", "minimum": 0, "description": "Of the sample."},
}


def _body_schema(model: type[BaseModel], members: tuple[str, ...]) -> dict[str, Any]:
    """Return the schema of a body that has the options of a model, and rows in these members."""
    schema = schema_of(model)
    options = schema["properties"]
    properties = {name: _MEMBERS[name] for name in members if name not in options} | options
    return {**schema, "title": f"{model.__name__}Body", "properties": properties, "additionalProperties": False}


def _recommendation_body() -> dict[str, Any]:
    """Return the schema of a request for recommendations.

    Its kernels and its preprocessing (`input`) are as in specs that are sent, which may have deferred fields; a sampler
    may be given by its kind alone.
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
    tags=["diagnostics"],
    openapi_extra=preferring_body(
        {"title": "DiagnosticBody", "anyOf": [_body_schema(one, ROW_MEMBERS[one.takes]) for one in _EVERY]}
    ),
    responses=answers(
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
    """Measure a map with a diagnostic, on rows or without rows. If it takes long, a job continues it."""
    wanted = DIAGNOSTICS[kind]

    def prepare(body: Body) -> Measurement:
        subject = context.maps.open(name)
        spec = subject.feature_map.spec
        options, posted = option_bodies.diagnostic(body, wanted, spec.input_dim, bodies.parse)
        return context.measurements.diagnostic(subject, options, context.datasets.read_rows(posted, spec.gate))

    return await answer(request, context, FORMS if wanted.draws else [JSON], prepare)


@router.post(
    "/recommendations",
    operation_id="recommend",
    tags=["diagnostics"],
    openapi_extra=preferring_body(_recommendation_body()),
    responses=answers(with_warnings(schema_of(Ranking)), "The ranking; also as a picture, error against columns."),
)
async def recommend(request: Request, context: ContextOf) -> Response:
    """Try samplers and sizes on rows, and rank them. If it takes long, a job continues it."""

    def prepare(body: Body) -> Measurement:
        options, posted = option_bodies.recommendation(body, bodies.parse)
        return context.recommendations.measurement(options, posted, bodies.parse)

    return await answer(request, context, FORMS, prepare)


@router.post(
    "/indexes/advice",
    operation_id="advise",
    tags=["indexes"],
    openapi_extra=preferring_body(schema_of(AdviceOptions)),
    responses=answers(
        with_warnings(schema_of(Advice)), "The advice; also as a picture, recall against the share of rows looked at."
    ),
)
async def advise(request: Request, context: ContextOf) -> Response:
    """Recommend bands of a map's codes for an index of rows like those of a dataset, or say that a scan suffices.

    The advice is predicted from the similarities of the rows, and checked by hashing some of them.
    """

    def prepare(body: Body) -> Measurement:
        return context.adviser.measurement(option_bodies.advice(body, bodies.parse))

    return await answer(request, context, FORMS, prepare)


@router.post(
    "/bands",
    operation_id="plan_bands",
    tags=["indexes"],
    response_class=JSONResponse,
    openapi_extra=body_of({JSON: {"schema": schema_of(BandsOptions)}}),
)
async def plan_bands(request: Request, context: ContextOf) -> PlannedBands:
    """Return how to cut hashes of any MinHash into bands, so that similar pairs share one; nothing is stored."""
    posted_format(request, (JSON,))
    with context.admission.inside:
        body = await bodies.read_options(request, context)

        def plan() -> PlannedBands:
            return indexes.plan_bands(bodies.parse(BandsOptions, body))

        return await context.admission.compute(plan, brief=True)


@router.post(
    "/indexes/{name}/duplicates",
    operation_id="find_duplicates",
    tags=["indexes"],
    openapi_extra=preferring_body(schema_of(DuplicatesOptions)),
    responses=answers(schema_of(DuplicatesAnswer), "The clusters, where the client has waited for the job.", [JSON]),
)
async def find_duplicates(name: IndexName, request: Request, context: ContextOf) -> Response:
    """Start a job that finds the pairs, or clusters, of vectors above a similarity, among all pairs of an index."""
    submit = partial(context.duplicates.submit, name)
    return await job_answer(request, context, *await submit_posted(request, context, DuplicatesOptions, submit))


@router.post(
    "/indexes/{name}/recall",
    operation_id="measure_recall",
    tags=["indexes"],
    openapi_extra=preferring_body(schema_of(RecallOptions)),
    responses=answers(schema_of(RecallAnswer), "The recall, where the client has waited for the job.", [JSON]),
)
async def measure_recall(name: IndexName, request: Request, context: ContextOf) -> Response:
    """Start a job that measures which share of the nearest vectors searches find, and what loses the others."""
    submit = partial(context.recall.submit, name)
    return await job_answer(request, context, *await submit_posted(request, context, RecallOptions, submit))
