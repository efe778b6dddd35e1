"""Clients that the estimators of a process share, with information that is requested from a service only once."""

import os
from functools import cached_property, lru_cache
from typing import Any

from bochner_client.address import key_of, url_of
from bochner_client.client import Client


class Connection:
    """A client of a service, with the limits and the catalogue of the service."""

    def __init__(self, url: str | None, key: str | None) -> None:
        self.client = Client(url, key=key)

    @cached_property
    def limits(self) -> dict[str, float]:
        """Limits of requests."""
        return self.client.info().limits

    @cached_property
    def catalog(self) -> dict[str, Any]:
        """Kernels and samplers that the service knows."""
        return self.client.catalog()


def connection(url: str | None, key: str | None) -> Connection:
    """Return this process's connection to a service; URL and key default to those of `Client`."""
    return _connection(url_of(url), key_of(key), os.getpid())


@lru_cache(16)
def _connection(url: str | None, key: str | None, process: int) -> Connection:
    del process  # a forked process needs its own sockets
    return Connection(url, key)
