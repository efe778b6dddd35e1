"""Routes of the service itself: health, versions, limits, metrics, the catalogue, and the pages of problems."""

from collections.abc import Sequence
from functools import cache
from html import escape
from typing import Annotated, Any, Literal, get_args

from fastapi import APIRouter, Path, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse

from app.api import etags
from app.api.context import Context, ContextOf
from app.api.negotiation import JSON
from app.api.problems import KINDS, Refusal
from app.api.schemas import headers
from app.core.diagnostics import DIAGNOSTICS
from app.core.kernels import Kernel
from app.core.maps import FAMILIES, FeatureMap, Gives
from app.core.maps.fourier.forms import FORMS, Columns
from app.core.model import Described, Kind, advice_in
from app.core.samplers.base import AnySampler
from app.core.spec import Sampler
from app.formats.exports import EXPORTS
from app.services.status import versions
from app.services.warm_up import cold
from app.store.servers import StoreInfo

router = APIRouter(tags=["service"])


class Catalog(Described):
    """JSON Schemas by family and kind, each with the additional members `source` and `choose_when`.

    If a kind has restrictions beyond the ranges of its fields, its schema also has `limits`, a list of sentences. A
    Gram error in `choose_when` is ‖K − K̂‖/‖K‖ in the Frobenius norm, a mean of ten seeds, for kernel `gaussian` and,
    unless stated otherwise, the form `cos_sin`.
    """

    kernels: dict[str, dict[str, Any]]
    """Kernels allowed in `kernel` of a spec, by kind."""
    samplers: dict[str, dict[str, Any]]
    """Samplers allowed in `sampler` of a spec, by kind. The member `maps` describes the maps of a sampler: what they
    give (`gives`: features, codes, samples, frequencies, anchors), what `s` is the number of (`s`), the `arrays` that
    can be fetched, the `diagnostics` that measure them, the formats of their `exports`, and whether an index can hold
    their codes (`indexed`). A map may have less, as a map with unequal weights gives no codes.
    """
    forms: dict[str, dict[str, Any]]
    """Forms allowed in `form` of a spec, by kind."""
    diagnostics: dict[str, dict[str, Any]]
    """Options of the diagnostics, by kind, each with the rows that it `takes`."""


def catalog() -> Catalog:
    """Return a description of every registered kind."""
    return Catalog(
        kernels=_describe_kinds(Kernel),
        samplers=_describe_samplers(),
        forms={form.value: {"const": form.value} | _advice(type(columns)) for form, columns in FORMS.items()},
        diagnostics={
            kind: model.model_json_schema() | _advice(model) | {"takes": model.takes.value}
            for kind, model in DIAGNOSTICS.items()
        },
    )


def _describe_kinds(union: Any) -> dict[str, dict[str, Any]]:
    models: tuple[type[Kind], ...] = get_args(get_args(union)[0])
    schemas = [model.model_json_schema() | _advice(model) for model in models]
    return {schema["properties"]["kind"]["const"]: schema for schema in schemas}


def _describe_samplers() -> dict[str, dict[str, Any]]:
    every = {kind.kind_name(): (kind, family) for family in FAMILIES for kind in family.samplers}
    found = _describe_kinds(Sampler)
    return {name: schema | {"maps": _describe_maps(*every[name])} for name, schema in found.items()}


def _describe_maps(sampler: type[AnySampler], family: type[FeatureMap]) -> dict[str, Any]:
    gives = family.gives
    return {
        "gives": sorted(gives),
        "s": family.unit,
        "arrays": {name: {"dtype": one.dtype, "description": one.described} for name, one in family.fetched.items()},
        "diagnostics": [kind for kind, one in DIAGNOSTICS.items() if one.is_for(sampler, gives)],
        "exports": [name for name, one in EXPORTS.items() if not one.needs or one.needs & gives],
        "indexed": Gives.codes in gives,
    }


def _advice(kind: type[Kind | Columns]) -> dict[str, Any]:
    """Return the members of the catalogue that JSON Schema does not define, but allows."""
    limits = {"limits": kind.limits} if issubclass(kind, Kind) and kind.limits else {}
    return {"source": kind.source, **advice_in(kind), **limits}


class Live(Described):
    """Answer of a process that is alive."""

    status: Literal["live"]
    """Always live: the process answers."""


