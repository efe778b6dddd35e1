"""Exceptions of the client. `refusals` has a class for each kind of problem that the service reports."""

from collections.abc import Mapping
from typing import Any, ClassVar


class BochnerError(Exception):
    """Base class of the client's exceptions; the message is one sentence for people."""


class BochnerWarning(UserWarning):
    """A warning about an answer, such as that a map's dtype is too coarse for the rows."""


class ServiceAway(BochnerError):
    """The service did not answer, or its answer was interrupted.

    Attributes:
        unsent: whether it is certain that the request did not reach the service.
    """

    def __init__(self, message: str, unsent: bool = False) -> None:
        super().__init__(message, unsent)
        self.unsent = unsent

    def __str__(self) -> str:
        return str(self.args[0])


class InvalidAnswer(BochnerError):
    """The answer is not one of this service, or of a version that this client cannot read."""


class NotModified(BochnerError):
    """The map or dataset still has the digest passed as `if_none_match`."""


class Refused(BochnerError):
    """The service refused a request; a problem document (RFC 9457) says why."""

    slugs: ClassVar[tuple[str, ...]] = ()
    """Last parts of the `type` of the problem documents that are raised as this class."""

    def __init__(self, status: int, document: Mapping[str, Any], retry_after: float | None = None) -> None:
        super().__init__(status, document, retry_after)
        self.status = status
        """HTTP status."""
        self.document = dict(document)
        """The whole problem document; only `title` and `detail` if the answer, such as that of a proxy, has no problem
        document.
        """
        self.retry_after = retry_after
        """Seconds to wait before sending the request again; None if the service does not say."""

    def __str__(self) -> str:
        return f"{self.status}: {self.detail}"

    @property
    def slug(self) -> str:
        """Kind of problem, such as `map-not-found`; "" if there is no problem document."""
        return str(self.document.get("type", "")).rpartition("/")[2]

    @property
    def title(self) -> str:
        """Short description of the problem."""
        return str(self.document.get("title", ""))

    @property
    def detail(self) -> str:
        """Description of what was received and what was expected."""
        return str(self.document.get("detail") or self.title or "the request was refused")

    @property
    def instance(self) -> str | None:
        """Id of the request, which the log of the service contains too."""
        return self.document.get("instance")

    @property
    def errors(self) -> list[dict[str, Any]]:
        """Errors in the request: each has a `detail`, and a `pointer` into the body or the name of a `parameter`."""
        return list(self.document.get("errors") or [])

    @property
    def limit(self) -> str | None:
        """Name of the limit that was exceeded."""
        return self.document.get("limit")

    @property
    def value(self) -> float | None:
        """Value of the limit that was exceeded."""
        return self.document.get("value")

    @property
    def setting(self) -> str | None:
        """Environment variable of the service that sets the limit."""
        return self.document.get("setting")


class JobFailed(BochnerError):
    """A job ended without a result: it failed or was cancelled.

    Attributes:
        record: record of the job.
    """

    def __init__(self, record: Any) -> None:
        super().__init__(record)
        self.record = record

    def __str__(self) -> str:
        error = self.record.error
        return f"job {self.record.id} {self.record.state}" + (f": {error.detail}" if error else "")
