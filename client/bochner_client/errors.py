"""What goes wrong, as exceptions. What the service refuses has a class for each kind of problem in `refusals`."""

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


class JobFailed(BochnerError):
    """A job ended without a result: it failed or was cancelled. `record` is its record."""

    def __init__(self, record: Any) -> None:
        super().__init__(record)
        self.record = record

    def __str__(self) -> str:
        error = self.record.error
        return f"job {self.record.id} {self.record.state}" + (f": {error.detail}" if error else "")
