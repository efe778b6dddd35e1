"""The service itself: health, versions, limits, the catalogue, and the pages that problems point to."""

from functools import cache
from html import escape
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Request, Response
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field

from app.api import etags, ranges
from app.api.answer_headers import headers
from app.api.context import ContextOf
from app.api.negotiation import JSON
from app.api.problem_kinds import KINDS
from app.api.problems import Refusal
from app.services.catalog import Catalog, catalog
from app.services.status import versions
from app.store.servers import StoreInfo

router = APIRouter(tags=["service"])


class Live(BaseModel):
    """What a process that is alive answers."""

    status: Literal["live"]


class Ready(BaseModel):
    """What a process that is ready to serve requests answers."""

    status: Literal["ready"]
    warnings: list[str] | None = Field(
        None,
        description="What an operator should look at: a store that has no room, so that writes are refused while all "
        "else is served; or data that was cut off at its start. Absent if there is nothing.",
    )


class Kept(BaseModel):
    """How much the store keeps. The limits are `max_store_bytes` and `max_store_names`."""

    bytes: int = Field(
        description="Of arrays, specs, and what jobs were given, keep and have made, with the room for maps that jobs "
        "build. What is deleted or expires does not count any more."
    )
    names: int = Field(description="Maps, datasets and jobs.")


class Info(BaseModel):
    """Versions, limits, and the store."""

    versions: dict[str, str]
    limits: dict[str, int | float]
    store: StoreInfo
    usage: Kept


@router.get("/health/live", operation_id="live")
async def live() -> Live:
    """Say that the process is alive, if it can say anything."""
    return Live(status="live")


@router.get(
    "/health/ready",
    operation_id="ready",
    response_model_exclude_none=True,
    responses={503: {"description": "`detail` says what is missing."}},
)
async def ready(context: ContextOf) -> Ready:
    """Say whether requests would be served: the store answers, takes writes and keeps them, and loops are compiled.

    A store that is full takes no writes, and everything else is served: the answer is 200 then, with a warning.
    """
    reason, warnings = await context.admission.ask(context.status.readiness)
    if reason is not None:
        raise Refusal("store-unavailable", reason)
    return Ready(status="ready", warnings=warnings or None)


@router.get("/v1/info", operation_id="info")
async def info(context: ContextOf) -> Info:
    """Versions, limits, how the store keeps what it is given, and how much it keeps."""
    store = await context.admission.ask(context.status.keeping)
    nbytes, names = await context.admission.ask(context.account.usage)
    usage = Kept(bytes=nbytes, names=names)
    return Info(versions=versions(), limits=context.settings.limits, store=store, usage=usage)


@router.get(
    "/v1/catalog",
    operation_id="catalog",
    response_model=Catalog,
    responses={200: headers("ETag", "Accept-Ranges", "Vary"), **ranges.PARTS, **etags.NOT_MODIFIED},
    openapi_extra=etags.taking(etags.ASKED_AGAIN, ranges.PARTIAL),
)
async def get_catalog(request: Request) -> Response:
    """JSON Schema of every kernel, sampler, form and diagnostic."""
    return etags.constant(request, _written_catalog(), JSON)


@cache
def _written_catalog() -> bytes:
    return catalog().model_dump_json().encode()


@router.get("/problems/{slug}", operation_id="problem", response_class=HTMLResponse)
async def problem_page(
    slug: Annotated[str, Path(max_length=64, description="Last part of the `type` of a problem.")],
) -> Response:
    """Explain a problem: what it means, and what to do about it."""
    if slug not in KINDS:
        raise Refusal("not-found", f"there is no problem {slug!r}; there are {', '.join(KINDS)}")
    kind = KINDS[slug]
    return HTMLResponse(
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(kind.title)}</title>'
        f"<h1>{escape(kind.title)}</h1><p>Status {kind.status}, type <code>/problems/{slug}</code></p>"
        f"<p>{escape(kind.page)}</p></html>"
    )
