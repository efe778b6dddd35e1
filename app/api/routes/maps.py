"""Routes of maps: create, list, inspect, delete, fetch frozen arrays, and export as files."""

from enum import StrEnum
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from app.api import bodies, etags, long_work
from app.api.access import owner_of
from app.api.context import Admitted, Context, ContextOf, Cursor, Limit, MapName, MapTtl, Prefix
from app.api.documents import MAP_BODY
from app.api.negotiation import JSON, array_response, encoded_response, posted_format, wanted_format
from app.api.schemas import BINARY, array_answer, headers
from app.core.maps import FAMILIES
from app.core.maps.terms import Fetched
from app.core.model import section_of
from app.core.progress import TimedProgress
from app.formats.exports import EXPORTS
from app.services.asked import AskedSpec, asked_spec
from app.services.map_creation import Created, MapPreview, preview
from app.services.maps import ArrayKind, MapPage, MapRecord

router = APIRouter(prefix="/v1/maps", tags=["maps"])

_PUT = headers("ETag", "Vary", "Preference-Applied")
_MADE = headers("ETag", "Vary", "Preference-Applied", location="Link of the map.")


@router.put(
    "/{name}",
    operation_id="put_map",
    response_model=MapRecord | MapPreview,
    responses={
        200: {
            "description": "The map was there already, with the same spec. With `dry_run`, what the spec would make.",
            **_PUT,
        },
        201: {"model": MapRecord, **_MADE},
        202: {
            "model": MapRecord,
            "description": "A job builds the map; `job` is its link.",
            **headers("Link", "Vary", "Preference-Applied", location="Link of the map."),
        },
    },
    openapi_extra=etags.conditional_put(MAP_BODY),
)
async def put_map(
    name: MapName,
    request: Request,
    context: ContextOf,
    dry_run: Annotated[
        bool, Query(description="Check everything and say what the map would be and cost; store nothing.")
    ] = False,
    ttl: MapTtl = None,
) -> Response:
    """Create a map. If the same map exists already, only its time to live changes, to `ttl`."""
    posted_format(request, (JSON,))
    if dry_run:
        return await _preview(name, request, context)
    clock, (record, new) = await _create(name, request, context, ttl)
    context.admission.senders.give_back(request.scope["state"])  # because the client may wait for long from here on
    if record.job is not None and clock.preferences.wait is not None:
        job_id = record.job.rpartition("/")[2]
        del record  # a spec may be large, and the client waits without a place
        await long_work.follow_job(context, clock, job_id, request)
        record = await context.admission.ask(lambda: context.maps.get(name))
    status, headers = long_work.describe_put(clock, f"/v1/maps/{name}", record.job, new)
    if record.digest is not None:
        headers["ETag"] = etags.etag(record.digest)
    # On a thread, as a spec may be large.
    return Response(await context.admission.ask(record.model_dump_json), status, headers, JSON)


async def _create(name: str, request: Request, context: Context, ttl: int | None) -> tuple[long_work.Clock, Created]:
    """Create the map of a request; return the request's clock, for a further wait, and the map, ready or being built.

    The request holds a place of requests while it is read, and one of builds until this returns. A map that exists
    already needs no place of builds.
    """
    with context.admission.inside:
        clock, asked = await _read_spec(request, context)
        owner = owner_of(request)
        check = etags.preconditions(request).check
        there = await context.admission.ask(lambda: context.map_creation.there(name, asked, ttl, check))
    if there is not None:
        return clock, Created(there, False)
    with context.admission.builds:
        settling = TimedProgress(clock.place_by, lambda: clock.shutdown.begun)
        created = await long_work.run_or_submit(
            context,
            clock,
            context.admission.building,
            lambda progress: context.map_creation.create(name, asked, progress, settling, owner, ttl, check),
            request,
            same=(name, asked.spec.canonical(), asked.left_open.text, owner, ttl),
            before=[settling],
        )
        return clock, created


async def _read_spec(request: Request, context: Context) -> tuple[long_work.Clock, AskedSpec]:
    """Return the spec of a request, and the clock started on its arrival. The caller holds a place of requests."""
    body = await bodies.read(request, context, context.limits.check_spec)
    clock = long_work.start_clock(request, context)
    return clock, await context.admission.compute(lambda: asked_spec(body, bodies.parse, context.limits.check_spec))


