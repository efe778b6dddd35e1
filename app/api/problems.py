"""Problem documents (RFC 9457), which describe each refusal to the client, and the page that explains each kind."""

import logging
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match

from app.core.errors import InvalidInput, InvalidOption, OutOfRange, TooLarge
from app.core.model import Described
from app.formats import FORMATS
from app.formats.parquet import Parquet
from app.jobs.record import JobHasEnded, JobHasNoResult, JobNotFound, TooManyJobs, link
from app.services import errors
from app.settings import Settings
from app.store.disk import LIMIT, data_dir_of
from app.store.errors import NameHeld, NewerVersion, QuotaExceeded, StoreDamaged, StoreFull, StoreUnavailable, in_full
from app.store.keys import TooManyKeys, hidden


class Kind(NamedTuple):
    """A kind of problem: its HTTP status, its title, and the text of its page."""

    status: int
    title: str
    page: str


def _read_kinds() -> dict[str, Kind]:
    kinds = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
    words = {"{formats}": " or ".join(FORMATS), "{parquet}": Parquet.media_type}
    for kind in kinds.values():
        for word, stands_for in words.items():
            kind["page"] = kind["page"].replace(word, stands_for)
    return {slug: Kind(**kind) for slug, kind in kinds.items()}


KINDS = _read_kinds()
"""All kinds of problems, by slug."""

logger = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"


class ErrorAt(Described):
    """An error in the request, and its place."""

    pointer: str | None = None
    """JSON pointer to the error in the request body."""
    parameter: str | None = None
    """Name of the query or path parameter with the error."""
    detail: str
    """What is wrong there."""


class Problem(Described):
    """A problem document (RFC 9457): why a request was not served."""

    type: str = Field(json_schema_extra={"enum": [f"/problems/{slug}" for slug in KINDS]})
    """Kind of problem: /problems/<slug>, a page of this service that explains it."""
    title: str
    """Kind of the problem, in words."""
    status: int
    """Status code of the answer."""
    detail: str
    """Explanation: what the request contained, and what was expected."""
    instance: str
    """Id of the request."""
    error: str | None = None
    """Copy of `detail` for paths below /v2, whose protocol expects it here."""
    errors: list[ErrorAt] | None = None
    """Each thing that is wrong, if they are several or have a place in the request."""
    limit: str | None = None
    """Name of the limit that was exceeded."""
    value: int | float | None = None
    """Value of that limit."""
    setting: str | None = None
    """Environment variable that sets the limit."""
    waiting_for: list[str] | None = None
    """Parts of a starting service that are not ready yet."""
    job: str | None = None
    """Link to the job that the problem concerns."""
    indexes: list[str] | None = None
    """Names of the indexes that prevent the request."""
    aliases: list[str] | None = None
    """Names of the aliases that prevent the request."""


class Refusal(Exception):
    """A refusal for reasons of HTTP alone, such as an unknown media type or too many requests.

    `slug` is the kind of problem, and `members` are further members of the problem document.
    """

    def __init__(self, slug: str, detail: str, **members: Any) -> None:
        super().__init__(detail)
        self.slug = slug
        self.members = members


def limit(name: str, value: float) -> dict[str, Any]:
    """Return the members of a problem document that name a limit and, if there is one, its environment variable."""
    setting = {"setting": Settings.variable(name)} if name in Settings.model_fields else {}
    return {"limit": name, "value": value, **setting}


def problem(request: Request, slug: str, detail: str, **members: Any) -> Response:
    """Return a response with a problem document to a request; `members` are passed to `problem_response`.

    Clients of the Open Inference Protocol read only JSON, and only its member `error`.
    """
    if f"{request.scope['path']}/".startswith("/v2/"):
        accepts = MEDIA_TYPE in request.headers.get("accept", "").lower()
        members |= {"error": detail, "media_type": MEDIA_TYPE if accepts else "application/json"}
    return problem_response(slug, detail, request.scope["state"]["request_id"], **members)


def problem_response(
    slug: str,
    detail: str,
    request_id: str,
    headers: Mapping[str, str] | None = None,
    status: int | None = None,
    media_type: str = MEDIA_TYPE,
    **members: Any,
) -> Response:
    """Return a response with a problem document. Its status is that of the kind of problem, unless `status` is given.

    Args:
        slug: kind of problem.
        detail: what the request contained, and what was expected.
        request_id: id of the refused request.
        headers: further headers of the response.
        status: status to use instead of that of the kind.
        media_type: media type of the response.
        members: further members of the document.
    """
    kind = KINDS[slug]
    status = status or kind.status
    members |= {"status": status, "detail": detail, "instance": request_id}
    document = Problem(type=f"/problems/{slug}", title=kind.title, **members)
    retry = {"Retry-After": "1"} if status in (429, 503) else {}
    body = hidden(document.model_dump_json(exclude_none=True))
    return Response(body, status, {**retry, **(headers or {})}, media_type)


METHODS = ("GET", "HEAD", "PUT", "POST", "PATCH", "DELETE")
"""Methods that calls may have."""


