"""The data directory of an embedded store, and a store of maps."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.store.connection import Client, connect
from app.store.maps import MapStore
from service_tests.store.site import Site


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    here = Site(tmp_path)
    yield here
    here.clean()


@pytest.fixture
def url(store_url: str) -> str:
    """A store, which is empty."""
    with connect(store_url, 5) as client:
        client.flushall()
    return store_url


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    """A client of that store."""
    with connect(url, 5) as client:
        yield client


@pytest.fixture
def maps(client: Client) -> MapStore:
    return MapStore(client)
