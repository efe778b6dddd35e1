"""Errors between the service and its store, independent of HTTP."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import redis
from redis.exceptions import RedisClusterException

logger = logging.getLogger(__name__)


class StoreUnavailable(Exception):
    """The store does not answer, or refuses a call; trying again later may help.

    The message is for clients, so it does not say where the store is. `in_full` returns the full error, for the log.
    """


class StoreFull(StoreUnavailable):
    """The store accepts no writes, but still answers reads.

    If a setting keeps the room free that is missing, `limit` is its name and `allowed` its value; else `limit` is "".
    """

    def __init__(self, detail: str, limit: str = "", allowed: int = 0) -> None:
        super().__init__(detail)
        self.limit, self.allowed = limit, allowed


class StoreOutdated(StoreUnavailable):
    """A server of the store is older than the service needs."""


class StoreReadOnly(StoreUnavailable):
    """The store is a replica: it answers reads, and accepts no writes."""


class StoreDamaged(Exception):
    """The store returned something that this service did not write or cannot read."""


class Gone(Exception):
    """The thing being read was deleted, or has expired, since it was found."""


class NameHeld(Exception):
    """A name is taken by another thing. `kind` is the kind of things among which it is."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind


class IsAlias(NameHeld):
    """A name is an alias of the map or index `target`."""

    def __init__(self, kind: str, name: str, target: str) -> None:
        detail = f"{name!r} is an alias of {kind} {target!r}; DELETE /v1/aliases/{name}, or take another name"
        super().__init__(kind, detail)
        self.target = target


class QuotaExceeded(Exception):
    """A quota leaves no room for what was to be stored.

    Args:
        limit: name of the limit: a setting, `key_bytes` or `key_names` for those of the API key, or `owner_bytes` for
            that of the key to which an index belongs.
        allowed: value of the limit.
        there: bytes or names that are stored already.
        wanted: bytes or names that were to be added.
    """

    def __init__(self, limit: str, allowed: int, there: int, wanted: int) -> None:
        unit = "names" if limit.endswith("names") else "bytes"
        super().__init__(f"{wanted} {unit} more were to be kept beside {there}; {limit} is {allowed}")
        self.limit, self.allowed = limit, allowed


class NewerVersion(Exception):
    """Something was stored by a newer version of the service, in a format that this version does not know.

    Args:
        what: kind and name of the stored thing: "map 'letters'".
        made: what has a newer version, and that version: "parameter stream 3".
        known: newest version of it that is known here.
    """

    def __init__(self, what: str, made: str, known: int) -> None:
        super().__init__(f"{what} was made by a newer version of the service, with {made}; this version knows {known}")


class NotConfirmed(redis.ResponseError):
    """A call was answered, but too few replicas have acknowledged the write in time."""

    def __init__(self, had: int, wanted: int, milliseconds: int) -> None:
        super().__init__(f"{had} of {wanted} replicas have confirmed the write within {milliseconds} ms")
        self.had, self.wanted = had, wanted


@contextmanager
def store_errors() -> Iterator[None]:
    """Turn every error of the client library into StoreUnavailable."""
    try:
        yield
    except (redis.RedisError, RedisClusterException) as error:
        raise _unavailable(error) from error


@contextmanager
def left_out() -> Iterator[None]:
    """Leave out of a list what is damaged, or of a newer version, with a line in the log: the rest is still listed."""
    try:
        yield
    except (StoreDamaged, NewerVersion) as error:
        logger.error("left out of the list: %s", error)


def in_full(error: Exception) -> str:
    """Return an error's message together with the store's own message, for the log."""
    return f"{error} ({error.__cause__})" if error.__cause__ else str(error)


# Error prefixes of a server that cannot write to its disk, or is configured to accept no writes.
_NO_WRITES = ("MISCONF", "NOREPLICAS")
# Messages by type of error; the first type that fits counts.
_WORDS: tuple[tuple[type[Exception], str], ...] = (
    (redis.exceptions.BusyLoadingError, "the store is still loading its data"),
    (redis.exceptions.AuthenticationError, "the store does not let the service in"),
    (redis.exceptions.ConnectionError, "the store does not answer"),
    (redis.exceptions.TimeoutError, "the store does not answer in time"),
    (redis.exceptions.NoPermissionError, "the store does not allow a command that the service needs"),
    (redis.exceptions.ClusterDownError, "a part of the store has no server that answers for it"),
    (redis.exceptions.RedisError, "the store did not do as asked"),
    (RedisClusterException, "no server of the store answers as one of a cluster"),
)


def _unavailable(error: Exception) -> StoreUnavailable:
    if isinstance(error, NotConfirmed):
        return StoreUnavailable(
            f"{error.had} of {error.wanted} replicas of the store have confirmed the change in time: it is made, "
            "and lost if its server is lost before they have it; the same request may be sent again"
        )
    if isinstance(error, redis.exceptions.OutOfMemoryError):
        return StoreFull("the store has reached its limit of memory; it takes no writes, and is read as ever")
    if isinstance(error, redis.exceptions.ReadOnlyError):
        return StoreReadOnly("the store is a replica, which takes no writes")
    if str(error).startswith(_NO_WRITES):
        return StoreFull("the store cannot write to its disk; it takes no writes, and is read as ever")
    # If no node of a cluster could be asked for the list of nodes, the reason is the error of the last node asked.
    cause = error.__cause__
    reason = cause if isinstance(error, RedisClusterException) and isinstance(cause, redis.RedisError) else error
    return StoreUnavailable(next(words for kind, words in _WORDS if isinstance(reason, kind)))
