"""What goes wrong, as exceptions. Each kind of problem that the service tells of has a class of its own."""

from collections.abc import Mapping
from typing import Any, ClassVar


class BochnerError(Exception):
    """Something did not happen that was asked for; the message is one sentence for a person."""


class BochnerWarning(UserWarning):
    """Something is doubtful about an answer, such as that a map's dtype is too coarse for the rows."""


class ServiceAway(BochnerError):
    """The service did not answer, or its answer broke off.

    `unsent` tells whether the request cannot have reached it.
    """

    def __init__(self, message: str, unsent: bool = False) -> None:
        super().__init__(message, unsent)
        self.unsent = unsent

    def __str__(self) -> str:
        return str(self.args[0])


class InvalidAnswer(BochnerError):
    """What answered is no service of this kind, or of a version that this client cannot read."""


class NotModified(BochnerError):
    """The map still has the digest that was named (`if_none_match`)."""


class Refused(BochnerError):
    """The service refused a request, and said why in a problem document (RFC 9457)."""

    slugs: ClassVar[tuple[str, ...]] = ()
    """The last part of `type` in the problem documents that are raised as this class."""

    def __init__(self, status: int, document: Mapping[str, Any], retry_after: float | None = None) -> None:
        super().__init__(status, document, retry_after)
        self.status = status
        """Status of HTTP."""
        self.document = dict(document)
        """The whole problem document; {} if what refused wrote none, as a proxy may."""
        self.retry_after = retry_after
        """Seconds after which the service takes the request again, where it says so."""

    def __str__(self) -> str:
        return f"{self.status}: {self.detail}"

    @property
    def slug(self) -> str:
        """The kind of problem, such as `map-not-found`; "" if there is no document."""
        return str(self.document.get("type", "")).rpartition("/")[2]

    @property
    def title(self) -> str:
        """What happened, in a few words."""
        return str(self.document.get("title", ""))

    @property
    def detail(self) -> str:
        """What came, and what was wanted."""
        return str(self.document.get("detail") or self.title or "the request was refused")

    @property
    def instance(self) -> str | None:
        """The id of the request, which the log of the service has too."""
        return self.document.get("instance")

    @property
    def errors(self) -> list[dict[str, Any]]:
        """Each thing that is wrong: `detail`, and `pointer` into the body or the name of a `parameter`."""
        return list(self.document.get("errors") or [])

    @property
    def limit(self) -> str | None:
        """Name of the limit that was passed."""
        return self.document.get("limit")

    @property
    def value(self) -> float | None:
        """Value of that limit."""
        return self.document.get("value")

    @property
    def setting(self) -> str | None:
        """Environment variable of the service that moves it."""
        return self.document.get("setting")


class BadRequest(Refused):
    """The request cannot be understood, or leaves in doubt where it ends (400)."""

    slugs = ("bad-request",)


class Unauthorized(Refused):
    """A key is needed, and none that is valid came (401)."""

    slugs = ("unauthorized",)


class Forbidden(Refused):
    """The role of the key does not include the call (403)."""

    slugs = ("forbidden",)


class NotFound(Refused):
    """What was asked for is not there (404)."""

    slugs = ("not-found",)


class MapNotFound(NotFound):
    """No map has the name."""

    slugs = ("map-not-found",)


class DatasetNotFound(NotFound):
    """No dataset has the name, or it has expired."""

    slugs = ("dataset-not-found",)


class ArrayNotFound(NotFound):
    """The map has no such array."""

    slugs = ("array-not-found",)


class JobNotFound(NotFound):
    """No job has the id, or it ended long ago."""

    slugs = ("job-not-found",)


class KeyNotFound(NotFound):
    """No key has the id."""

    slugs = ("key-not-found",)


class MethodNotAllowed(Refused):
    """The address does not take the method (405)."""

    slugs = ("method-not-allowed",)


class NotAcceptable(Refused):
    """The answer cannot be written as asked, such as in a dtype that is too narrow (406)."""

    slugs = ("not-acceptable",)


class RequestTimeout(Refused):
    """The request did not arrive in time (408)."""

    slugs = ("request-timeout",)


