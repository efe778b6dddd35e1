"""Maps that indexes are over stay, and go on as before when the last of these is gone."""

import pytest
import redis

from app.store.indexes import IndexStore
from app.store.maps import MapManifest, MapStore
from app.store.pins import Pins, User
from service_tests.checks import keys
from service_tests.ledger import assert_true, pass_time
from service_tests.store.new_indexes import new_index
from service_tests.store.new_maps import new

PINS = "bochner:{map:m}:pins"


@pytest.fixture
def indexes(client: redis.Redis) -> IndexStore:
    return IndexStore(client)


@pytest.fixture
def pins(client: redis.Redis, maps: MapStore, indexes: IndexStore) -> Pins:
    return Pins(client, maps, {"index": indexes.find_own})


def put(indexes: IndexStore, pins: Pins, there: MapManifest, name: str, ttl: int | None = None) -> User:
    """Pin a map for an index, and make that."""
    made = new_index(name, ttl=ttl, over=there.name)
    index = User(name, made.token)
    assert pins.pin(there, index)
    indexes.create(made)
    return index


def lives(client: redis.Redis) -> set[int]:
    """The times to live of all keys of the map, its entry in the account among them."""
    of_map = [key for key in keys(client) if b"{map:m}" in key and key != PINS.encode()]
    assert len(of_map) > 2
    ends = client.zscore("bochner:account:ends", of_map[0].rsplit(b":", 1)[0])
    return {client.ttl(key) for key in of_map} | ({-1} if ends is None else set())


def age(client: redis.Redis) -> None:
    """Let pins be old."""
    for field in client.hkeys(PINS):
        client.hincrby(PINS, field, -3600)


def test_an_index_that_is_made_while_its_map_is_deleted_keeps_it(
    maps: MapStore, indexes: IndexStore, pins: Pins
) -> None:
    there = maps.create(new())

    class Refused(Exception):
        pass

    def refuse(_: bytes, __: str) -> None:
        if pins.users("m"):
            raise Refused
        put(indexes, pins, there, "i")

    with pytest.raises(Refused):
        maps.delete("m", refuse)
    assert maps.find("m") == there


def test_a_map_with_indexes_over_it_does_not_expire(
    client: redis.Redis, maps: MapStore, indexes: IndexStore, pins: Pins
) -> None:
    there = maps.create(new(megabytes=1.5)._replace(ttl=100))
    assert all(98 <= one <= 100 for one in lives(client) - {-1})
    index = put(indexes, pins, there, "i")
    assert lives(client) == {-1}
    kept = maps.find("m")
    assert kept is not None
    assert (kept.ttl, kept.expires_at, kept.is_due) == (100, None, False)
    maps.note_use(there)
    assert lives(client) == {-1}
    assert maps.renew(kept, 500)
    assert lives(client) == {-1}
    indexes.delete("i")
    pins.unpin("m", index)
    assert all(498 <= one <= 500 for one in lives(client) - {-1})
    pass_time(client)
    assert maps.find("m") is None
    assert assert_true(client).names == 0


def test_indexes_that_never_came_or_expired_are_forgotten(
    client: redis.Redis, maps: MapStore, indexes: IndexStore, pins: Pins
) -> None:
    there = maps.create(new()._replace(ttl=100))
    assert all(pins.pin(there, User("never", token)) for token in ("made", "either"))
    put(indexes, pins, there, "expired", ttl=50)
    put(indexes, pins, there, "i")
    assert [one.name for one in pins.users("m")] == ["expired", "i", "never", "never"]
    age(client)
    client.delete("bochner:{index:expired}:manifest")
    pins.tidy()
    assert [one.name for one in pins.users("m")] == ["i"]
    assert lives(client) == {-1}
    indexes.delete("i")  # and dies before it says so
    pins.tidy()
    assert lives(client) - {-1} <= {99, 100}
    assert not client.exists(PINS)
