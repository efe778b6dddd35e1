"""A store, and services of maps over it."""

from collections.abc import Callable, Iterator

import pytest
import redis

from app.jobs.jobs import Jobs
from app.services.cache import Cache
from app.services.datasets import Datasets
from app.services.limits import Limits
from app.services.map_creation import MapCreation
from app.services.maps import Maps
from app.store.connection import connect
from app.store.datasets import DatasetStore
from app.store.maps import MapStore
from service_tests.servers import EVERY_WRITE, valkey

LIMITS = Limits(
    max_body_bytes=1000,
    max_spec_bytes=1000,
    max_result_bytes=1000,
    max_map_bytes=100_000,
    max_dataset_bytes=100_000,
    max_operations=1000,
    max_build_bytes=1_000_000,
    max_job_bytes=10_000_000,
)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[redis.Redis]:
    with valkey(tmp_path_factory.mktemp("services"), *EVERY_WRITE) as url, connect(url, 5) as client:
        yield client


def maps_of(client: redis.Redis, cache: Cache, limits: Limits = LIMITS, unfit: str | None = None) -> Maps:
    """A service of the maps of a store."""
    datasets = Datasets(DatasetStore(client), limits, cache, lambda: unfit)
    store, jobs = MapStore(client), Jobs(client, 10, 60)
    return Maps(store, limits, cache, 1, jobs, MapCreation(store, limits, 1, lambda: unfit, jobs, datasets))


@pytest.fixture
def service(client: redis.Redis) -> Callable[..., Maps]:
    """Makes services of one store, each with a cache of its own."""
    client.flushall()

    def make(cache_bytes: int = 1 << 20, unfit: str | None = None) -> Maps:
        return maps_of(client, Cache(cache_bytes), unfit=unfit)

    return make
