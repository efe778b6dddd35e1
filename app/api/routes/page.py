"""Pages for people: / is a client that uses the HTTP API with a key; on /docs every call can be tried."""

from functools import cache
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from threading import Lock

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse
from starlette.exceptions import HTTPException

from app.api import etags
from app.api.access import ASSETS, looks
from app.api.context import ContextOf
from app.api.negotiation import JSON
from app.api.problems import Refusal

# Package with the files of Swagger UI. Its code is not used.
_VIEWER = "fastapi_offline"
_FILES = ("swagger-ui-bundle.js", "swagger-ui.css", "favicon.png")
# The address of a file changes with its content, so a browser may cache it for a year.
_KEPT = {"Cache-Control": "public, max-age=31536000, immutable"}

# Held while the document is written, so that concurrent requests do not write it too.
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
    """Send the OpenAPI document. It is written once, on a thread, as that takes as long as hundreds of requests."""
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
    return FileResponse(str(files(_VIEWER) / "static" / file), headers=_KEPT)


_STATIC = Path(str(files("app.api"))) / "static"
# Scripts and styles are our own files, and no other host is contacted. Figures drawn by the service are shown from
# memory, as they are fetched with a key.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "base-uri 'self'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
_GUARDED = {
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


@router.get("/")
async def page(request: Request) -> Response:
    """Send the page to clients whose `Accept` names text/html; answer all others with 404."""
    if not looks(request.scope):
        raise HTTPException(404)
    return HTMLResponse(_index(), headers={"Vary": "Accept"} | _GUARDED)


@router.get(f"{ASSETS}{{version}}/{{file:path}}")
async def page_file(version: str, file: str) -> Response:
    """Send a script or a style of the page."""
    if version != _version() or file not in _assets():
        raise Refusal("not-found", f"{ASSETS} has no such file; load the page again")
    return FileResponse(_assets()[file], headers=_KEPT | {"X-Content-Type-Options": "nosniff"})


@cache
def _assets() -> dict[str, Path]:
    """Return the files that the page loads, by their names below the folder."""
    paths = {path.relative_to(_STATIC).as_posix(): path for path in sorted(_STATIC.rglob("*"))}
    return {name: path for name, path in paths.items() if path.suffix in (".js", ".css", ".svg")}


@cache
def _version() -> str:
    """Return a version that changes with any of the files."""
    return sha256(b"".join(name.encode() + path.read_bytes() for name, path in _assets().items())).hexdigest()[:12]


@cache
def _index() -> str:
    """Return the HTML of the page; its addresses are relative, so that it works below any prefix."""
    return (_STATIC / "index.html").read_text().replace("{assets}", f"{ASSETS.lstrip('/')}{_version()}")
