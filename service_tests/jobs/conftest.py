"""Stores with jobs."""

from collections.abc import Iterator

import pytest

from app.store.connection import connect
from service_tests.jobs.site import Site


@pytest.fixture(scope="module")
def site(store_url: str) -> Iterator[Site]:
    """A store, which is empty, and no worker yet."""
    with connect(store_url, 5) as client:
        client.flushall()
        here = Site(store_url, client)
        yield here
        here.clean()
