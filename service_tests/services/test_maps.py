import json
import threading
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
import redis

from app.core.answers import RowBlocks
from app.core.errors import InvalidInput, TooLarge
from app.core.maps import FeatureMap, FourierMap, opened
from app.core.maps.fourier.dense import DenseProjection
from app.core.maps.fourier.structured import StructuredProjection
from app.core.progress import Progress
from app.core.spec import MapSpec
from app.services.cache import Cache
from app.services.errors import ArrayNotFound, MapNotFound
from app.services.maps import ArrayKind
from app.store.errors import StoreDamaged
from service_tests.checks import keys
from service_tests.races import reads_during
from service_tests.services.conftest import LIMITS, SPEC, Service, seeded

BYTES = opened(SPEC, FourierMap.build(SPEC).arrays).bytes


def any_dtype(kind: ArrayKind) -> None:
    """Refuses no dtype."""


def test_a_map_is_opened_once_and_kept(service: Callable[..., Service]) -> None:
    maps = service()
    maps.create("m", SPEC, Progress())
    assert maps.ready("m") is maps.ready("m")


def test_the_least_recently_used_map_goes_when_memory_is_short(service: Callable[..., Service]) -> None:
    maps = service(cache_bytes=2 * BYTES)
    for seed in range(3):
        maps.create(str(seed), seeded(seed), Progress())
    zero, one = maps.ready("0"), maps.ready("1")
    assert maps.ready("0") is zero
    maps.ready("2")
    assert maps.ready("0") is zero
    assert maps.ready("1") is not one


def test_a_frozen_array_past_the_limit_comes_from_the_store_in_blocks(
    service: Callable[..., Service], client: redis.Redis
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
def test_a_map_larger_than_the_cache_serves_all_the_same(service: Callable[..., Service], cache_bytes: int) -> None:
    maps = service(cache_bytes)
    maps.create("m", SPEC, Progress())
    assert maps.ready("m") is not maps.ready("m")


def test_maps_of_equal_digest_share_memory_under_all_their_names(service: Callable[..., Service]) -> None:
    maps = service()
    maps.create("a", SPEC, Progress())
    maps.create("b", SPEC, Progress())
    assert maps.ready("a") is maps.ready("b")


def test_a_map_made_anew_by_another_process_is_not_served_from_memory(service: Callable[..., Service]) -> None:
    here, elsewhere = service(), service()
    here.create("m", seeded(1), Progress())
    old: Any = here.array("m", "frequencies", any_dtype)
    elsewhere.delete("m")
    with pytest.raises(MapNotFound):
        here.ready("m")
    elsewhere.create("m", seeded(2), Progress())
    found, wanted = (maps.array("m", "frequencies", any_dtype) for maps in (here, elsewhere))
    assert isinstance(found, np.ndarray)
    assert not np.array_equal(found, old)
    np.testing.assert_array_equal(found, wanted)


def test_twenty_threads_that_want_one_map_get_the_same(service: Callable[..., Service]) -> None:
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
    service: Callable[..., Service], client: redis.Redis
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
        lambda manifest: manifest | {"spec": SPEC.canonical().replace("cos_sin", "complex")},
        lambda manifest: manifest | {"spec": "{}"},
    ],
    ids=["array missing", "other digest", "other digest of the spec", "other form", "no spec"],
)
def test_a_manifest_that_was_changed_gives_no_features(
    service: Callable[..., Service], client: redis.Redis, change: Callable[[Any], Any]
) -> None:
    service().create("m", SPEC, Progress())
    key = "bochner:{map:m}:manifest"
    client.set(key, json.dumps(change(json.loads(cast(bytes, client.get(key))))))
    with pytest.raises(StoreDamaged):
        service().ready("m")


@pytest.mark.parametrize("good", [b"cos_sin", b"1.5"])
def test_a_spec_that_was_changed_gives_no_features(
    service: Callable[..., Service], client: redis.Redis, good: bytes
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


@pytest.mark.gate
def test_maps_deleted_and_made_anew_while_they_are_read_are_whole_or_gone(service: Callable[..., Service]) -> None:
    writer, reader = service(), service(cache_bytes=0)
    arrays = {seed: FourierMap.build(seeded(seed)).arrays["frequencies"].tobytes() for seed in (0, 1)}

    def rewrite() -> None:
        for i in range(150):
            writer.create("m", seeded(i % 2), Progress())
            writer.delete("m")

    def read() -> bool:
        try:
            assert np.ascontiguousarray(reader.array("m", "frequencies", any_dtype)).tobytes() in arrays.values()
        except MapNotFound:
            return False
        return True

    assert reads_during(rewrite, read)


def test_an_array_that_the_map_lacks_is_answered_with_those_it_has(service: Callable[..., Service]) -> None:
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
    maps = Service(client, Cache(1 << 20), LIMITS._replace(max_operations=5000))
    structured = {"input_dim": 8, "sampler": {"kind": "structured_orthogonal"}}
    for name, changes in (("small", structured), ("large", structured | {"s": 100}), ("dense", {})):
        maps.create(name, MapSpec.model_validate(SPEC.model_dump() | {"s": 16} | changes), Progress())

    def refuse(kind: ArrayKind) -> None:
        raise InvalidInput(f"no {kind.dtype}")

    asked.clear()
    with pytest.raises(TooLarge, match="max_result_bytes"):
        maps.array("large", "frequencies", any_dtype)
    with pytest.raises(TooLarge, match="max_operations"):
        Service(client, Cache(1 << 20)).array("small", "frequencies", any_dtype)
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
