"""What is done with posted vectors."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from app.api import bodies
from app.api.answers import HeldResponse, array_response
from app.api.context import Context, ContextOf, MapName
from app.api.documents import ARRAY_ANSWER, GRAM_BODY, PAIRS_BODY, VECTORS_BODY
from app.api.negotiation import answer_format, posted_format
from app.formats import FORMATS, Answer, Format
from app.services.vectors import Encoding, OnZero

router = APIRouter(prefix="/v1/maps/{name}", tags=["vectors"], default_response_class=Response, responses=ARRAY_ANSWER)


@router.post("/transform", operation_id="transform", openapi_extra=VECTORS_BODY)
async def transform(name: MapName, request: Request, context: ContextOf) -> Response:
    """Features of the posted vectors, in their order."""
    return await _answer(request, context, lambda form, body: context.vectors.transform(name, form, body))


@router.post("/kernel", operation_id="kernel", openapi_extra=GRAM_BODY)
async def kernel(
    name: MapName,
    request: Request,
    context: ContextOf,
    exact: Annotated[bool, Query(description="Give the exact block beside the approximate one.")] = False,
) -> Response:
    """Gram block of x against y, or of x against itself, as this map approximates it."""
    return await _answer(request, context, lambda form, body: context.vectors.kernel(name, form, body, exact))


@router.post("/codes", operation_id="codes", openapi_extra=VECTORS_BODY)
async def codes(
    name: MapName,
    request: Request,
    context: ContextOf,
    encoding: Annotated[Encoding, Query(description="pairs: (i*, t*). zero_bit: i* alone.")] = Encoding.zero_bit,
    on_zero: Annotated[OnZero, Query(description="What to do with rows that are all zero.")] = OnZero.refuse,
) -> Response:
    """Consistent-sampling codes of the posted vectors; for maps with kernel gmm."""
    return await _answer(
        request, context, lambda form, body: context.vectors.codes(name, form, body, encoding, on_zero)
    )


@router.post("/similarity", operation_id="similarity", openapi_extra=PAIRS_BODY)
async def similarity(
    name: MapName,
    request: Request,
    context: ContextOf,
    encoding: Annotated[
        Encoding | None,
        Query(description="How x and y encode codes. Needed for zero_bit codes of a map whose s equals input_dim."),
    ] = None,
) -> Response:
    """Estimated min-max kernel of row i of x with row i of y, its standard error, and for vectors the exact kernel."""
    return await _answer(
        request,
        context,
        lambda _, body: context.vectors.similarity(name, body, encoding),
        allowed=("application/json",),
    )


async def _answer(
    request: Request,
    context: Context,
    work: Callable[[Format, bytes], Answer],
    allowed: tuple[str, ...] = tuple(FORMATS),
) -> Response:
    """Bytes to arrays, arrays to an answer, on a thread: the one way through for vectors."""
    posted = posted_format(request, allowed)
    form = answer_format(request, posted)
    async with AsyncExitStack() as inside:
        await inside.enter_async_context(context.admission.enter())
        body = await bodies.read(request, context.limits.check_body, context.admission.client_timeout)
        response = await context.admission.compute(lambda: array_response(work(posted, body), form))
        return HeldResponse(response, inside.pop_all(), context.admission.client_timeout)
