"""The page at /, for people who would rather look. It is a client like all others, over HTTP and with a key."""

from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

from fastapi import APIRouter, Request, Response
from fastapi.responses import FileResponse, HTMLResponse
from starlette.exceptions import HTTPException

from app.api.access import ASSETS, looks
from app.api.problems import Refusal

_STATIC = Path(str(files("app.api"))) / "static"
_INDEX = "index.html"
# The address of a file changes with what the files say, so that a browser may keep it for a year.
_KEPT = {"Cache-Control": "public, max-age=31536000, immutable"}
# Scripts and styles are files of ours, and nothing is asked of another host. Pictures that the service draws are shown
# from memory, as they are fetched with a key.
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

router = APIRouter(include_in_schema=False)


@router.get("/")
async def page(request: Request) -> Response:
    """Send the page to whoever wants HTML by name; all others find nothing here, as ever."""
    if not looks(request.scope):
        raise HTTPException(404)
    headers = {"Vary": "Accept"} | _GUARDED
    return HTMLResponse(_index(), headers=headers)


@router.get(f"{ASSETS}{{version}}/{{file:path}}")
async def page_file(version: str, file: str) -> Response:
    """Send a script or a style of the page."""
    if version != _version() or file not in _assets():
        raise Refusal("not-found", f"{ASSETS} has no such file; load the page again")
    return FileResponse(_assets()[file], headers=_KEPT | {"X-Content-Type-Options": "nosniff"})


@cache
def _assets() -> dict[str, Path]:
    """The files that the page loads, by their names below the folder."""
    paths = {path.relative_to(_STATIC).as_posix(): path for path in sorted(_STATIC.rglob("*"))}
    return {name: path for name, path in paths.items() if path.suffix in (".js", ".css", ".svg")}


@cache
def _version() -> str:
    """Changes with any of the files."""
    return sha256(b"".join(name.encode() + path.read_bytes() for name, path in _assets().items())).hexdigest()[:12]


@cache
def _index() -> str:
    """The page; its addresses are relative, so that it works below any prefix."""
    return (_STATIC / _INDEX).read_text().replace("{assets}", f"{ASSETS.lstrip('/')}{_version()}")
