"""The data directory of an embedded store, and a store of maps."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.store import server
from app.store.clients import Client
from app.store.connection import connect
from app.store.maps import MapStore
from service_tests.servers import EVERY_WRITE, valkey
from service_tests.store.site import Site


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    here = Site(tmp_path)
    yield here
    here.clean()


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "PATIENCE_SECONDS", 3.0)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A store for the tests of a file."""
    with valkey(tmp_path_factory.mktemp("store"), *EVERY_WRITE) as url:
        yield url


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    """A client of that store, which is empty."""
    with connect(url, 5) as client:
        client.flushall()
        yield client


@pytest.fixture
def maps(client: Client) -> MapStore:
    return MapStore(client)