def _allowed_methods(request: Request) -> str:
    """Return all methods that an address accepts. The framework names only those of the first route with its path."""
    routes = request.app.router.routes
    return ", ".join(
        method
        for method in METHODS
        if any(route.matches({**request.scope, "method": method})[0] is Match.FULL for route in routes)
    )


def _invalid_parameter(request: Request, error: RequestValidationError) -> Response:
    found = [{"parameter": str(one["loc"][-1]), "detail": str(one["msg"])} for one in error.errors()]
    detail = "; ".join(f"{one['parameter']}: {one['detail']}" for one in found)
    return problem(request, "invalid-input", detail, errors=found)


def _http(request: Request, error: HTTPException) -> Response:
    slug = {404: "not-found", 405: "method-not-allowed"}.get(error.status_code, "bad-request")
    headers = {"Allow": _allowed_methods(request)} if error.status_code == 405 else error.headers
    return problem(request, slug, f"{request.method} {request.url.path}: {error.detail}", headers=headers)


def _handle_store_error(request: Request, error: Exception) -> Response:
    logger.error("request %s: %s", request.scope["state"]["request_id"], in_full(error))
    if isinstance(error, StoreDamaged):
        request.app.state.context.meters.damaged.inc()
        return problem(request, "store-damaged", f"{error}: DELETE it, then PUT it anew")
    return problem(request, "store-unavailable", str(error))


def _store_full(request: Request, error: StoreFull) -> Response:
    settings: Settings = request.app.state.context.settings
    if not error.limit and data_dir_of(settings.store_url) is not None:
        error = StoreFull(str(error), LIMIT, settings.min_free_bytes)
    return problem(request, "quota", str(error), **_limit(error))


def _handle_failure(request: Request, error: Exception) -> Response:
    request_id = request.scope["state"]["request_id"]
    logger.error("request %s failed", request_id, exc_info=error)
    # The framework calls this handler outside of the middleware that sets this header.
    headers = {"X-Request-ID": request_id}
    return problem(request, "internal-error", "the service failed; the log has the request id", headers=headers)


def _handle_no_memory(request: Request, error: MemoryError) -> Response:
    logger.error("request %s: not enough memory: %s", request.scope["state"]["request_id"], error)
    detail = "the service gets no more memory for this request"
    return problem(request, "overloaded", detail, headers={"Retry-After": "10"})


def _limit(error: TooLarge | TooManyJobs | QuotaExceeded | TooManyKeys | StoreFull) -> dict[str, Any]:
    return limit(error.limit, error.allowed) if error.limit else {}  # some limits of a store are its own


def _said(
    slug: str, members: Callable[[Any], dict[str, Any]] = lambda _: {}
) -> Callable[[Request, Exception], Response]:
    """Return a handler that repeats the text of an exception; `members` returns further members of the document."""
    return lambda request, error: problem(request, slug, str(error), **members(error))


def _places(error: InvalidInput) -> dict[str, Any]:
    places = (error.pointer, *error.others)
    return {"errors": [ErrorAt(pointer=pointer, detail=error.detail) for pointer in places]}


# Each has the name of its kind of problem: MapNotFound is map-not-found.
_NAMED = (
    *(errors.MapNotFound, errors.MapExists, errors.ArrayNotFound, errors.DatasetNotFound, errors.DatasetExists),
    *(errors.IndexNotFound, errors.IndexExists, errors.VectorNotFound, errors.AliasNotFound),
    *(JobNotFound, JobHasNoResult, JobHasEnded, NewerVersion),
)
HANDLERS: dict[Any, Any] = {
    InvalidInput: _said("invalid-input", _places),
    InvalidOption: _said(
        "invalid-input", lambda error: {"errors": [ErrorAt(parameter=error.option, detail=str(error))]}
    ),
    OutOfRange: _said("not-acceptable"),
    RequestValidationError: _invalid_parameter,
    Refusal: lambda request, error: problem(request, error.slug, str(error), **error.members),
    HTTPException: _http,
    # Answers a client that has disconnected. Otherwise the framework would log a failure for each of these clients.
    ClientDisconnect: _said("bad-request"),
    Exception: _handle_failure,
    MemoryError: _handle_no_memory,
    TooLarge: _said("too-large", _limit),
    TooManyJobs: _said("overloaded", lambda error: {"status": 429, "headers": {"Retry-After": "10"}, **_limit(error)}),
    QuotaExceeded: _said("quota", _limit),
    TooManyKeys: _said("quota", _limit),
    errors.MapNotReady: _said("map-not-ready", lambda error: {"job": link(error.job)}),
    errors.IndexNotReady: _said("index-not-ready", lambda error: {"job": link(error.job)}),
    errors.MapInUse: _said("map-in-use", lambda error: {"indexes": error.indexes, "aliases": error.aliases or None}),
    errors.IndexInUse: _said("index-in-use", lambda error: {"aliases": error.aliases}),
    NameHeld: lambda request, error: problem(request, f"{error.kind}-exists", str(error)),
    **{error: _said(re.sub("(?!^)(?=[A-Z])", "-", error.__name__).lower()) for error in _NAMED},
    StoreFull: _store_full,
    StoreUnavailable: _handle_store_error,
    StoreDamaged: _handle_store_error,
}
"""Handler of each exception, which answers with a problem document."""
