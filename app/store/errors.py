"""What can go wrong between the service and its store, said without HTTP."""

from collections.abc import Iterator
from contextlib import contextmanager

import redis


class StoreUnavailable(Exception):
    """The store does not answer, or refuses to write; trying again later may help."""


class StoreDamaged(Exception):
    """The store answered with something that this service did not write or cannot read."""


class Gone(Exception):
    """What is read was deleted, or has expired, since it was found."""


class QuotaExceeded(Exception):
    """There is no room for what was to be kept.

    Args:
        limit: its name: a setting, or `key_bytes` or `key_names`, which are of an API key.
        allowed: its value.
        there: what is kept already.
        wanted: what was to be kept beside it.
    """

    def __init__(self, limit: str, allowed: int, there: int, wanted: int) -> None:
        unit = "names" if limit.endswith("names") else "bytes"
        super().__init__(f"{wanted} {unit} more were to be kept beside {there}; {limit} is {allowed}")
        self.limit, self.allowed = limit, allowed


class NewerVersion(Exception):
    """Something was stored by a newer version of the service, in a way that this one does not know.

    Args:
        what: it is, with its name: "map 'letters'".
        made: version of what is stored, and of which kind: "parameter stream 3".
        known: the newest version of that kind that is known here.
    """

    def __init__(self, what: str, made: str, known: int) -> None:
        super().__init__(f"{what} was made by a newer version of the service, with {made}; this version knows {known}")


@contextmanager
def store_errors() -> Iterator[None]:
    """Turn every error of the client library into StoreUnavailable."""
    try:
        yield
    except redis.RedisError as error:
        raise StoreUnavailable(f"the store did not do as asked: {error}") from error
