"""Stores with jobs."""

from collections.abc import Iterator

import pytest

from app.store.connection import connect
from service_tests.jobs.site import Site
from service_tests.servers import EVERY_WRITE, valkey


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A store, and no worker yet."""
    with valkey(tmp_path_factory.mktemp("jobs"), *EVERY_WRITE) as url, connect(url, 5) as client:
        here = Site(url, client)
        yield here
        here.clean()
