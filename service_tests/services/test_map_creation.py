from collections.abc import Callable

import pytest
import redis

from app.core.errors import TooLarge
from app.core.maps import ConsistentSamplingMap, FourierMap
from app.core.progress import Progress
from app.services.cache import Cache
from app.store.errors import StoreUnavailable
from service_tests.checks import keys
from service_tests.core.specs import gmm_spec
from service_tests.services.conftest import LIMITS, SPEC, Service


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


def test_an_unfit_store_gets_no_new_map_but_serves_the_old(service: Callable[..., Service]) -> None:
    service().create("m", SPEC, Progress())
    unfit = service(unfit="it forgets")
    with pytest.raises(StoreUnavailable, match="it forgets"):
        unfit.create("n", SPEC, Progress())
    assert not unfit.create("m", SPEC, Progress())[1]
    assert unfit.ready("m").spec == SPEC
