"""Problem documents (RFC 9457): what a client is told of each refusal, and the page that explains each kind."""

import logging
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match

from app.core.errors import InvalidInput, InvalidOption, OutOfRange, TooLarge
from app.formats import FORMATS
from app.formats.parquet import Parquet
from app.jobs.record import JobHasEnded, JobHasNoResult, JobNotFound, TooManyJobs, link
from app.services import errors
from app.settings import Settings
from app.store.disk import LIMIT, data_dir_of
from app.store.errors import NewerVersion, QuotaExceeded, StoreDamaged, StoreFull, StoreUnavailable, in_full
from app.store.keys import TooManyKeys, hidden


class Kind(NamedTuple):
    """One kind of problem."""

    status: int
    title: str
    page: str


KINDS = {
    "invalid-input": Kind(
        422,
        "The request is not valid",
        "The body, a parameter or a combination of them cannot be served. `detail` says what came and what was wanted; "
        "`errors` points at each place. Nothing was changed. Mend the request before sending it again.",
    ),
    "map-not-found": Kind(
        404, "There is no such map", "No map has this name: create it with PUT, or look at the list."
    ),
    "dataset-not-found": Kind(
        404,
        "There is no such dataset",
        "No dataset has this name, or the one that had it has expired: create it with PUT, or look at the list.",
    ),
    "array-not-found": Kind(
        404,
        "The map has no such array",
        "Offsets exist for the form `phase` only, a signature with negative weights, signs and radii with sampler "
        "`structured_orthogonal`; kernel `gmm` has no frequencies.",
    ),
    "map-exists": Kind(
        409,
        "Another map has the name",
        "Maps never change. Delete the one that is there, or give the new one another name. "
        "Putting the same spec again is no conflict.",
    ),
    "dataset-exists": Kind(
        409,
        "Another dataset has the name",
        "Datasets never change. Delete the one that is there, or give the new one another name. Putting the same rows "
        "again is no conflict; they then live as long as the last request says.",
    ),
    "map-not-ready": Kind(
        409,
        "The map is not ready",
        "A job still builds it, or has failed to. `job` is the link of that job. Wait for it; a map that failed is "
        "tried again by putting its spec again, and removed with DELETE.",
    ),
    "map-in-use": Kind(
        409,
        "Indexes are over the map",
        "The codes of these indexes are of the map: `indexes` names them. Delete them first, or leave the map: it does "
        "not expire meanwhile.",
    ),
    "index-not-found": Kind(
        404,
        "There is no such index",
        "No index has this name, or the one that had it has expired: create it with PUT, or look at the list.",
    ),
    "index-exists": Kind(
        409,
        "Another index has the name",
        "It is over another map, or is searched otherwise, or keeps something else. Delete the one that is there, or "
        "give the new one another name. Putting the same index again is no conflict.",
    ),
    "index-not-ready": Kind(
        409,
        "The index is not ready",
        "A job still finds bands for its target, or has failed to. `job` is the link of that job. Wait for it; an "
        "index that failed is tried again by putting it again, and removed with DELETE.",
    ),
    "vector-not-found": Kind(
        404,
        "The index has no such vector",
        "No vector of the index has this id. Whole numbers and strings are different ids: `kind` says which is meant.",
    ),
    "job-not-found": Kind(
        404, "There is no such job", "No job has this id, or it ended more than BOCHNER_JOB_TTL seconds ago."
    ),
    "job-has-no-result": Kind(
        409,
        "The job has no result to fetch",
        "It has not ended yet, has failed or was cancelled; or what it made is at the `result` link of its record.",
    ),
    "job-has-ended": Kind(409, "The job has ended", "It cannot be cancelled any more. Its record goes by itself."),
    "precondition-failed": Kind(
        412,
        "What is there is not what the request means",
        "`If-Match` names no ETag of what is there, or `If-None-Match` names one. Nothing was changed. Look at what is "
        "there, and decide anew.",
    ),
    "too-large": Kind(
        413,
        "The request passes a limit",
        "`limit` names the limit, `value` is its value, `setting` the environment variable that moves it. "
        "Send fewer rows at a time; `.npy` is shorter than JSON, and whole numbers of 8 bits shorter than float32.",
    ),
    "quota": Kind(
        507,
        "There is no room in the store",
        "`limit` names the limit, `value` is its value, `setting` the environment variable that moves it; a limit "
        "whose name begins with `key_` is that of an API key and has no setting. /v1/info says how much is kept. "
        "Delete maps or datasets, which makes room at once, or wait: ended jobs go after BOCHNER_JOB_TTL seconds. With "
        "limit `min_free_bytes` it is the disk of the private store that is full. What is stored is served as ever.",
    ),
    "unsupported-media-type": Kind(
        415,
        "The Content-Type is not one this endpoint reads",
        f"Vectors come as {' or '.join(FORMATS)}, "
        f"those of datasets also as {Parquet.media_type}; specs as application/json; "
        "either may be packed once, as `Content-Encoding: gzip`, `deflate` or `zstd`.",
    ),
    "not-acceptable": Kind(
        406,
        "No format in Accept can be written",
        f"Arrays are answered as {' or '.join(FORMATS)}; .npy also in a narrower dtype that Accept names, such as in "
        "`application/x-npy; dtype=float16`, if no number is too large for it.",
    ),
    "not-found": Kind(404, "There is nothing at this address", "See /docs for the addresses of this service."),
    "method-not-allowed": Kind(405, "The address does not take this method", "`Allow` lists the methods it takes."),
    "request-timeout": Kind(
        408,
        "The request did not arrive in time",
        "Its head took longer than BOCHNER_HEAD_TIMEOUT, its body longer than BOCHNER_BODY_TIMEOUT, or the client "
        "paused for BOCHNER_CLIENT_TIMEOUT or sent fewer bytes a second than BOCHNER_MIN_BODY_RATE. `limit` names "
        "which.",
    ),
    "uri-too-long": Kind(
        414,
        "The address is too long",
        "It alone is longer than BOCHNER_MAX_HEAD_BYTES. No address of this service needs to be.",
    ),
    "head-too-large": Kind(
        431,
        "The head of the request is too large",
        "Its address and its header fields are longer than BOCHNER_MAX_HEAD_BYTES.",
    ),
    "bad-request": Kind(
        400,
        "The request cannot be understood",
        "It breaks the rules of HTTP itself, or leaves in doubt where its body ends. `detail` says how.",
    ),
    "unauthorized": Kind(
        401,
        "A key is needed",
        "The service, or what was asked of it, needs a key. None came, or one that is not valid here: never was, or "
        "was revoked. Send it as `Authorization: Bearer KEY`, once. A browser may give it as the password of any name, "
        "to look at something. An operator makes a key with `bochner keys create`, an administrator with "
        "`POST /v1/keys`.",
    ),
    "forbidden": Kind(
        403,
        "The key does not suffice",
        "The role of the key does not include this call: `metrics` sees metrics, `read` changes nothing and "
        "cancels its own jobs, `write` makes and deletes maps and datasets and cancels jobs, `admin` makes and revokes "
        "keys too.",
    ),
    "misdirected": Kind(
        421,
        "The service does not go by this name",
        "The header `Host` has a name that is not one of the service, as where a page of another site has its own name "
        "lead here. BOCHNER_ALLOWED_HOSTS lists the names.",
    ),
    "key-not-found": Kind(404, "There is no such key", "No key has this id, or it was revoked: look at the list."),
    "overloaded": Kind(
        503,
        "The service has enough to do",
        "BOCHNER_MAX_REQUESTS requests are in work or waiting, BOCHNER_MAX_BUILDS maps are being built or wait to be, "
        "BOCHNER_MAX_LISTENERS clients watch jobs, their bodies take BOCHNER_MAX_BODIES_BYTES, or all of "
        "BOCHNER_MAX_CONNECTIONS are at work; or, with status 429, BOCHNER_MAX_QUEUED_JOBS jobs wait, or the key has "
        "asked more often than its rate (`key_rate`) allows. `limit` names which. Send the request again after "
        "`Retry-After` seconds.",
    ),
    "shutting-down": Kind(
        503,
        "The service is being stopped",
        "The answer was not ready BOCHNER_SHUTDOWN_TIMEOUT seconds after the service was told to end. Send the request "
        "again: another process, or the next one, serves it.",
    ),
    "starting": Kind(
        503,
        "The service is starting",
        "Loops that requests need are being compiled, or loaded: `waiting_for` names them. It is answered by "
        "`/health/ready` alone: other requests are served, and may wait. Ask again after `Retry-After` seconds.",
    ),
    "store-unavailable": Kind(
        503,
        "The store does not do its part",
        "The service keeps maps and datasets in a Redis-compatible store, which does not answer, refuses to write, or "
        "cannot be trusted to keep what it gets. `detail` says which. Nothing is lost; try again after `Retry-After` "
        "seconds.",
    ),
    "store-damaged": Kind(
        503,
        "The store gives back something else than was kept",
        "`detail` names the map, dataset or index that is damaged; all else is served as ever. DELETE it, then PUT it "
        "anew; a map that indexes are over, with them. `bochner check` finds everything that is damaged.",
    ),
    "newer-version": Kind(
        503,
        "It was made by a newer version",
        "A map, dataset or job was stored in a format, or hashes with a parameter stream, that this version of the "
        "service does not know; `detail` names both versions. Nothing is damaged: the version that made it can use it, "
        "and everything else is used as ever.",
    ),
    "internal-error": Kind(500, "The service failed", "This is a defect of the service. The log has the request id."),
}


