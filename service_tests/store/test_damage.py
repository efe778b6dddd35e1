"""Pieces and manifests that something else has changed, and those of newer versions, are noticed, never guessed at."""

import json
from typing import Any, cast

import pytest
import redis

from app.store.errors import NewerVersion, StoreDamaged
from app.store.maps import MapStore
from app.store.pieces import PIECE_BYTES
from app.store.reservations import NameTaken
from service_tests.cases import each
from service_tests.checks import keys
from service_tests.store.new_maps import new


def piece_of(client: redis.Redis, array: str = "frequencies", i: int = 0) -> bytes:
    return next(key for key in keys(client) if key.endswith(f":{array}:{i}".encode()))


@pytest.mark.parametrize("offset", [0, 1000, PIECE_BYTES // 2 - 1])
def test_a_flipped_bit_is_noticed(client: redis.Redis, maps: MapStore, offset: int) -> None:
    manifest = maps.create(new(megabytes=1.5))
    piece = piece_of(client, i=1)
    stored = bytearray(cast(bytes, client.get(piece)))
    stored[offset] ^= 1
    client.set(piece, bytes(stored))
    with pytest.raises(StoreDamaged, match="digest"):
        maps.read(manifest, "frequencies")
    maps.read(manifest, "weights")


@pytest.mark.parametrize("damage", ["short", "long", "empty", "swapped"])
def test_a_piece_of_another_length_or_place_is_noticed(client: redis.Redis, maps: MapStore, damage: str) -> None:
    manifest = maps.create(new(megabytes=2.5))
    last, first = piece_of(client, i=2), piece_of(client)
    stored, other = (cast(bytes, client.get(key)) for key in (last, first))
    client.set(last, {"short": stored[:-1], "long": stored + b"\0", "empty": b"", "swapped": other}[damage])
    with pytest.raises(StoreDamaged):
        maps.read(manifest, "frequencies")


def test_a_missing_piece_is_noticed(client: redis.Redis, maps: MapStore) -> None:
    manifest = maps.create(new(megabytes=1.5))
    client.delete(piece_of(client, i=1))
    with pytest.raises(StoreDamaged, match="a piece of frequencies of map 'm' is missing"):
        maps.read(manifest, "frequencies")


@each(
    "change",
    [
        {"unknown": 1},
        {"schema_version": "new"},
        {"digest": ""},
        {"state": "building"},
        {"name": None},
        {"arrays": {"frequencies": {"dtype": "object", "shape": [1], "sha256": ""}}},
    ],
)
def test_a_manifest_that_was_changed_is_not_guessed_at(
    client: redis.Redis, maps: MapStore, change: dict[str, Any]
) -> None:
    maps.create(new())
    key = "bochner:{map:m}:manifest"
    client.set(key, json.dumps(json.loads(cast(bytes, client.get(key))) | change))
    before = keys(client)
    with pytest.raises(StoreDamaged):
        maps.find("m")
    with pytest.raises(NameTaken):
        maps.create(new())
    assert keys(client) == before
    maps.create(new("other"))
    assert [manifest.name for manifest in maps.page("", None, 9)[0]] == ["other"]
    assert maps.delete("m")
    assert maps.delete("other")
    assert not keys(client)


@pytest.mark.parametrize("change", [{}, {"layout": "new"}, {"spec": 1, "state": "withdrawn", "name": "m"}])
def test_a_map_of_a_newer_version_is_refused_by_name(
    client: redis.Redis, maps: MapStore, change: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    maps.create(new())
    maps.create(new("other"))
    key = "bochner:{map:m}:manifest"
    client.set(key, json.dumps(json.loads(cast(bytes, client.get(key))) | {"schema_version": 5} | change))
    told = "map 'm' was made by a newer version of the service, with schema version 5; this version knows 4"
    with pytest.raises(NewerVersion, match=f"^{told}$"):
        maps.find("m")
    assert [manifest.name for manifest in maps.page("", None, 9)[0]] == ["other"]
    assert told in caplog.text
    assert maps.delete("m")
    assert maps.delete("other")
    assert not keys(client)
