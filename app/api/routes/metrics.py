"""The metrics of the service, for Prometheus."""

from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse

from app.api.answer_headers import headers
from app.api.context import ContextOf

router = APIRouter(tags=["service"])
_TEXT = {"schema": {"type": "string"}}
_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "In the text format of Prometheus, or in that of OpenMetrics where it is asked for.",
        "content": {"text/plain": _TEXT, "application/openmetrics-text": _TEXT},
        **headers("Vary"),
    }
}


@router.get("/metrics", operation_id="metrics", response_class=PlainTextResponse, responses=_ANSWER)
async def metrics(request: Request, context: ContextOf) -> Response:
    """What all processes of the service have counted, and what the store says of itself and of jobs.

    No process that dies takes a count with it. The page *Metrics* of the reference has every name.
    """
    accept = ",".join(request.headers.getlist("accept"))

    def told() -> tuple[bytes, str]:
        context.heartbeat.beat()
        return context.meters.told(accept, context.figures)

    text, media_type = await context.admission.ask(told)
    return Response(text, headers={"Content-Type": media_type, "Vary": "Accept"})
