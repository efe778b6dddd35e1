"""Each kind of problem that the service tells of, as an exception of its own."""

from collections.abc import Mapping
from typing import Any

from bochner_client.errors import Refused


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


class IndexNotFound(NotFound):
    """No index has the name, or it has expired."""

    slugs = ("index-not-found",)


class VectorNotFound(NotFound):
    """The index has no vector of the id."""

    slugs = ("vector-not-found",)


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


class IndexExists(Conflict):
    """Another index has the name."""

    slugs = ("index-exists",)


class MapInUse(Conflict):
    """Indexes are over the map."""

    slugs = ("map-in-use",)

    @property
    def indexes(self) -> list[str]:
        """Names of these indexes."""
        return list(self.document.get("indexes", ()))


class NotReady(Conflict):
    """A job still makes it, or has failed to."""

    @property
    def job(self) -> str | None:
        """Link of that job."""
        return self.document.get("job")


class MapNotReady(NotReady):
    """A job still builds the map, or has failed to."""

    slugs = ("map-not-ready",)


class IndexNotReady(NotReady):
    """A job still finds bands for the index, or has failed to."""

    slugs = ("index-not-ready",)


class JobHasNoResult(Conflict):
    """The job has not ended, has failed, or was cancelled."""

    slugs = ("job-has-no-result",)


class JobHasEnded(Conflict):
    """The job cannot be cancelled any more."""

    slugs = ("job-has-ended",)


class PreconditionFailed(Refused):
    """What is there is not what the request means: it has another digest than the one named, or is there (412)."""

    slugs = ("precondition-failed",)


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


class Starting(Unavailable):
    """The service is starting, and is not ready yet."""

    slugs = ("starting",)


class StoreUnavailable(Unavailable):
    """The store behind the service does not do its part now."""

    slugs = ("store-unavailable",)


class StoreDamaged(Refused):
    """The store gives back something else than was kept: delete it, then put it anew (503)."""

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
