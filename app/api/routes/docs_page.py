"""The page /docs, where every call can be tried. Its scripts and styles come from the service itself."""

from importlib.metadata import version
from importlib.resources import files
from threading import Lock

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import FileResponse, JSONResponse

from app.api import etags
from app.api.context import ContextOf
from app.api.negotiation import JSON
from app.api.problems import Refusal

# A package that carries the files of Swagger UI. Of its code nothing is used.
_VIEWER = "fastapi_offline"
_STATIC = files(_VIEWER) / "static"
_FILES = ("swagger-ui-bundle.js", "swagger-ui.css", "favicon.png")
# The address of a file changes with the version of the viewer, so that a browser may keep it for a year.
_KEPT = {"Cache-Control": "public, max-age=31536000, immutable"}

# Held while the document is written, so that who asks meanwhile does not write it too.
_WRITING = Lock()

router = APIRouter(include_in_schema=False)


@router.get("/docs")
async def docs_page(request: Request) -> Response:
    """Show every call. Addresses are relative, so that the page works below any prefix."""
    script, styles, icon = (f"docs/{version(_VIEWER)}/{file}" for file in _FILES)
    return get_swagger_ui_html(
        openapi_url="openapi.json",
        title=request.app.title,
        swagger_js_url=script,
        swagger_css_url=styles,
        swagger_favicon_url=icon,
    )


@router.get("/openapi.json")
async def openapi_document(request: Request, context: ContextOf) -> Response:
    """Send the document. It is written once, on a thread, as that takes as long as hundreds of small requests."""
    state = request.app.state
    if not hasattr(state, "openapi"):
        await context.admission.compute(lambda: _write(request.app), brief=True)
    return etags.constant(request, state.openapi, JSON)


def _write(app: FastAPI) -> None:
    with _WRITING:
        if not hasattr(app.state, "openapi"):
            app.state.openapi = JSONResponse(app.openapi()).body


@router.get("/docs/{viewer}/{file}")
async def docs_file(viewer: str, file: str) -> Response:
    """Send a file of the viewer."""
    if viewer != version(_VIEWER) or file not in _FILES:
        raise Refusal("not-found", f"/docs has no file {viewer}/{file}; load the page again")
    return FileResponse(str(_STATIC / file), headers=_KEPT)
