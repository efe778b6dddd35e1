"""Advice on indexes: which bands to put, or whether to scan; at once, or by a job where it takes long."""

from fastapi import APIRouter, Request, Response

from app.api import bodies
from app.api.context import ContextOf
from app.api.documents import preferring_body
from app.api.measured_answers import FORMS, answer, answers
from app.api.schemas import schema_of, with_warnings
from app.core.indexes.advice import AdviceOptions
from app.core.indexes.answer import Advice
from app.formats import Body, option_bodies
from app.services.measurements import Measurement

router = APIRouter(prefix="/v1", tags=["indexes"], default_response_class=Response)


@router.post(
    "/indexes/advice",
    operation_id="advise",
    openapi_extra=preferring_body(schema_of(AdviceOptions)),
    responses=answers(
        with_warnings(schema_of(Advice)), "The advice; also as a picture, recall against the share of rows looked at."
    ),
)
async def advise(request: Request, context: ContextOf) -> Response:
    """Say which bands of a map's codes to put an index with, for rows like those of a dataset, or that a scan serves.

    Predicted from the similarities of the rows, and checked by hashing some of them.
    """

    def prepare(body: Body) -> Measurement:
        return context.adviser.measurement(option_bodies.advice(body, bodies.parse))

    return await answer(request, context, FORMS, prepare)
