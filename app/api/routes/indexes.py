"""Routes of indexes: create, list, inspect, delete; insert, replace and remove vectors; search."""

from enum import StrEnum
from functools import partial
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Path, Query, Request, Response
from starlette.convertors import PathConvertor, register_url_convertor

from app.api import bodies, long_work
from app.api.access import owner_of
from app.api.admission import end_if_left
from app.api.context import Admitted, ContextOf, Cursor, IndexName, Limit, MapTtl, Prefix
from app.api.negotiation import JSON, posted_format, posted_type, warning_headers
from app.api.schemas import BATCH_BODY, COPY_BODY, COUNT_BODY, DELETE_BODY, INDEX_BODY, SEARCH_BODY, TAGS_BODY, headers
from app.core.arrays import MAX_ID_BYTES
from app.core.errors import InvalidOption
from app.core.indexes.options import CountOptions, DeleteOptions, TagChanges
from app.formats import FORMATS, option_bodies
from app.formats.option_bodies import BATCHES
from app.jobs.record import JobRecord
from app.services.index_copies import AskedCopy
from app.services.index_upserts import Rule
from app.services.index_vectors import Removal
from app.services.indexes import (
    AskedIndex,
    ChangedTags,
    CountAnswer,
    DeletedVectors,
    IndexPage,
    IndexRecord,
    SearchAnswer,
    UpsertAnswer,
    VectorPage,
    VectorRecord,
)

router = APIRouter(prefix="/v1/indexes", tags=["indexes"])


class _RestOfAddress(PathConvertor):
    """Converter for the whole rest of an address. Starlette's `path` ends at a line break, and drops a trailing one."""

    regex = r"[\s\S]*"


register_url_convertor("rest", _RestOfAddress())


class ZeroVectors(StrEnum):
    """Handling of vectors that are all zero and so have no codes: refuse the batch, or leave them out."""

    refuse = "refuse"
    skip = "skip"


class IdKind(StrEnum):
    """Type of an id."""

    integer = "integer"
    string = "string"


VectorId = Annotated[str, Path(max_length=MAX_ID_BYTES, description="Id of a vector.")]
Kind = Annotated[
    IdKind | None,
    Query(description="What the id is. Without it, what is written as a whole number is one, else it is a string."),
]
IdsAs = Annotated[
    Literal["string"] | None,
    Query(description="Write whole numbers among ids as strings: some JSON readers change those beyond 2^53."),
]


@router.put(
    "/{name}",
    operation_id="put_index",
    response_model=IndexRecord,
    responses={
        200: {
            "description": "The index was there already, asked for in the same way.",
            **headers("Vary", "Preference-Applied"),
        },
        201: {"model": IndexRecord, **headers("Vary", "Preference-Applied", location="Link of the index.")},
        202: {
            "model": IndexRecord,
            "description": "A job finds bands for the target; `job` is its link. "
            "Or the client waited for a job that failed: then the record says so, and why.",
            **headers("Link", "Vary", "Preference-Applied", location="Link of the index."),
        },
    },
    openapi_extra=INDEX_BODY,
)
async def put_index(name: IndexName, request: Request, context: ContextOf, ttl: MapTtl = None) -> Response:
    """Create an index over a map. If the same index exists already, only its time to live changes, to `ttl`.

    The map stays as long as the index does: it cannot be deleted, and does not expire.
    """
    posted_format(request, (JSON,))
    owner = owner_of(request)

    def at_once(body: bytearray) -> tuple[AskedIndex, tuple[IndexRecord, bool] | None]:
        asked = bodies.parse(AskedIndex, body)
        if asked.target is None or asked.target.min_similarity is not None:
            return asked, context.indexes.create(name, asked, ttl, owner)
        there = context.indexes.there(name, asked, ttl)
        return asked, None if there is None else (there, False)

    with context.admission.inside:
        body = await bodies.read_options(request, context)
        clock = long_work.start_clock(request, context)
        asked, outcome = await context.admission.compute(partial(at_once, body))
        del body  # it may be large, and the client may wait for long
        if outcome is None:
            outcome = await long_work.run_or_submit(
                context,
                clock,
                context.admission.measurements,
                lambda progress: context.index_creation.create(name, asked, ttl, owner, progress),
                request,
                same=("index", name, asked, owner, ttl),
            )
    record, new = outcome
    if record.job is not None and clock.preferences.wait is not None:
        await long_work.follow_job(context, clock, record.job.rpartition("/")[2], request)
        record = await context.admission.ask(lambda: context.indexes.get(name))
    status, links = long_work.describe_put(clock, f"/v1/indexes/{name}", record.job, new)
    return Response(record.model_dump_json(), status, links, JSON)