class Ready(Described):
    """Answer of a process that is ready to serve requests."""

    status: Literal["ready"]
    """Always ready; else the answer is a 503."""
    warnings: list[str] | None = None
    """Warnings for the operator: the store has no room, so writes are refused while all other requests are served; or
    data was cut off when the store started. Absent if there are no warnings.
    """


class Kept(Described):
    """Bytes and names in the store. Their limits are `max_store_bytes` and `max_store_names`."""

    bytes: int
    """Bytes of arrays, specs, and the inputs, working data and results of jobs, plus the space reserved for maps that
    jobs build. Deleted or expired data do not count.
    """
    names: int
    """Number of maps, datasets and jobs."""


class Info(Described):
    """Versions, limits, and the store."""

    versions: dict[str, str]
    """Versions of the service and of the libraries that compute."""
    limits: dict[str, int | float]
    """Limits of requests and jobs, by setting."""
    store: StoreInfo
    """The store behind the service."""
    usage: Kept
    """What the store holds, and how much more it may hold."""


@router.get("/health/live", operation_id="live")
async def live() -> Live:
    """Report that the process is alive."""
    return Live(status="live")


@router.get(
    "/health/ready",
    operation_id="ready",
    response_model_exclude_none=True,
    responses={503: {"description": "`detail` says what is missing."}},
)
async def ready(context: ContextOf) -> Ready:
    """Report whether requests would be served: the store answers, takes writes and keeps them, and loops are compiled.

    If the store is full, it takes no writes, but everything else is served: then the answer is 200, with a warning.
    """
    return Ready(status="ready", warnings=[*await check_ready(context)] or None)


async def check_ready(context: Context) -> Sequence[str]:
    """Return the warnings of a service that is ready; raise Refusal if it is not ready."""
    found = await context.readiness()
    if found.reason != "ready":
        waiting_for = [*cold] if found.reason == "starting" else None
        raise Refusal(found.reason, found.told, waiting_for=waiting_for)
    return found.warnings


@router.get("/v1/info", operation_id="info")
async def info(context: ContextOf) -> Info:
    """Return versions, limits, how safely the store keeps data, and how much it keeps."""
    store = await context.admission.ask(context.status.keeping)
    nbytes, names = await context.admission.ask(context.account.usage)
    usage = Kept(bytes=nbytes, names=names)
    return Info(versions=versions(), limits=context.settings.limits, store=store, usage=usage)


@router.get(
    "/v1/catalog",
    operation_id="catalog",
    response_model=Catalog,
    responses={200: headers("ETag", "Vary"), **etags.NOT_MODIFIED},
    openapi_extra=etags.ASKED_AGAIN,
)
async def get_catalog(request: Request) -> Response:
    """Return the JSON Schema of every kernel, sampler, form and diagnostic."""
    return etags.constant(request, _written_catalog(), JSON)


@cache
def _written_catalog() -> bytes:
    return catalog().model_dump_json().encode()


@router.get("/problems/{slug}", operation_id="problem", response_class=HTMLResponse)
async def problem_page(
    slug: Annotated[str, Path(max_length=64, description="Last part of the `type` of a problem.")],
) -> Response:
    """Explain a kind of problem: what it means, and what to do about it."""
    if slug not in KINDS:
        raise Refusal("not-found", f"there is no problem {slug!r}; there are {', '.join(KINDS)}")
    kind = KINDS[slug]
    return HTMLResponse(
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(kind.title)}</title>'
        f"<h1>{escape(kind.title)}</h1><p>Status {kind.status}, type <code>/problems/{slug}</code></p>"
        f"<p>{escape(kind.page)}</p></html>"
    )


_TEXT = {"schema": {"type": "string"}}
_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "In the text format of Prometheus, or in that of OpenMetrics where it is asked for.",
        "content": {"text/plain": _TEXT, "application/openmetrics-text": _TEXT},
        **headers("Vary"),
    }
}


@router.get("/metrics", operation_id="metrics", response_class=PlainTextResponse, responses=_ANSWER)
async def metrics(request: Request, context: ContextOf) -> Response:
    """Return counts of all processes of the service, and figures of the store about itself and about jobs.

    The counts of a process survive its end. The page *Metrics* of the reference lists all names.
    """
    accept = ",".join(request.headers.getlist("accept"))

    def render() -> tuple[bytes, str]:
        context.heartbeat.beat()
        return context.meters.render(accept, context.figures)

    text, media_type = await context.admission.ask(render)
    return Response(text, headers={"Content-Type": media_type, "Vary": "Accept"})
