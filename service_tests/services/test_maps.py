import json
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
import redis

from app.core.arrays import RowBlocks
from app.core.errors import TooLarge
from app.core.maps import FourierMap
from app.core.progress import Progress
from app.core.spec import MapSpec
from app.services.cache import Cache
from app.services.errors import MapNotFound
from app.services.maps import ArrayKind
from app.store.errors import NewerVersion, StoreDamaged, StoreUnavailable
from app.store.maps import digest
from app.store.named import State
from service_tests.cases import each
from service_tests.checks import keys
from service_tests.races import reads_during
from service_tests.services.conftest import LIMITS, SPEC, Service, seeded

GMM = MapSpec.model_validate({"input_dim": 3, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "s": 5})


def any_dtype(kind: ArrayKind) -> None:
    """Refuses no dtype."""


def test_a_frozen_array_past_the_limit_comes_from_the_store_in_blocks(
    service: Callable[..., Service], client: redis.Redis
) -> None:
    maps = service()
    long = SPEC.model_copy(update={"s": 300})
    maps.create("m", long, Progress())
    found = maps.array("m", "frequencies", any_dtype)
    assert isinstance(found, RowBlocks)
    blocks = [*found.generate()]
    assert max(block.nbytes for block in blocks) <= LIMITS.max_result_bytes
    np.testing.assert_array_equal(np.concatenate(blocks), FourierMap.build(long).arrays["frequencies"])
    (piece,) = [key for key in keys(client) if b":frequencies:" in key]
    client.setrange(piece.decode(), 3599, b"!")
    with pytest.raises(StoreDamaged):
        [*maps.array("m", "frequencies", any_dtype).generate()]  # type: ignore[union-attr]


def test_a_refused_creation_does_not_change_how_long_a_map_lives(service: Callable[..., Service]) -> None:
    """A condition is checked again when the map is built: another request may have made it meanwhile."""
    maps = service()
    maps.create("m", SPEC, Progress())

    def refuse(digest: str | None) -> None:
        if digest is not None:
            raise PermissionError

    with pytest.raises(PermissionError):
        maps.create("m", SPEC, Progress(), ttl=2, check=refuse)
    assert maps.get("m").ttl is None
    assert maps.create("m", SPEC, Progress(), ttl=2000).record.ttl == 2000


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


@each(
    "change",
    [
        lambda manifest: manifest | {"arrays": {"frequencies": manifest["arrays"]["frequencies"]}},
        lambda manifest: manifest | {"digest": "sha256:" + "0" * 64},
        lambda manifest: manifest | {"spec": {**manifest["spec"], "sha256": "0" * 64}},
        lambda manifest: manifest | {"spec": SPEC.canonical().replace("cos_sin", "complex")},
        lambda manifest: manifest | {"spec": "{}"},
    ],
)
def test_a_manifest_that_was_changed_gives_no_features(
    service: Callable[..., Service], client: redis.Redis, change: Callable[[Any], Any]
) -> None:
    client.flushall()
    service().create("m", SPEC, Progress())
    key = "bochner:{map:m}:manifest"
    client.set(key, json.dumps(change(json.loads(cast(bytes, client.get(key))))))
    with pytest.raises(StoreDamaged):
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


@each(("stream", "error"), [(2, NewerVersion), (0, StoreDamaged), (None, StoreDamaged)])
def test_a_map_of_another_parameter_stream_gives_no_codes(
    service: Callable[..., Service], client: redis.Redis, stream: int | None, error: type[Exception]
) -> None:
    """With the digest of what it says, as another version of the service would have written it."""
    service().create("m", GMM, Progress())
    key = "bochner:{map:m}:manifest"
    change = {"parameter_stream": stream, "digest": digest(GMM.canonical(), {}, stream)}
    client.set(key, json.dumps(json.loads(cast(bytes, client.get(key))) | change))
    with pytest.raises(error, match=f"parameter stream {stream}"):
        service().ready("m")
    listed = json.loads(service().list("", None, 10))["maps"]
    assert [one["name"] for one in listed] == ["m"], "its record can be read all the same"
    service().delete("m")


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


def test_an_unfit_store_gets_no_new_map_but_serves_the_old(service: Callable[..., Service]) -> None:
    service().create("m", SPEC, Progress())
    unfit = service(unfit="it forgets")
    with pytest.raises(StoreUnavailable, match="it forgets"):
        unfit.create("n", SPEC, Progress())
    assert not unfit.create("m", SPEC, Progress())[1]
    assert unfit.ready("m").spec == SPEC


def test_states_come_a_few_maps_at_a_time(service: Callable[..., Service], monkeypatch: pytest.MonkeyPatch) -> None:
    maps = service()
    for name in "abcde":
        maps.create(name, SPEC, Progress())
    monkeypatch.setattr("app.services.maps._AT_A_TIME", 2)
    found, after = maps.states(None)
    while after is not None:
        assert len(found) % 2 == 0
        more, after = maps.states(after)
        found += more
    assert found == [(name, State.ready, "") for name in "abcde"]
