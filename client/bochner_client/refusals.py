"""An exception class for each kind of problem that the service reports."""

from collections.abc import Mapping
from typing import Any

from bochner_client.errors import Refused


class BadRequest(Refused):
    """The request cannot be parsed, or it is unclear where it ends (400)."""

    slugs = ("bad-request",)


class Unauthorized(Refused):
    """A key is needed, and the request had no valid one (401)."""

    slugs = ("unauthorized",)


class Forbidden(Refused):
    """The role of the key does not allow the call (403)."""

    slugs = ("forbidden",)


class NotFound(Refused):
    """The requested thing does not exist (404)."""

    slugs = ("not-found",)


class MapNotFound(NotFound):
    """There is no map with the name."""

    slugs = ("map-not-found",)


class DatasetNotFound(NotFound):
    """There is no dataset with the name, or it has expired."""

    slugs = ("dataset-not-found",)


class IndexNotFound(NotFound):
    """There is no index with the name, or it has expired."""

    slugs = ("index-not-found",)


class AliasNotFound(NotFound):
    """There is no alias with the name."""

    slugs = ("alias-not-found",)


class VectorNotFound(NotFound):
    """The index has no vector with the id."""

    slugs = ("vector-not-found",)


class ArrayNotFound(NotFound):
    """The map has no such array."""

    slugs = ("array-not-found",)


class JobNotFound(NotFound):
    """There is no job with the id, or it ended long ago."""

    slugs = ("job-not-found",)


class KeyNotFound(NotFound):
    """There is no key with the id."""

    slugs = ("key-not-found",)


class MethodNotAllowed(Refused):
    """The address does not support the method (405)."""

    slugs = ("method-not-allowed",)


class NotAcceptable(Refused):
    """The answer cannot be written in the requested form, such as in a dtype that is too narrow (406)."""

    slugs = ("not-acceptable",)


class RequestTimeout(Refused):
    """The request did not arrive in time (408)."""

    slugs = ("request-timeout",)


class Conflict(Refused):
    """The request conflicts with what exists (409)."""


class MapExists(Conflict):
    """Another map has the name already."""

    slugs = ("map-exists",)


class DatasetExists(Conflict):
    """Another dataset has the name already."""

    slugs = ("dataset-exists",)


class IndexExists(Conflict):
    """Another index has the name already."""

    slugs = ("index-exists",)


class MapInUse(Conflict):
    """Indexes or aliases use the map."""

    slugs = ("map-in-use",)

    @property
    def indexes(self) -> list[str]:
        """Names of the indexes that use the map."""
        return list(self.document.get("indexes", ()))

    @property
    def aliases(self) -> list[str]:
        """Names of the aliases that stand for the map."""
        return list(self.document.get("aliases", ()))


class IndexInUse(Conflict):
    """Aliases stand for the index."""

    slugs = ("index-in-use",)

    @property
    def aliases(self) -> list[str]:
        """Names of these aliases."""
        return list(self.document.get("aliases", ()))


class NotReady(Conflict):
    """A job is still making the requested thing, or has failed to make it."""

    @property
    def job(self) -> str | None:
        """Link of the job."""
        return self.document.get("job")


class MapNotReady(NotReady):
    """A job is still building the map, or has failed to."""

    slugs = ("map-not-ready",)


class IndexNotReady(NotReady):
    """A job is still finding bands for the index, or has failed to."""

    slugs = ("index-not-ready",)


class JobHasNoResult(Conflict):
    """The job has not ended, has failed, or was cancelled."""

    slugs = ("job-has-no-result",)


class JobHasEnded(Conflict):
    """The job cannot be cancelled any more."""

    slugs = ("job-has-ended",)


class PreconditionFailed(Refused):
    """The existing thing has another digest than the one given, or exists although it must not (412)."""

    slugs = ("precondition-failed",)


class TooLarge(Refused):
    """The request exceeds a limit, which `limit`, `value` and `setting` describe (413, 414 and 431)."""

    slugs = ("too-large", "uri-too-long", "head-too-large")


class UnsupportedMediaType(Refused):
    """The service does not read this format at this address (415)."""

    slugs = ("unsupported-media-type",)


class Misdirected(Refused):
    """The service does not answer to the host name in the address (421)."""

    slugs = ("misdirected",)


class InvalidInput(Refused, ValueError):
    """The request is not valid; `errors` has each of the errors (422)."""

    slugs = ("invalid-input",)


class Unavailable(Refused):
    """The service cannot answer now, but may be able to later (429, 502, 503 and 504)."""


class Overloaded(Unavailable):
    """The service has too much to do, or the key has sent too many requests."""

    slugs = ("overloaded",)


class ShuttingDown(Unavailable):
    """The service is shutting down; another process, or the next one, can serve the request."""

    slugs = ("shutting-down",)


class Starting(Unavailable):
    """The service is starting and is not ready yet."""

    slugs = ("starting",)


class StoreUnavailable(Unavailable):
    """The store of the service is not available now."""

    slugs = ("store-unavailable",)


class StoreDamaged(Refused):
    """The store returned other data than was stored: delete the map, dataset or index, then create it again (503)."""

    slugs = ("store-damaged",)


class NewerVersion(Refused):
    """The requested thing was made by a newer version of the service than the one that answers (503)."""

    slugs = ("newer-version",)


class QuotaExceeded(Refused):
    """There is no room in the store; `limit`, `value` and `setting` describe the limit (507)."""

    slugs = ("quota",)


class InternalError(Refused):
    """The service failed because of a defect in it (500)."""

    slugs = ("internal-error",)


def _below(parent: type[Refused]) -> list[type[Refused]]:
    return [parent, *(one for child in parent.__subclasses__() for one in _below(child))]


_BY_SLUG = {slug: one for one in _below(Refused) for slug in one.slugs}
# For answers without a problem document, or with one of a kind that is newer than this client.
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
    """Return the exception for a refusal, by its kind of problem, or else by its status."""
    slug = str(document.get("type", "")).rpartition("/")[2]
    kind = _BY_SLUG.get(slug) or _BY_STATUS.get(status, Refused)
    return kind(status, document, retry_after)