async def _preview(name: str, request: Request, context: Context) -> Response:
    """Return the preview of a map; the map is built for it if there is a place and time, and then discarded."""
    with context.admission.inside:
        clock, asked = await _read_spec(request, context)
    check = etags.preconditions(request).check
    with context.admission.builds:
        found = await long_work.run_or_submit(
            context,
            clock,
            context.admission.building,
            lambda progress: preview(context.map_creation, name, asked, progress, owner_of(request), check),
            request,
        )
    return Response(
        await context.admission.ask(found.model_dump_json), 200, clock.preferences.applied_headers(200), JSON
    )


@router.get("", operation_id="list_maps", response_model=MapPage)
async def list_maps(context: ContextOf, limit: Limit = 100, cursor: Cursor = None, prefix: Prefix = "") -> Response:
    """List maps in order of their names. A page may hold fewer than `limit` maps if specs are long: follow `next`."""
    page = await context.admission.ask(lambda: context.maps.list(prefix, cursor, limit))
    return Response(page, media_type=JSON)


@router.get(
    "/{name}",
    operation_id="get_map",
    response_model=MapRecord,
    responses={200: headers("ETag"), **etags.NOT_MODIFIED},
    openapi_extra=etags.ASKED_AGAIN,
)
async def get_map(name: MapName, request: Request, context: ContextOf) -> Response:
    """Return the record of a map."""

    def work() -> Response:
        if "if-none-match" in request.headers and (known := context.maps.digest(name)):
            etags.check_if_none_match(request, etags.etag(known))
        digest, record = context.maps.write_record(name)
        return Response(record, media_type=JSON, headers={} if digest is None else {"ETag": etags.etag(digest)})

    return await context.admission.ask(work)


@router.delete("/{name}", operation_id="delete_map", status_code=204, openapi_extra=etags.CONDITIONAL)
async def delete_map(name: MapName, request: Request, context: ContextOf) -> None:
    """Delete a map and everything stored for it."""
    check = etags.preconditions(request).check
    await context.admission.ask(lambda: context.maps.delete(name, check))


def _add_array(array: str, fetched: Fetched) -> None:
    @router.get(
        f"/{{name}}/{array}",
        name=f"get_{array}",
        operation_id=f"get_{array}",
        description=f"Fetch {fetched.described}",
        response_class=Response,
        responses={
            200: array_answer(array, fetched.axes)[200] | headers("ETag", "Vary"),
            **etags.NOT_MODIFIED,
        },
        openapi_extra=etags.ASKED_AGAIN,
    )
    async def get_array(name: MapName, request: Request, context: Admitted) -> Response:
        wanted = wanted_format(request)

        def work() -> Response:
            tags: list[str] = []

            def check(kind: ArrayKind) -> None:
                form, dtype = wanted.choose(kind.dtype)
                tags.append(etags.etag(kind.digest, array, form.media_type, dtype.name, weak=not kind.is_frozen))
                etags.check_if_none_match(request, tags[-1], Vary="Accept")

            made = context.maps.array(name, array, check)
            return array_response({array: made}, wanted, context.admission, tag=tags[-1])

        return await context.admission.compute(work)


for _family in FAMILIES:
    for _array, _fetched in _family.fetched.items():
        _add_array(_array, _fetched)


FileFormat = StrEnum("FileFormat", {name: name for name in EXPORTS})  # type: ignore[misc]
"""Formats in which a map can be exported."""
_FILES = " ".join(section_of(type(form), "File") for form in EXPORTS.values())
_FILE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The file, under the name of the map.",
        "content": {form.media_type: {"schema": BINARY} for form in EXPORTS.values()},
        **headers("ETag", "Content-Disposition"),
    },
    **etags.NOT_MODIFIED,
}


@router.get(
    "/{name}/export",
    operation_id="export_map",
    response_class=Response,
    responses=_FILE,
    openapi_extra=etags.ASKED_AGAIN,
)
async def export_map(
    name: MapName,
    request: Request,
    context: Admitted,
    file_format: Annotated[FileFormat, Query(alias="format", description=_FILES)],
) -> Response:
    """Export a map as a file for computing features, or codes, elsewhere; the file includes preprocessing (`input`)."""
    form = EXPORTS[file_format]

    def work() -> Response:
        if "if-none-match" in request.headers and (known := context.maps.digest(name)):
            etags.check_if_none_match(request, etags.etag(known))
        taken = context.maps.taken_away(name)
        of_file = {
            "ETag": etags.etag(taken.digest),
            "Content-Disposition": f'attachment; filename="{name}.{file_format}"',
        }
        return encoded_response(form.write(taken), taken.arrays, form.media_type, of_file, context.admission)

    return await context.admission.compute(work)
