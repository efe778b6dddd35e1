"""What a map is worth, and which one to take."""

from collections.abc import Callable
from contextlib import AsyncExitStack

import orjson
from fastapi import APIRouter, Request, Response

from app.api import bodies
from app.api.answers import HeldResponse
from app.api.context import Context, ContextOf, MapName
from app.api.diagnostic_documents import (
    DIAGNOSTIC_ANSWER,
    DIAGNOSTIC_BODY,
    RECOMMENDATION_ANSWER,
    RECOMMENDATION_BODY,
)
from app.api.negotiation import favourite, posted_format
from app.core.diagnostics.kinds import DiagnosticKind
from app.pictures.style import MEDIA_TYPE as SVG
from app.services.diagnostics import Prepared

_JSON = "application/json"

router = APIRouter(prefix="/v1", tags=["diagnostics"], default_response_class=Response)

_DRAWN = (DiagnosticKind.gram, DiagnosticKind.max_error)


@router.post(
    "/maps/{name}/diagnostics/{kind}",
    operation_id="diagnose",
    openapi_extra=DIAGNOSTIC_BODY,
    responses=DIAGNOSTIC_ANSWER,
)
async def diagnose(name: MapName, kind: DiagnosticKind, request: Request, context: ContextOf) -> Response:
    """Measure a map, on rows or by itself."""
    media_types = [_JSON, SVG] if kind in _DRAWN else [_JSON]
    return await _answer(
        request, context, media_types, lambda body: context.diagnostics.prepare(name, kind, body, bodies.parse)
    )


@router.post(
    "/recommendations", operation_id="recommend", openapi_extra=RECOMMENDATION_BODY, responses=RECOMMENDATION_ANSWER
)
async def recommend(request: Request, context: ContextOf) -> Response:
    """Try samplers and sizes on rows, and rank them."""
    return await _answer(
        request, context, [_JSON, SVG], lambda body: context.recommendations.prepare(body, bodies.parse)
    )


async def _answer(
    request: Request, context: Context, media_types: list[str], prepare: Callable[[bytes], Prepared]
) -> Response:
    posted_format(request, (_JSON,))
    media_type = favourite(request, media_types)

    def measure(body: bytes) -> Response:
        prepared = prepare(body)
        context.limits.check_diagnostic(prepared.operations)
        finding = prepared.run()
        if media_type == SVG and prepared.picture is not None:
            return Response(prepared.picture(finding), media_type=SVG)
        return Response(orjson.dumps({k: finding[k] for k in finding if k != "pictures"}), media_type=_JSON)

    async with AsyncExitStack() as inside:
        await inside.enter_async_context(context.admission.enter())
        body = await bodies.read(request, context.limits.check_body, context.admission.client_timeout)
        response = await context.admission.compute(lambda: measure(body))
        return HeldResponse(response, inside.pop_all(), context.admission.client_timeout)
