"""Duplicates in an index, found by a job."""

from fastapi import APIRouter, Request, Response

from app.api import bodies, long_work
from app.api.access import owner_of
from app.api.context import ContextOf, IndexName
from app.api.documents import preferring_body
from app.api.measured_answers import answers, job_answer
from app.api.negotiation import JSON, posted_format
from app.api.schemas import schema_of
from app.core.indexes.options import DuplicatesOptions
from app.services.index_duplicates import DuplicatesAnswer

router = APIRouter(prefix="/v1", tags=["indexes"], default_response_class=Response)


@router.post(
    "/indexes/{name}/duplicates",
    operation_id="find_duplicates",
    openapi_extra=preferring_body(schema_of(DuplicatesOptions)),
    responses=answers(schema_of(DuplicatesAnswer), "The clusters, where the client has waited for the job.", [JSON]),
)
async def find_duplicates(name: IndexName, request: Request, context: ContextOf) -> Response:
    """Have a job find the clusters of vectors above a similarity, among all pairs of vectors of an index.

    What counts are similarities estimated from codes, as of a search that compares nothing exactly.
    """
    posted_format(request, (JSON,))
    with context.admission.inside:
        body, owner = await bodies.read(request, context, context.limits.check_options), owner_of(request)
        context.limits.check_options(len(body), body.count(b","))  # a list of numbers takes much memory once it is read
        clock = long_work.started(request, context)
        options = await context.admission.compute(lambda: bodies.parse(DuplicatesOptions, body))
        job = await context.admission.submit(lambda: context.duplicates.submit(name, options, owner))
    return await job_answer(request, context, clock, job)