class Conflict(Refused):
    """What is there stands against it (409)."""


class MapExists(Conflict):
    """Another map has the name."""

    slugs = ("map-exists",)


class DatasetExists(Conflict):
    """Another dataset has the name."""

    slugs = ("dataset-exists",)


class MapNotReady(Conflict):
    """A job still builds the map, or has failed to."""

    slugs = ("map-not-ready",)

    @property
    def job(self) -> str | None:
        """Link of that job."""
        return self.document.get("job")


class JobHasNoResult(Conflict):
    """The job has not ended, has failed, or was cancelled."""

    slugs = ("job-has-no-result",)


class JobHasEnded(Conflict):
    """The job cannot be cancelled any more."""

    slugs = ("job-has-ended",)


class PreconditionFailed(Refused):
    """What is there is not what the request means: it has another digest than the one named, or is there (412)."""

    slugs = ("precondition-failed",)


class RangeNotSatisfiable(Refused):
    """The part that is asked for begins behind the end of the answer (416)."""

    slugs = ("range-not-satisfiable",)


class TooLarge(Refused):
    """The request passes a limit, which `limit`, `value` and `setting` name (413, 414 and 431)."""

    slugs = ("too-large", "uri-too-long", "head-too-large")


class UnsupportedMediaType(Refused):
    """The service does not read the format at this address (415)."""

    slugs = ("unsupported-media-type",)


class Misdirected(Refused):
    """The service does not go by the name in the address (421)."""

    slugs = ("misdirected",)


class InvalidInput(Refused, ValueError):
    """The request is not valid; `errors` points at each place (422)."""

    slugs = ("invalid-input",)


class Unavailable(Refused):
    """The service cannot answer now, and may a moment later (429, 502, 503 and 504)."""


class Overloaded(Unavailable):
    """The service has enough to do, or the key has asked too often."""

    slugs = ("overloaded",)


class ShuttingDown(Unavailable):
    """The service is being stopped; another process, or the next one, serves the request."""

    slugs = ("shutting-down",)


class StoreUnavailable(Unavailable):
    """The store behind the service does not do its part now."""

    slugs = ("store-unavailable",)


class StoreDamaged(Refused):
    """The store gives back something else than was kept: an operator must look at it (503)."""

    slugs = ("store-damaged",)


class NewerVersion(Refused):
    """It was made by a newer version of the service than the one that answers (503)."""

    slugs = ("newer-version",)


class QuotaExceeded(Refused):
    """There is no room in the store, which `limit`, `value` and `setting` tell of (507)."""

    slugs = ("quota",)


class InternalError(Refused):
    """The service failed: a defect of it (500)."""

    slugs = ("internal-error",)


class JobFailed(BochnerError):
    """A job ended without a result: it failed or was cancelled. `record` is its record."""

    def __init__(self, record: Any) -> None:
        super().__init__(record)
        self.record = record

    def __str__(self) -> str:
        error = self.record.error
        return f"job {self.record.id} {self.record.state}" + (f": {error.detail}" if error else "")


def _below(parent: type[Refused]) -> list[type[Refused]]:
    return [parent, *(one for child in parent.__subclasses__() for one in _below(child))]


_BY_SLUG = {slug: one for one in _below(Refused) for slug in one.slugs}
# Of what has no document, or one of a kind that is newer than this client.
_BY_STATUS: dict[int, type[Refused]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: MethodNotAllowed,
    406: NotAcceptable,
    408: RequestTimeout,
    409: Conflict,
    412: PreconditionFailed,
    413: TooLarge,
    414: TooLarge,
    415: UnsupportedMediaType,
    416: RangeNotSatisfiable,
    421: Misdirected,
    422: InvalidInput,
    429: Unavailable,
    431: TooLarge,
    500: InternalError,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
    507: QuotaExceeded,
}


def refusal(status: int, document: Mapping[str, Any], retry_after: float | None = None) -> Refused:
    """The exception of a refusal: that of its kind of problem, else that of its status."""
    slug = str(document.get("type", "")).rpartition("/")[2]
    kind = _BY_SLUG.get(slug) or _BY_STATUS.get(status, Refused)
    return kind(status, document, retry_after)