@router.post(
    "/{name}/copy",
    operation_id="copy_index",
    status_code=202,
    response_model=JobRecord,
    responses={202: headers("Link", "Vary", "Preference-Applied", location="Link of the job.")},
    openapi_extra=COPY_BODY,
)
async def copy_index(name: IndexName, request: Request, context: ContextOf, ttl: MapTtl = None) -> Response:
    """Create an index, and start a job that copies all vectors of another one into it, with their tags.

    While the job runs, change vectors first in the index and then in the copy, or the copy may miss changes.
    Where the queue of jobs is full (429), the copy is there already, without vectors: send the request again.
    """
    clock, job = await long_work.submit_posted(
        request, context, AskedCopy, lambda asked, owner: context.copies.submit(name, asked, ttl, owner)
    )
    return long_work.answer_with_job(clock, await long_work.follow_job(context, clock, job.id, request) or job)


@router.get("", operation_id="list_indexes")
async def list_indexes(context: ContextOf, limit: Limit = 100, cursor: Cursor = None, prefix: Prefix = "") -> IndexPage:
    """List indexes in order of their names. A page may hold fewer than `limit` indexes if some have expired."""
    return await context.admission.ask(lambda: context.indexes.list(prefix, cursor, limit))


@router.get("/{name}", operation_id="get_index")
async def get_index(name: IndexName, context: ContextOf) -> IndexRecord:
    """Return the record of an index."""
    return await context.admission.ask(lambda: context.indexes.get(name))


@router.delete("/{name}", operation_id="delete_index", status_code=204)
async def delete_index(name: IndexName, context: ContextOf) -> None:
    """Delete an index and all its vectors; if a job is finding its bands, cancel that job."""
    await context.admission.ask(lambda: context.indexes.delete(name))


@router.post("/{name}/vectors", operation_id="upsert_vectors", response_model=UpsertAnswer, openapi_extra=BATCH_BODY)
async def upsert_vectors(
    name: IndexName,
    request: Request,
    context: Admitted,
    on_zero: Annotated[
        ZeroVectors, Query(description="What to do with vectors that are all zero, which kernel gmm gives no codes.")
    ] = ZeroVectors.refuse,
    unless_similar: Annotated[
        float | None,
        Query(gt=0, le=1, description="Similarity from which a vector is refused; exact if the index keeps vectors."),
    ] = None,
    dry_run: Annotated[bool, Query(description="Answer as usual, but store nothing.")] = False,
) -> Response:
    """Insert vectors into an index, replacing vectors with the same ids: all vectors of the request, or none.

    With `unless_similar`, a vector that is similar to one of the index, or to one before it in the batch, is refused,
    whatever others insert at the same time; the version that the index has of it stays. All others are inserted. They
    are compared by the codes of all vectors, even if the index has bands, which would miss some.

    Without `tags`, vectors that are replaced keep their tags. Every search that begins after the answer finds them,
    whichever process serves it.
    """
    form = FORMATS[posted_type(request, BATCHES)]
    body = await bodies.read_body(form, request, context)
    read = BATCHES[form.media_type]
    owner = owner_of(request)
    rule = Rule(on_zero is ZeroVectors.skip, unless_similar, dry_run)

    def work() -> Response:
        found = context.index_upserts.upsert(
            name, lambda width, check: read(body, width, check), rule, owner, end_if_left
        )
        told: dict[str, Any] = {"upserted": len(found.inserted)}
        if rule.skips:
            told["skipped"] = found.skipped
        if unless_similar is not None:
            told |= {"inserted": found.inserted, "refused": found.refused}
        told |= {"warnings": found.warnings} if found.warnings else {}
        return Response(orjson.dumps(told), headers=warning_headers(found.warnings), media_type=JSON)

    return await context.admission.compute(work)


@router.get("/{name}/vectors", operation_id="list_vectors", response_model=VectorPage)
async def list_vectors(
    name: IndexName,
    context: Admitted,
    limit: Limit = 100,
    cursor: Annotated[int | None, Query(ge=1, description="`next` of the page before.")] = None,
    tag: Annotated[str | None, Query(min_length=1, max_length=MAX_ID_BYTES, description="Tag of the vectors.")] = None,
    ids_as: IdsAs = None,
) -> Response:
    """List the vectors of an index with their tags. None is missed; one may come twice if others are deleted.

    An alias that moves between two pages goes on in the other index: to read all of one, name the index.
    """

    def work() -> Response:
        found, before = context.index_vectors.read_page(name, cursor, limit, tag, ids_as is not None)
        return _json({"vectors": found, "next": str(before) if before else None})

    return await context.admission.ask(work)


