"""Maps: create, list, look at, delete, and fetch their frozen arrays."""

from contextlib import AsyncExitStack
from typing import Any

from fastapi import APIRouter, Depends, Request, Response

from app.api import bodies, long_work
from app.api.answers import HeldResponse, array_response
from app.api.context import Context, ContextOf, MapName
from app.api.documents import ARRAY_ANSWER, PREFER, applied_headers, json_body, taken_headers
from app.api.negotiation import answer_format, require_json
from app.api.queries import Cursor, Limit, Prefix
from app.core.spec import MapSpec
from app.services.map_records import MapPage, MapRecord

router = APIRouter(prefix="/v1/maps", tags=["maps"])


@router.put(
    "/{name}",
    operation_id="put_map",
    dependencies=[Depends(require_json)],
    response_model=MapRecord,
    responses={
        200: {"description": "The map was there already, with the same spec.", **applied_headers()},
        201: {"model": MapRecord, **applied_headers(Location="Link of the map.")},
        202: {
            "model": MapRecord,
            "description": "A job builds the map; `job` is its link.",
            **taken_headers("Link of the map."),
        },
    },
    openapi_extra=json_body(MapSpec) | PREFER,
)
async def put_map(name: MapName, request: Request, response: Response, context: ContextOf) -> Any:
    """Create a map, or find that the same one is there."""
    async with context.admission.enter():
        body = await bodies.read(request, context.limits.check_spec, context.admission.client_timeout)
        clock = long_work.started(request, context)
        spec = await context.admission.compute(lambda: bodies.parse(MapSpec, body))
        record, new = await long_work.run_or_submit(
            context,
            clock,
            context.admission.building,
            lambda progress: context.maps.create(name, spec, progress),
        )
        if record.job is not None and await long_work.ended(context, clock, record.job.rpartition("/")[2]):
            record = await context.admission.ask(lambda: context.maps.get(name))
    if record.job is not None:
        response.status_code = 202
        response.headers["Link"] = f'<{record.job}>; rel="monitor"'
    elif new:
        response.status_code = 201
    if response.status_code is not None:
        response.headers["Location"] = f"/v1/maps/{name}"
    if record.digest is not None:
        response.headers["ETag"] = _etag(record)
    response.headers.update(clock.preferences.applied(response.status_code or 200))
    return record


@router.get("", operation_id="list_maps")
async def list_maps(
    context: ContextOf,
    limit: Limit = 100,
    cursor: Cursor = None,
    prefix: Prefix = "",
) -> MapPage:
    """List maps in order of their names. A page may hold fewer than `limit`, where specs are long: go by `next`."""
    return await context.admission.ask(lambda: context.maps.list(prefix, cursor, limit))


@router.get(
    "/{name}",
    operation_id="get_map",
    response_model=MapRecord,
    responses={304: {"description": "`If-None-Match` names the digest."}},
)
async def get_map(name: MapName, request: Request, response: Response, context: ContextOf) -> Any:
    """Look at a map."""
    record = await context.admission.ask(lambda: context.maps.get(name))
    if record.digest is None:
        return record
    etag = _etag(record)
    known = request.headers.get("if-none-match", "")
    if etag in known or known.strip() == "*":
        return Response(status_code=304, headers={"ETag": etag})
    response.headers["ETag"] = etag
    return record


@router.delete("/{name}", operation_id="delete_map", status_code=204)
async def delete_map(name: MapName, context: ContextOf) -> None:
    """Delete a map and everything kept for it."""
    await context.admission.ask(lambda: context.maps.delete(name))


@router.get("/{name}/frequencies", operation_id="get_frequencies", response_class=Response, responses=ARRAY_ANSWER)
async def get_frequencies(name: MapName, request: Request, context: ContextOf) -> Response:
    """Fetch the frequencies, (n_frequencies, input_dim)."""
    return await _array(name, "frequencies", request, context)


@router.get("/{name}/weights", operation_id="get_weights", response_class=Response, responses=ARRAY_ANSWER)
async def get_weights(name: MapName, request: Request, context: ContextOf) -> Response:
    """Fetch the weights of the frequencies, (n_frequencies,)."""
    return await _array(name, "weights", request, context)


@router.get("/{name}/offsets", operation_id="get_offsets", response_class=Response, responses=ARRAY_ANSWER)
async def get_offsets(name: MapName, request: Request, context: ContextOf) -> Response:
    """Fetch the offsets of the form phase, (n_frequencies,) in [0, 2π)."""
    return await _array(name, "offsets", request, context)


@router.get("/{name}/signature", operation_id="get_signature", response_class=Response, responses=ARRAY_ANSWER)
async def get_signature(name: MapName, request: Request, context: ContextOf) -> Response:
    """Fetch the signs ±1 of the weights, (n_frequencies,), of a map that has negative ones."""
    return await _array(name, "signature", request, context)


async def _array(name: str, array: str, request: Request, context: Context) -> Response:
    form = answer_format(request)
    async with AsyncExitStack() as inside:
        await inside.enter_async_context(context.admission.enter())
        response = await context.admission.compute(
            lambda: array_response({array: context.maps.array(name, array)}, form)
        )
        return HeldResponse(response, inside.pop_all(), context.admission.client_timeout)


def _etag(record: MapRecord) -> str:
    return f'"{record.digest}"'