logger = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"


class ErrorAt(BaseModel):
    """One thing that is wrong."""

    pointer: str | None = Field(None, description="JSON pointer into the body.")
    parameter: str | None = Field(None, description="Name of a query or path parameter.")
    detail: str


class Problem(BaseModel):
    """A problem document."""

    type: str = Field(
        description="/problems/<slug>, a page of this service.",
        json_schema_extra={"enum": [f"/problems/{slug}" for slug in KINDS]},
    )
    title: str
    status: int
    detail: str = Field(description="What came, and what was wanted.")
    instance: str = Field(description="The request id.")
    error: str | None = Field(None, description="Below /v2, `detail` for the clients of that protocol.")
    errors: list[ErrorAt] | None = None
    limit: str | None = Field(None, description="Name of the limit that was passed.")
    value: int | float | None = Field(None, description="Value of that limit.")
    setting: str | None = Field(None, description="Environment variable that moves it.")
    waiting_for: list[str] | None = Field(None, description="What a service that starts does not have ready yet.")
    job: str | None = Field(None, description="Link of the job that the refusal is about.")
    indexes: list[str] | None = Field(None, description="Names of the indexes that are in the way.")


class Refusal(Exception):
    """A refusal that has to do with HTTP alone: of a media type, or because of too many requests.

    `slug` is its kind of problem, and `members` are more of the problem document.
    """

    def __init__(self, slug: str, detail: str, **members: Any) -> None:
        super().__init__(detail)
        self.slug = slug
        self.members = members


