"""A store, and services of maps over it."""

from collections.abc import Callable, Iterator

import pytest
import redis

from app.jobs.jobs import Jobs
from app.services.limits import Limits
from app.services.maps import Maps
from app.services.ready import ReadyCache
from app.store.connection import connect
from app.store.maps import MapStore
from service_tests.servers import EVERY_WRITE, valkey

LIMITS = Limits(
    max_body_bytes=1000,
    max_spec_bytes=1000,
    max_result_bytes=1000,
    max_map_bytes=100_000,
    max_dataset_bytes=100_000,
    max_operations=1000,
)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[redis.Redis]:
    with valkey(tmp_path_factory.mktemp("services"), *EVERY_WRITE) as url, connect(url, 5) as client:
        yield client


@pytest.fixture
def service(client: redis.Redis) -> Callable[..., Maps]:
    """Makes services of one store, each with a cache of its own."""
    client.flushall()

    def make(cache_bytes: int = 1 << 20, unfit: str | None = None) -> Maps:
        return Maps(MapStore(client), LIMITS, ReadyCache(cache_bytes), 1, lambda: unfit, Jobs(client, 10, 60))

    return make
