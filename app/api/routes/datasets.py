"""Routes of datasets: create, list, inspect, delete."""

from fastapi import APIRouter, Request, Response

from app.api import bodies, etags
from app.api.access import owner_of
from app.api.context import Admitted, ContextOf, Cursor, DatasetName, DatasetTtl, Limit, Prefix
from app.api.negotiation import JSON, posted_type
from app.api.schemas import DATASET_BODY, headers
from app.formats import DATASET_FORMATS
from app.request_context import link_to
from app.services.datasets import DatasetPage, DatasetRecord

router = APIRouter(prefix="/v1/datasets", tags=["datasets"])


@router.put(
    "/{name}",
    operation_id="put_dataset",
    responses={
        200: {"description": "The dataset was there already, with the same rows.", **headers("ETag")},
        201: {"model": DatasetRecord, **headers("ETag", location="Link of the dataset.")},
    },
    openapi_extra=etags.conditional_put(DATASET_BODY),
)
async def put_dataset(
    name: DatasetName, request: Request, response: Response, context: Admitted, ttl: DatasetTtl = None
) -> DatasetRecord:
    """Store rows under a name. If the same rows are stored there already, only their time to live changes, to `ttl`."""
    form = DATASET_FORMATS[posted_type(request, DATASET_FORMATS)]
    body = await bodies.read_body(form, request, context)
    owner, check = owner_of(request), etags.preconditions(request).check
    run = context.admission.read_file if form.in_own_process else context.admission.compute
    # Stored in the same turn: rows may take a million times the memory of their body, and must not wait for another.
    record, created = await run(lambda: context.datasets.create(name, form.matrix(body), ttl, owner, check))
    response.headers["ETag"] = etags.etag(record.digest)
    if created:
        response.status_code = 201
        response.headers["Location"] = link_to(f"/v1/datasets/{name}")
    return record


@router.get("", operation_id="list_datasets")
async def list_datasets(
    context: ContextOf, limit: Limit = 100, cursor: Cursor = None, prefix: Prefix = ""
) -> DatasetPage:
    """List datasets in order of their names. A page may hold fewer than `limit` datasets if some have expired."""
    return await context.admission.ask(lambda: context.datasets.list(prefix, cursor, limit))


@router.get(
    "/{name}",
    operation_id="get_dataset",
    response_model=DatasetRecord,
    responses={200: headers("ETag"), **etags.NOT_MODIFIED},
    openapi_extra=etags.ASKED_AGAIN,
)
async def get_dataset(name: DatasetName, request: Request, context: ContextOf) -> Response:
    """Return the record of a dataset."""

    def work() -> Response:
        record = context.datasets.get(name)
        tag = etags.etag(record.digest)
        etags.check_if_none_match(request, tag)
        return Response(record.model_dump_json(), headers={"ETag": tag}, media_type=JSON)

    return await context.admission.ask(work)


@router.delete("/{name}", operation_id="delete_dataset", status_code=204, openapi_extra=etags.CONDITIONAL)
async def delete_dataset(name: DatasetName, request: Request, context: ContextOf) -> None:
    """Delete a dataset and everything stored for it."""
    check = etags.preconditions(request).check
    await context.admission.ask(lambda: context.datasets.delete(name, check))