def limit(name: str, value: float) -> dict[str, Any]:
    """The members of a problem document that name a limit, and the setting that moves it, if one does."""
    setting = {"setting": Settings.variable(name)} if name in Settings.model_fields else {}
    return {"limit": name, "value": value, **setting}


def problem(request: Request, slug: str, detail: str, **members: Any) -> Response:
    """A response with a problem document to a request; `members` are those of `problem_response`.

    Clients of the Open Inference Protocol read JSON alone, and of that the member `error`.
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
    """A response with a problem document. Its status is that of the kind of problem, unless another is given.

    Args:
        slug: the kind of problem.
        detail: what came, and what was wanted.
        request_id: of the request that is refused.
        headers: further ones of the response.
        status: in the place of that of the kind.
        media_type: of the response.
        members: further ones of the document.
    """
    kind = KINDS[slug]
    status = status or kind.status
    members |= {"status": status, "detail": detail, "instance": request_id}
    document = Problem(type=f"/problems/{slug}", title=kind.title, **members)
    retry = {"Retry-After": "1"} if status in (429, 503) else {}
    body = hidden(document.model_dump_json(exclude_none=True))
    return Response(body, status, {**retry, **(headers or {})}, media_type)


def _allowed_methods(request: Request) -> str:
    """Every method that an address takes. The framework names only those of the first route with its path."""
    routes = request.app.router.routes
    return ", ".join(
        method
        for method in ("GET", "HEAD", "PUT", "POST", "DELETE")
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


def _limit(error: TooLarge | TooManyJobs | QuotaExceeded | TooManyKeys | StoreFull) -> dict[str, Any]:
    return limit(error.limit, error.allowed) if error.limit else {}  # a store may have limits of its own


def _said(
    slug: str, members: Callable[[Any], dict[str, Any]] = lambda _: {}
) -> Callable[[Request, Exception], Response]:
    """A handler that repeats what an exception says; `members` gives more of the problem document."""
    return lambda request, error: problem(request, slug, str(error), **members(error))


HANDLERS: dict[Any, Any] = {
    InvalidInput: _said("invalid-input", lambda error: {"errors": [ErrorAt(pointer=error.pointer, detail=str(error))]}),
    InvalidOption: _said(
        "invalid-input", lambda error: {"errors": [ErrorAt(parameter=error.option, detail=str(error))]}
    ),
    OutOfRange: _said("not-acceptable"),
    RequestValidationError: _invalid_parameter,
    Refusal: lambda request, error: problem(request, error.slug, str(error), **error.members),
    HTTPException: _http,
    # An answer that nobody reads. Without it the framework would log a failure for each client that leaves.
    ClientDisconnect: _said("bad-request"),
    Exception: _handle_failure,
    TooLarge: _said("too-large", _limit),
    TooManyJobs: _said("overloaded", lambda error: {"status": 429, "headers": {"Retry-After": "10"}, **_limit(error)}),
    QuotaExceeded: _said("quota", _limit),
    TooManyKeys: _said("quota", _limit),
    errors.MapNotFound: _said("map-not-found"),
    errors.ArrayNotFound: _said("array-not-found"),
    errors.MapExists: _said("map-exists"),
    errors.MapNotReady: _said("map-not-ready", lambda error: {"job": link(error.job)}),
    errors.IndexNotReady: _said("index-not-ready", lambda error: {"job": link(error.job)}),
    errors.MapInUse: _said("map-in-use", lambda error: {"indexes": [*error.indexes]}),
    errors.DatasetNotFound: _said("dataset-not-found"),
    errors.DatasetExists: _said("dataset-exists"),
    errors.IndexNotFound: _said("index-not-found"),
    errors.IndexExists: _said("index-exists"),
    errors.VectorNotFound: _said("vector-not-found"),
    JobNotFound: _said("job-not-found"),
    JobHasNoResult: _said("job-has-no-result"),
    JobHasEnded: _said("job-has-ended"),
    NewerVersion: _said("newer-version"),
    StoreFull: _store_full,
    StoreUnavailable: _handle_store_error,
    StoreDamaged: _handle_store_error,
}
"""What answers each exception with its problem document."""
