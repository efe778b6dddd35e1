import json
import threading
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
import redis

from app.core.answers import RowBlocks
from app.core.errors import InvalidInput, TooLarge
from app.core.maps import ConsistentSamplingMap, FeatureMap, FourierMap, opened
from app.core.maps.fourier.dense import DenseProjection
from app.core.maps.fourier.structured import StructuredProjection
from app.core.maps.landmarks.landmark_map import LandmarkMap
from app.core.progress import Progress
from app.core.spec import MapSpec
from app.services.cache import Cache
from app.services.datasets import Datasets
from app.services.errors import ArrayNotFound, MapExists, NotFound
from app.services.maps import Maps
from app.store.datasets import DatasetStore
from app.store.errors import StoreDamaged, StoreUnavailable
from service_tests.checks import keys
from service_tests.core.specs import gmm_spec
from service_tests.races import reads_during
from service_tests.services.conftest import LIMITS, maps_of

SPEC = MapSpec.model_validate(
    {"input_dim": 3, "kernel": {"kind": "gaussian", "length_scale": 1.5}, "sampler": {"kind": "halton"}, "s": 50}
)
BYTES = opened(SPEC, FourierMap.build(SPEC).arrays).bytes


def any_dtype(dtype: np.dtype[Any]) -> None:
    """Refuses no dtype."""


def seeded(seed: int) -> MapSpec:
    return SPEC.model_copy(update={"seed": seed})


def test_a_map_is_opened_once_and_kept(service: Callable[..., Maps]) -> None:
    maps = service()
    maps.create("m", SPEC, Progress())
    assert maps.ready("m") is maps.ready("m")


def test_the_least_recently_used_map_goes_when_memory_is_short(service: Callable[..., Maps]) -> None:
    maps = service(cache_bytes=2 * BYTES)
    for seed in range(3):
        maps.create(str(seed), seeded(seed), Progress())
    zero, one = maps.ready("0"), maps.ready("1")
    assert maps.ready("0") is zero
    maps.ready("2")
    assert maps.ready("0") is zero
    assert maps.ready("1") is not one


def test_a_frozen_array_past_the_limit_comes_from_the_store_in_blocks(
    service: Callable[..., Maps], client: redis.Redis
) -> None:
    maps = service()
    long = SPEC.model_copy(update={"s": 300})
    maps.create("m", long, Progress())
    found = maps.array("m", "frequencies", any_dtype)
    assert isinstance(found, RowBlocks)
    blocks = [*found.made()]
    assert max(block.nbytes for block in blocks) <= LIMITS.max_result_bytes
    np.testing.assert_array_equal(np.concatenate(blocks), FourierMap.build(long).arrays["frequencies"])
    (piece,) = [key for key in keys(client) if b":frequencies:" in key]
    client.setrange(piece.decode(), 3599, b"!")
    with pytest.raises(StoreDamaged):
        [*maps.array("m", "frequencies", any_dtype).made()]  # type: ignore[union-attr]


@pytest.mark.parametrize("cache_bytes", [0, BYTES - 1])
def test_a_map_larger_than_the_cache_serves_all_the_same(service: Callable[..., Maps], cache_bytes: int) -> None:
    maps = service(cache_bytes)
    maps.create("m", SPEC, Progress())
    assert maps.ready("m") is not maps.ready("m")


def test_maps_of_equal_digest_share_memory_under_all_their_names(service: Callable[..., Maps]) -> None:
    maps = service()
    maps.create("a", SPEC, Progress())
    maps.create("b", SPEC, Progress())
    assert maps.ready("a") is maps.ready("b")


def test_a_map_made_anew_by_another_process_is_not_served_from_memory(service: Callable[..., Maps]) -> None:
    here, elsewhere = service(), service()
    here.create("m", seeded(1), Progress())
    old: Any = here.array("m", "frequencies", any_dtype)
    elsewhere.delete("m")
    with pytest.raises(NotFound):
        here.ready("m")
    elsewhere.create("m", seeded(2), Progress())
    found, wanted = (maps.array("m", "frequencies", any_dtype) for maps in (here, elsewhere))
    assert isinstance(found, np.ndarray)
    assert not np.array_equal(found, old)
    np.testing.assert_array_equal(found, wanted)


def test_twenty_threads_that_want_one_map_get_the_same(service: Callable[..., Maps]) -> None:
    maps = service()
    maps.create("m", SPEC, Progress())
    barrier = threading.Barrier(20)
    found: list[FeatureMap] = []

    def want() -> None:
        barrier.wait()
        found.append(maps.ready("m"))

    run(want)
    assert len(found) == 20
    assert len({id(one) for one in found}) == 1