@router.post("/{name}/vectors/count", operation_id="count_vectors", openapi_extra=COUNT_BODY)
async def count_vectors(name: IndexName, request: Request, context: Admitted) -> CountAnswer:
    """Count the vectors of an index, all or those whose tags fit a filter."""
    posted_format(request, (JSON,))
    body = await bodies.read_options(request, context)
    return await context.admission.compute(
        lambda: CountAnswer(count=context.index_vectors.count(name, bodies.parse(CountOptions, body).filter))
    )


@router.post("/{name}/vectors/delete", operation_id="delete_vectors", openapi_extra=DELETE_BODY)
async def delete_vectors(name: IndexName, request: Request, context: Admitted) -> DeletedVectors:
    """Delete vectors of an index, by their ids or by a filter of their tags. Nothing of them is kept."""
    posted_format(request, (JSON,))
    body = await bodies.read_options(request, context)

    def begin() -> tuple[DeleteOptions, Removal]:
        asked = bodies.parse(DeleteOptions, body)
        return asked, context.index_vectors.begin_removal(name, asked)

    asked, removal = await context.admission.compute(begin)
    with removal.under_way():
        for step in removal.steps:
            await context.admission.ask(step)  # each a short call to the store: others need not wait for all of them
    missing = [one for one, there in zip(asked.ids or (), removal.removed, strict=False) if not there]
    return DeletedVectors(deleted=int(removal.removed.sum()), missing=missing)


@router.patch("/{name}/vectors", operation_id="change_tags", openapi_extra=TAGS_BODY)
async def change_tags(name: IndexName, request: Request, context: Admitted) -> ChangedTags:
    """Add tags to vectors of an index, and remove others: of all that are there, or of none."""
    posted_format(request, (JSON,))
    body, owner = await bodies.read_options(request, context), owner_of(request)

    def work() -> ChangedTags:
        changed, missing = context.index_upserts.change_tags(name, bodies.parse(TagChanges, body), owner)
        return ChangedTags(changed=changed, missing=missing)

    return await context.admission.compute(work)


@router.get("/{name}/vectors/{id:rest}", operation_id="get_vector", response_model=VectorRecord)
async def get_vector(
    name: IndexName,
    id: VectorId,  # noqa: A002
    context: Admitted,
    kind: Kind = None,
    include: Annotated[
        Literal["vector"] | None, Query(description="Also return the numbers, of an index that keeps vectors.")
    ] = None,
    ids_as: IdsAs = None,
) -> Response:
    """Return a vector of an index: its tags and, if wanted, its numbers."""
    vector_id = _vector_id(id, kind)
    shown = {} if ids_as is None else {"id": str(vector_id)}
    run = context.admission.ask if include is None else context.admission.compute
    return await run(lambda: _json(context.index_vectors.get(name, vector_id, include is not None) | shown))


@router.delete("/{name}/vectors/{id:rest}", operation_id="delete_vector", status_code=204)
async def delete_vector(
    name: IndexName,
    id: VectorId,  # noqa: A002
    context: ContextOf,
    kind: Kind = None,
) -> None:
    """Remove a vector from an index. Nothing of it is kept."""
    vector_id = _vector_id(id, kind)
    await context.admission.ask(lambda: context.index_vectors.remove(name, vector_id))


@router.post("/{name}/search", operation_id="search_index", response_model=SearchAnswer, openapi_extra=SEARCH_BODY)
async def search_index(name: IndexName, request: Request, context: Admitted, ids_as: IdsAs = None) -> Response:
    """Return the vectors of an index that are nearest to each of the queries, best first.

    Queries are posted vectors, a dataset, or vectors of the index itself.
    """
    form = posted_format(request, (JSON,))
    body = await bodies.read_body(form, request, context)

    def work() -> Response:
        results, after, warnings = context.index_vectors.search(
            name, lambda width: option_bodies.search(body, width, bodies.parse), ids_as is not None, end_if_left
        )
        told = {"results": results, "next": after} | ({"warnings": warnings} if warnings else {})
        return Response(orjson.dumps(told), headers=warning_headers(warnings), media_type=JSON)

    return await context.admission.compute(work)


def _json(told: dict[str, Any]) -> Response:
    return Response(orjson.dumps(told, option=orjson.OPT_SERIALIZE_NUMPY), media_type=JSON)


def _vector_id(text: str, kind: IdKind | None) -> int | str:
    """Return the id that the end of an address stands for."""
    digits = text.removeprefix("-")
    # A whole number as Python and JSON write it: 007 is not one.
    is_number = digits.isascii() and digits.isdigit() and str(int(text)) == text
    if kind is IdKind.integer and not is_number:
        raise InvalidOption(f"expected a whole number with kind=integer, got {text[:80]!r}", "id")
    return int(text) if is_number and kind is not IdKind.string else text
