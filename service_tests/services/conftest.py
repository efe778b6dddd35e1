"""A store, services of maps over it, and a spec to put there."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis

from app.core.progress import Progress
from app.core.spec import MapSpec
from app.jobs.jobs import Jobs
from app.services.asked import NOTHING, AskedSpec, LeftOpen
from app.services.cache import Cache
from app.services.datasets import Datasets
from app.services.limits import Limits
from app.services.map_creation import Created, MapCreation
from app.services.maps import Maps
from app.store.connection import connect
from app.store.datasets import DatasetStore
from app.store.indexes import IndexStore
from app.store.maps import MapStore
from app.store.pins import Pins

SPEC = MapSpec.model_validate(
    {"input_dim": 3, "kernel": {"kind": "gaussian", "length_scale": 1.5}, "sampler": {"kind": "halton"}, "s": 50}
)
LIMITS = Limits(
    max_body_bytes=1000,
    max_spec_bytes=1000,
    max_result_bytes=1000,
    max_map_bytes=100_000,
    max_dataset_bytes=100_000,
    max_operations=1000,
    max_build_bytes=1_000_000,
    max_job_bytes=10_000_000,
    max_index_batch=100,
)


def seeded(seed: int) -> MapSpec:
    return SPEC.model_copy(update={"seed": seed})


@pytest.fixture
def client(store_url: str) -> Iterator[redis.Redis]:
    """A client of a store, which is empty."""
    with connect(store_url, 5) as client:
        client.flushall()
        yield client


class Service(Maps):
    """The maps of a store, and their creation from specs."""

    def __init__(self, client: redis.Redis, cache: Cache, limits: Limits = LIMITS, unfit: str | None = None) -> None:
        store, jobs = MapStore(client), Jobs(client, 10, 60)
        super().__init__(store, limits, cache, 1, jobs, Pins(client, store, {"index": IndexStore(client).find_own}))
        datasets = Datasets(DatasetStore(client), limits, cache, lambda: unfit)
        self._creation = MapCreation(store, limits, 1, lambda: unfit, jobs, datasets)

    def create(
        self, name: str, spec: MapSpec, progress: Progress | None, left_open: LeftOpen = NOTHING, **named: Any
    ) -> Created:
        return self._creation.create(name, AskedSpec(spec, left_open), progress, **named)


@pytest.fixture
def service(client: redis.Redis) -> Callable[..., Service]:
    """Makes services of one store, each with a cache of its own."""

    def make(cache_bytes: int = 1 << 20, unfit: str | None = None) -> Service:
        return Service(client, Cache(cache_bytes), unfit=unfit)

    return make