def run(work: Callable[[], None]) -> None:
    threads = [threading.Thread(target=work, daemon=True) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive(), "a thread waits for ever"


def test_threads_that_want_a_damaged_map_are_all_told_and_none_waits(
    service: Callable[..., Maps], client: redis.Redis
) -> None:
    maps = service()
    maps.create("m", SPEC, Progress())
    piece = next(key for key in keys(client) if key.endswith(b":frequencies:0"))
    good = cast(bytes, client.get(piece))
    client.set(piece, good[:-1] + b"\xff")
    told = []

    def want() -> None:
        try:
            maps.ready("m")
        except StoreDamaged:
            told.append(True)

    run(want)
    assert len(told) == 20
    client.set(piece, good)
    assert isinstance(maps.ready("m"), FourierMap)


@pytest.mark.parametrize(
    "change",
    [
        lambda manifest: manifest | {"arrays": {"frequencies": manifest["arrays"]["frequencies"]}},
        lambda manifest: manifest | {"digest": "sha256:" + "0" * 64},
        lambda manifest: manifest | {"spec": {**manifest["spec"], "sha256": "0" * 64}},
        # As version 0.1.0 kept it.
        lambda manifest: manifest | {"spec": SPEC.canonical().replace("cos_sin", "complex")},
        lambda manifest: manifest | {"spec": "{}"},
    ],
    ids=["array missing", "other digest", "other digest of the spec", "other form", "no spec"],
)
def test_a_manifest_that_was_changed_gives_no_features(
    service: Callable[..., Maps], client: redis.Redis, change: Callable[[Any], Any]
) -> None:
    service().create("m", SPEC, Progress())
    key = "bochner:{map:m}:manifest"
    client.set(key, json.dumps(change(json.loads(cast(bytes, client.get(key))))))
    with pytest.raises(StoreDamaged):
        service().ready("m")


@pytest.mark.parametrize("good", [b"cos_sin", b"1.5"])
def test_a_spec_that_was_changed_gives_no_features(
    service: Callable[..., Maps], client: redis.Redis, good: bytes
) -> None:
    service().create("m", SPEC, Progress())
    piece = next(key for key in keys(client) if b":spec.json:" in key)
    client.set(piece, cast(bytes, client.get(piece)).replace(good, good[::-1]))
    for call in (service().ready, service().get):
        with pytest.raises(StoreDamaged, match=r"spec.json of map 'm' does not have the digest"):
            call("m")
    assert not service().create("m", SPEC, Progress())[1], "that it is there is told by the manifest alone"
    client.delete(piece)
    with pytest.raises(StoreDamaged, match=r"a piece of spec.json of map 'm' is missing"):
        service().ready("m")


def test_a_spec_in_the_words_of_an_earlier_version_is_the_same(
    service: Callable[..., Maps], client: redis.Redis
) -> None:
    service().create("m", SPEC, Progress())
    key = "bochner:{map:m}:manifest"
    text = json.dumps(json.loads(SPEC.canonical()), sort_keys=True)
    client.set(key, json.dumps(json.loads(cast(bytes, client.get(key))) | {"spec": text, "schema_version": 1}))
    record, new = service().create("m", SPEC, Progress())
    assert (record.spec, new) == (SPEC, False)
    with pytest.raises(MapExists):
        service().create("m", seeded(1), Progress())


def test_maps_deleted_and_made_anew_while_they_are_read_are_whole_or_gone(service: Callable[..., Maps]) -> None:
    writer, reader = service(), service(cache_bytes=0)
    arrays = {seed: FourierMap.build(seeded(seed)).arrays["frequencies"].tobytes() for seed in (0, 1)}

    def rewrite() -> None:
        for i in range(150):
            writer.create("m", seeded(i % 2), Progress())
            writer.delete("m")

    def read() -> bool:
        try:
            assert np.ascontiguousarray(reader.array("m", "frequencies", any_dtype)).tobytes() in arrays.values()
        except NotFound:
            return False
        return True

    assert reads_during(rewrite, read)


def test_creating_again_is_no_conflict_and_another_spec_is(service: Callable[..., Maps]) -> None:
    maps = service()
    record, created = maps.create("m", SPEC, Progress())
    assert created
    assert maps.create("m", MapSpec.model_validate_json(SPEC.canonical()), Progress()) == (record, False)
    with pytest.raises(MapExists, match=record.digest):
        maps.create("m", seeded(1), Progress())


def test_a_map_too_large_is_refused_unless_it_is_there_already(
    service: Callable[..., Maps], client: redis.Redis
) -> None:
    large = SPEC.model_copy(update={"s": 10_000})
    with pytest.raises(TooLarge) as refused:
        service().create("m", large, Progress())
    assert (refused.value.limit, refused.value.allowed, refused.value.value) == ("max_map_bytes", 100_000, 170_000)
    assert keys(client) == set()
    larger = LIMITS._replace(max_map_bytes=170_000)
    maps_of(client, Cache(0), larger).create("m", large, Progress())
    assert not service().create("m", large, Progress())[1]


def test_building_is_bounded_by_what_it_takes(client: redis.Redis) -> None:
    client.flushall()
    taken = FourierMap.building_bytes(SPEC)
    tight = LIMITS._replace(max_job_bytes=taken - 1)
    with pytest.raises(TooLarge) as refused:
        maps_of(client, Cache(0), tight).create("m", SPEC, Progress())
    assert (refused.value.limit, refused.value.allowed, refused.value.value) == ("max_job_bytes", taken - 1, taken)
    assert keys(client) == set()
    left = maps_of(client, Cache(0), LIMITS._replace(max_build_bytes=taken - 1)).create("m", SPEC, Progress())
    assert (left.record.status, left.record.job is None) == ("building", False)
    at_once = maps_of(client, Cache(0), LIMITS._replace(max_build_bytes=taken)).create("n", SPEC, Progress())
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
    assert maps_of(client, Cache(0), limits._replace(max_build_bytes=taken)).create("m", spec, Progress()).record.job
    whole = limits._replace(max_build_bytes=taken + 4 * datasets.get("d").bytes)
    assert maps_of(client, Cache(0), whole).create("n", spec, Progress()).record.job is None


def test_an_unfit_store_gets_no_new_map_but_serves_the_old(service: Callable[..., Maps]) -> None:
    service().create("m", SPEC, Progress())
    unfit = service(unfit="it forgets")
    with pytest.raises(StoreUnavailable, match="it forgets"):
        unfit.create("n", SPEC, Progress())
    assert not unfit.create("m", SPEC, Progress())[1]
    assert unfit.ready("m").spec == SPEC


def test_an_array_that_the_map_lacks_is_answered_with_those_it_has(service: Callable[..., Maps]) -> None:
    maps = service()
    maps.create("m", SPEC, Progress())
    with pytest.raises(ArrayNotFound, match="frequencies, weights"):
        maps.array("m", "offsets", any_dtype)


def test_frequencies_are_computed_once_by_an_answer_and_not_by_a_refusal(
    client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.flushall()
    asked: list[str] = []
    for projection in (StructuredProjection, DenseProjection):
        compute = cast(property, projection.frequencies).fget

        def frequencies(self: Any, compute: Any = compute) -> Any:
            asked.append("frequencies")
            return compute(self)

        monkeypatch.setattr(projection, "frequencies", property(frequencies))
    maps = maps_of(client, Cache(1 << 20), LIMITS._replace(max_operations=5000))
    structured = {"input_dim": 8, "sampler": {"kind": "structured_orthogonal"}}
    for name, changes in (("small", structured), ("large", structured | {"s": 100}), ("dense", {})):
        maps.create(name, MapSpec.model_validate(SPEC.model_dump() | {"s": 16} | changes), Progress())

    def refuse(dtype: np.dtype[Any]) -> None:
        raise InvalidInput(f"no {dtype}")

    asked.clear()
    with pytest.raises(TooLarge, match="max_result_bytes"):
        maps.array("large", "frequencies", any_dtype)
    with pytest.raises(TooLarge, match="max_operations"):
        maps_of(client, Cache(1 << 20)).array("small", "frequencies", any_dtype)
    for name in ("small", "dense"):
        with pytest.raises(InvalidInput, match="no float32"):
            maps.array(name, "frequencies", refuse)
        with pytest.raises(ArrayNotFound):
            maps.array(name, "offsets", any_dtype)
        maps.array(name, "weights", any_dtype)
    assert asked == []
    for name in ("small", "dense"):
        assert maps.array(name, "frequencies", any_dtype).shape == (16, maps.ready(name).spec.input_dim)
    assert len(asked) == 2
