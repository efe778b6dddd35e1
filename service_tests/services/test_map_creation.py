import json
from collections.abc import Callable
from typing import cast

import numpy as np
import pytest
import redis

from app.core.errors import TooLarge
from app.core.maps import ConsistentSamplingMap, FourierMap
from app.core.maps.landmarks.landmark_map import LandmarkMap
from app.core.progress import Progress
from app.core.spec import MapSpec
from app.services.cache import Cache
from app.services.datasets import Datasets
from app.services.errors import MapExists
from app.store.datasets import DatasetStore
from app.store.errors import StoreUnavailable
from service_tests.checks import keys
from service_tests.core.specs import gmm_spec
from service_tests.services.conftest import LIMITS, SPEC, Service, seeded


def test_a_spec_in_the_words_of_an_earlier_version_is_the_same(
    service: Callable[..., Service], client: redis.Redis
) -> None:
    service().create("m", SPEC, Progress())
    key = "bochner:{map:m}:manifest"
    text = json.dumps(json.loads(SPEC.canonical()), sort_keys=True)
    client.set(key, json.dumps(json.loads(cast(bytes, client.get(key))) | {"spec": text, "schema_version": 1}))
    record, new = service().create("m", SPEC, Progress())
    assert (record.spec, new) == (SPEC, False)
    with pytest.raises(MapExists):
        service().create("m", seeded(1), Progress())


def test_creating_again_is_no_conflict_and_another_spec_is(service: Callable[..., Service]) -> None:
    maps = service()
    record, created = maps.create("m", SPEC, Progress())
    assert created
    assert maps.create("m", MapSpec.model_validate_json(SPEC.canonical()), Progress()) == (record, False)
    with pytest.raises(MapExists, match=record.digest):
        maps.create("m", seeded(1), Progress())


def test_a_map_too_large_is_refused_unless_it_is_there_already(
    service: Callable[..., Service], client: redis.Redis
) -> None:
    large = SPEC.model_copy(update={"s": 10_000})
    with pytest.raises(TooLarge) as refused:
        service().create("m", large, Progress())
    assert (refused.value.limit, refused.value.allowed, refused.value.value) == ("max_map_bytes", 100_000, 170_000)
    assert keys(client) == set()
    larger = LIMITS._replace(max_map_bytes=170_000)
    Service(client, Cache(0), larger).create("m", large, Progress())
    assert not service().create("m", large, Progress())[1]


def test_building_is_bounded_by_what_it_takes(client: redis.Redis) -> None:
    client.flushall()
    taken = FourierMap.building_bytes(SPEC)
    tight = LIMITS._replace(max_job_bytes=taken - 1)
    with pytest.raises(TooLarge) as refused:
        Service(client, Cache(0), tight).create("m", SPEC, Progress())
    assert (refused.value.limit, refused.value.allowed, refused.value.value) == ("max_job_bytes", taken - 1, taken)
    assert keys(client) == set()
    left = Service(client, Cache(0), LIMITS._replace(max_build_bytes=taken - 1)).create("m", SPEC, Progress())
    assert (left.record.status, left.record.job is None) == ("building", False)
    at_once = Service(client, Cache(0), LIMITS._replace(max_build_bytes=taken)).create("n", SPEC, Progress())
    assert at_once.record.status == "ready"
    assert ConsistentSamplingMap.building_bytes(gmm_spec()) == 0, "its table is filled when it is opened"


def test_rows_that_a_map_learns_from_count_as_well(client: redis.Redis) -> None:
    client.flushall()
    rows = np.random.default_rng(0).random((200, 3))
    limits = LIMITS._replace(max_map_bytes=10**9)
    datasets = Datasets(DatasetStore(client), limits, Cache(0), lambda: None)
    datasets.create("d", rows, None)
    spec = MapSpec.model_validate(
        {"input_dim": 3, "kernel": SPEC.kernel, "sampler": {"kind": "landmarks", "dataset": "d", "rows": 9}, "s": 5}
    )
    taken = LandmarkMap.building_bytes(spec)
    assert Service(client, Cache(0), limits._replace(max_build_bytes=taken)).create("m", spec, Progress()).record.job
    whole = limits._replace(max_build_bytes=taken + 4 * datasets.get("d").bytes)
    assert Service(client, Cache(0), whole).create("n", spec, Progress()).record.job is None


def test_an_unfit_store_gets_no_new_map_but_serves_the_old(service: Callable[..., Service]) -> None:
    service().create("m", SPEC, Progress())
    unfit = service(unfit="it forgets")
    with pytest.raises(StoreUnavailable, match="it forgets"):
        unfit.create("n", SPEC, Progress())
    assert not unfit.create("m", SPEC, Progress())[1]
    assert unfit.ready("m").spec == SPEC
