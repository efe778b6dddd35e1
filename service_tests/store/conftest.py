"""The data directory of an embedded store, and a store of maps."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from app.store import server
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
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[redis.Redis]:
    with valkey(tmp_path_factory.mktemp("maps"), *EVERY_WRITE) as url, connect(url, 5) as client:
        yield client


@pytest.fixture
def maps(client: redis.Redis) -> MapStore:
    client.flushall()
    return MapStore(client)
