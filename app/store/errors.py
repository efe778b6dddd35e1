"""What can go wrong between the service and its store, said without HTTP."""

from collections.abc import Iterator
from contextlib import contextmanager

import redis


class StoreUnavailable(Exception):
    """The store does not answer, or refuses to write; trying again later may help."""


class StoreDamaged(Exception):
    """The store answered with something that this service did not write or cannot read."""


@contextmanager
def store_errors() -> Iterator[None]:
    """Turn every error of the client library into StoreUnavailable."""
    try:
        yield
    except redis.RedisError as error:
        raise StoreUnavailable(f"the store did not do as asked: {error}") from error
