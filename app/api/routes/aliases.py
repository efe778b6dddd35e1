"""Routes of aliases: put, list, inspect, delete."""

from fastapi import APIRouter, Request, Response

from app.api import bodies, etags
from app.api.access import owner_of
from app.api.context import AliasName, ContextOf, Cursor, Limit, Prefix
from app.api.negotiation import JSON, posted_format
from app.api.schemas import ALIAS_BODY, headers
from app.request_context import link_to
from app.services.aliases import AliasPage, AliasRecord, AskedAlias

router = APIRouter(prefix="/v1/aliases", tags=["aliases"])


@router.put(
    "/{name}",
    operation_id="put_alias",
    responses={
        200: {"description": "The alias was there already, and may have been moved.", **headers("ETag")},
        201: {"model": AliasRecord, **headers("ETag", location="Link of the alias.")},
    },
    openapi_extra=etags.conditional_put(ALIAS_BODY),
)
async def put_alias(name: AliasName, request: Request, response: Response, context: ContextOf) -> AliasRecord:
    """Make a name stand for a map or an index, wherever that is named; if it stands for another one, move it at once.

    What it stands for is neither deleted nor expires. Jobs go on with what it stood for when they were submitted. An
    alias of a map does not become one of an index: delete it first.
    """
    posted_format(request, (JSON,))
    owner, check = owner_of(request), etags.preconditions(request).check
    with context.admission.inside:
        body = await bodies.read_options(request, context)

    def work() -> tuple[AliasRecord, bool]:
        return context.aliases.put(name, bodies.parse(AskedAlias, body), owner, check)

    record, is_new = await context.admission.ask(work)
    response.headers["ETag"] = etags.etag(record.digest)
    if is_new:
        response.status_code = 201
        response.headers["Location"] = link_to(f"/v1/aliases/{name}")
    return record


@router.get("", operation_id="list_aliases")
async def list_aliases(context: ContextOf, limit: Limit = 100, cursor: Cursor = None, prefix: Prefix = "") -> AliasPage:
    """List aliases in order of their names."""
    return await context.admission.ask(lambda: context.aliases.list(prefix, cursor, limit))


@router.get(
    "/{name}",
    operation_id="get_alias",
    response_model=AliasRecord,
    responses={200: headers("ETag"), **etags.NOT_MODIFIED},
    openapi_extra=etags.ASKED_AGAIN,
)
async def get_alias(name: AliasName, request: Request, context: ContextOf) -> Response:
    """Return what an alias stands for."""

    def work() -> Response:
        record = context.aliases.get(name)
        tag = etags.etag(record.digest)
        etags.check_if_none_match(request, tag)
        return Response(record.model_dump_json(), headers={"ETag": tag}, media_type=JSON)

    return await context.admission.ask(work)


@router.delete("/{name}", operation_id="delete_alias", status_code=204, openapi_extra=etags.CONDITIONAL)
async def delete_alias(name: AliasName, request: Request, context: ContextOf) -> None:
    """Delete an alias; what it stands for stays."""
    check = etags.preconditions(request).check
    await context.admission.ask(lambda: context.aliases.delete(name, check))
