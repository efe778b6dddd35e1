"""Pieces and manifests that something else has changed, and those of newer versions, are noticed, never guessed at."""

import json
import re
from typing import Any, cast

import numpy as np
import pytest
import redis

from app.store.datasets import DatasetStore, build_manifest
from app.store.errors import NewerVersion, StoreDamaged
from app.store.indexes import IndexStore
from app.store.maps import MapStore
from app.store.named import NameTaken
from service_tests.cases import each
from service_tests.checks import keys
from service_tests.store.new_indexes import entry, new_index
from service_tests.store.new_maps import new


@each(
    ("said", "damage"),
    [
        ("digest", lambda piece, _: piece[:1000] + bytes([piece[1000] ^ 1]) + piece[1001:]),
        (None, lambda piece, _: piece[:-1]),
        (None, lambda piece, _: piece + b"\0"),
        (None, lambda _, first: first),
        ("a piece of frequencies of map 'm' is missing", lambda *_: None),
    ],
)
def test_a_piece_that_was_changed_is_noticed(
    client: redis.Redis, maps: MapStore, said: str | None, damage: Any
) -> None:
    maps.delete("m")
    manifest = maps.create(new(megabytes=2.5))
    last, first = (next(key for key in keys(client) if key.endswith(b":frequencies:%d" % i)) for i in (2, 0))
    damaged = damage(client.get(last), client.get(first))
    client.delete(last)
    if damaged is not None:
        client.set(last, damaged)
    with pytest.raises(StoreDamaged, match=said):
        maps.read(manifest, "frequencies")
    maps.read(manifest, "weights")


@each(
    "change",
    [
        {"unknown": 1},
        {"schema_version": "new"},
        {"state": "building"},
        {"name": None},
        {"name": "n"},
        {"arrays": {"a": 1}},
    ],
)
def test_a_manifest_that_was_changed_is_not_guessed_at(
    client: redis.Redis, maps: MapStore, change: dict[str, Any]
) -> None:
    maps.create(new())
    key = "bochner:{map:m}:manifest"
    client.set(key, json.dumps(json.loads(cast(bytes, client.get(key))) | change))
    with pytest.raises(StoreDamaged):
        maps.find("m")
    with pytest.raises(NameTaken):
        maps.create(new())
    assert maps.page("", None, 9) == ([], None)
    assert maps.delete("m")
    assert not keys(client)


def test_a_manifest_that_is_missing_or_does_not_have_its_digest_is_told_of(client: redis.Redis, maps: MapStore) -> None:
    """And not what has expired, whose name may still be listed."""
    datasets = DatasetStore(client)
    rows = {"rows": np.ones((2, 2))}
    for name, ttl in (("kept", None), ("expired", 100)):
        datasets.create(build_manifest(name, (2, 2), rows, ttl), rows, ttl)
        maps.create(new(name)._replace(ttl=ttl))
    for key in client.keys("bochner:{*:expired}:*"):
        client.delete(key)
    assert [*maps.damages(), *datasets.damages()] == []
    client.rename("bochner:{map:kept}:manifest", "bochner:{map:kept}:lanifest")
    changed = cast(bytes, client.get("bochner:{dataset:kept}:manifest")).replace(b'"sha256:', b'"sha256:0')
    client.set("bochner:{dataset:kept}:manifest", changed)
    told = " ".join([*maps.damages(), *datasets.damages()])
    assert re.match("[^:]*map 'kept' is missing: PUT.*dataset 'kept' does not have the digest[^:]*: DELETE[^:]*$", told)


def test_a_map_of_a_newer_version_is_refused_by_name(
    client: redis.Redis, maps: MapStore, caplog: pytest.LogCaptureFixture
) -> None:
    maps.create(new())
    maps.create(new("other"))
    key = "bochner:{map:m}:manifest"
    change = {"schema_version": 5, "spec": 1, "state": "withdrawn"}
    client.set(key, json.dumps(json.loads(cast(bytes, client.get(key))) | change))
    told = "map 'm' was made by a newer version of the service, with schema version 5; this version knows 4"
    with pytest.raises(NewerVersion, match=f"^{told}$"):
        maps.find("m")
    assert [manifest.name for manifest in maps.page("", None, 9)[0]] == ["other"]
    assert told in caplog.text
    assert maps.delete("m")


def test_an_index_that_has_lost_its_tags_is_named(client: redis.Redis) -> None:
    indexes = IndexStore(client)
    made = indexes.create(new_index())
    indexes.upsert(made, [entry(1)._replace(tags=b'["a"]')])
    assert [*indexes.damages()] == []
    assert client.delete(*client.keys("bochner:{index:i}:*:tags"))
    assert [*indexes.damages()] == ["the tags of index 'i' are missing: DELETE it, then PUT it anew"]
