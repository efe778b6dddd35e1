"""Clients that the estimators of a process share, with what they ask a service for once."""

import os
from functools import cached_property, lru_cache
from typing import Any

from bochner_client.address import key_of, url_of
from bochner_client.client import Client


class Connection:
    """A client of a service, its limits and its catalogue."""

    def __init__(self, url: str | None, key: str | None) -> None:
        self.client = Client(url, key=key)

    @cached_property
    def limits(self) -> dict[str, float]:
        """What a request may hold."""
        return self.client.info().limits

    @cached_property
    def catalog(self) -> dict[str, Any]:
        """The kernels and samplers that the service knows."""
        return self.client.catalog()


def connection(url: str | None, key: str | None) -> Connection:
    """The connection of this process to a service, as `Client` finds it."""
    return _connection(url_of(url), key_of(key), os.getpid())


@lru_cache(16)
def _connection(url: str | None, key: str | None, process: int) -> Connection:
    del process  # a process that was forked has sockets of its own
    return Connection(url, key)
