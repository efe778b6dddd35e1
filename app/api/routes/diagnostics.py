"""What a map is worth, and which one to take."""

from collections.abc import Callable
from contextlib import AsyncExitStack

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
from app.jobs.record import JobRecord, link
from app.pictures.style import MEDIA_TYPE as SVG
from app.services.run_or_submit import JSON

router = APIRouter(prefix="/v1", tags=["diagnostics"], default_response_class=Response)

_DRAWN = (DiagnosticKind.gram, DiagnosticKind.max_error)


@router.post(
    "/maps/{name}/diagnostics/{kind}",
    operation_id="diagnose",
    openapi_extra=DIAGNOSTIC_BODY,
    responses=DIAGNOSTIC_ANSWER,
)
async def diagnose(name: MapName, kind: DiagnosticKind, request: Request, context: ContextOf) -> Response:
    """Measure a map, on rows or by itself; at once, or by a job where it takes long."""
    media_types = [JSON, SVG] if kind in _DRAWN else [JSON]
    return await _answer(
        request,
        context,
        media_types,
        lambda body, media_type: context.measuring.diagnose(name, kind, body, media_type, bodies.parse),
    )


@router.post(
    "/recommendations", operation_id="recommend", openapi_extra=RECOMMENDATION_BODY, responses=RECOMMENDATION_ANSWER
)
async def recommend(request: Request, context: ContextOf) -> Response:
    """Try samplers and sizes on rows, and rank them; at once, or by a job where it takes long."""
    return await _answer(
        request,
        context,
        [JSON, SVG],
        lambda body, media_type: context.measuring.recommend(body, media_type, bodies.parse),
    )


async def _answer(
    request: Request, context: Context, media_types: list[str], measure: Callable[[bytes, str], bytes | JobRecord]
) -> Response:
    posted_format(request, (JSON,))
    media_type = favourite(request, media_types)
    async with AsyncExitStack() as inside:
        await inside.enter_async_context(context.admission.enter())
        body = await bodies.read(request, context.limits.check_body, context.admission.client_timeout)
        answer = await context.admission.compute(lambda: measure(body, media_type))
        if isinstance(answer, JobRecord):
            headers = {"Location": link(answer.id), "Link": f'<{link(answer.id)}>; rel="monitor"'}
            response = Response(answer.model_dump_json(), 202, headers, JSON)
        else:
            vary = {"Vary": "Accept"} if len(media_types) > 1 else None
            response = Response(answer, headers=vary, media_type=media_type)
        return HeldResponse(response, inside.pop_all(), context.admission.client_timeout)
