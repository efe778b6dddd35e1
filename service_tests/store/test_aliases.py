"""An alias holds its name, and what it stands for stays, whoever is faster and whatever dies in between."""

import secrets
from itertools import product

import pytest
import redis

from app.store.account import Account, Quota
from app.store.aliases import AliasManifest, AliasStore, IndexAlias, MapAlias
from app.store.errors import IsAlias, NameHeld, NewerVersion, QuotaExceeded
from app.store.indexes import IndexManifest, IndexStore
from app.store.manifest import now
from app.store.pins import Pins, User
from service_tests.ledger import assert_true
from service_tests.races import at_once
from service_tests.store.new_indexes import entry, new_index


@pytest.fixture
def indexes(client: redis.Redis) -> IndexStore:
    return IndexStore(client)


@pytest.fixture
def aliases(client: redis.Redis) -> AliasStore:
    return AliasStore(client, IndexAlias)


@pytest.fixture
def pins(client: redis.Redis, indexes: IndexStore, aliases: AliasStore) -> Pins:
    return Pins(client, indexes, {"alias": aliases.find_own})


@pytest.fixture
def maps_aliases(client: redis.Redis) -> AliasStore:
    return AliasStore(client, MapAlias)


def alias(of: str, name: str = "a", kind: type[AliasManifest] = IndexAlias) -> AliasManifest:
    token = secrets.token_hex(8)
    return kind(schema_version=1, token=token, name=name, alias_of=of, digest=token, created_at=now())


def user(of: AliasManifest) -> User:
    return User(of.name, of.token, "alias")


def test_an_index_is_found_by_its_alias(client: redis.Redis, indexes: IndexStore, aliases: AliasStore) -> None:
    one, two = (indexes.create(new_index(name)) for name in ("one", "two"))
    first, second = alias("one"), alias("two")
    assert aliases.put(first, None)
    assert aliases.put(first, None), "the call is repeated after a lost reply"
    assert indexes.find("a") == one
    assert indexes.look("a") == (one, indexes.look("one", one)[1])  # type: ignore[index]
    assert not aliases.put(second, None)
    assert aliases.put(second, first)
    assert not aliases.put(alias("one"), first), "it has changed"
    assert indexes.look("a", one) == (two, indexes.look("two")[1])  # type: ignore[index]
    assert aliases.find("one") is None
    assert [found.name for found in indexes.page("", None, 9)[0]] == ["one", "two"]
    assert [found.name for found in aliases.page("", None, 9)[0]] == ["a"]
    assert_true(client)
    assert not aliases.remove(first), "it has moved"
    assert aliases.remove(second)
    assert aliases.find_own("two") is None
    assert indexes.find("a") is None
    assert_true(client)


def test_an_alias_that_moves_while_it_is_read_is_read_again(
    indexes: IndexStore, aliases: AliasStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    indexes.create(new_index("one"))
    two, first, find = indexes.create(new_index("two")), alias("one"), indexes.find_own
    aliases.put(first, None)

    def move(name: str) -> IndexManifest | None:
        if name == "one":
            aliases.put(alias("two"), first)
            indexes.delete("one")
        return find(name)

    monkeypatch.setattr(indexes, "find_own", move)
    assert indexes.find("a") == two
    indexes.delete("two")
    assert indexes.find("a") is None


def test_a_name_is_given_once(indexes: IndexStore, aliases: AliasStore) -> None:
    indexes.create(new_index("one"))
    with pytest.raises(NameHeld, match="index 'one' exists"):
        aliases.put(alias("one", "one"), None)
    assert aliases.put(alias("one"), None)
    with pytest.raises(IsAlias):
        indexes.create(new_index("a"))
    with pytest.raises(IsAlias, match="'a' is an alias of index 'one'"):
        indexes.find_own("a")
    assert aliases.put(alias("a", "b"), None)
    assert indexes.find("b") is None, "aliases do not form chains"
    assert indexes.look("b") is None

    def race(number: int) -> list[bool]:
        def make() -> bool:
            try:
                return indexes.create(new_index(f"race{number}")).kind == "index"
            except IsAlias:
                return False

        def name() -> bool:
            try:
                return aliases.put(alias("one", f"race{number}"), None)
            except NameHeld:
                return False

        return at_once(2, lambda i: (make, name)[i]())

    assert all(sum(race(number)) == 1 for number in range(20))


def test_no_request_sees_a_name_as_an_alias_of_both_kinds(
    client: redis.Redis, aliases: AliasStore, maps_aliases: AliasStore
) -> None:
    of_index, of_map = alias("one"), alias("one", kind=MapAlias)
    assert aliases.put(of_index, None)
    assert not maps_aliases.put(of_map, None)
    assert maps_aliases.find_own("a") is None
    assert aliases.remove(of_index)
    assert maps_aliases.put(of_map, None)
    assert maps_aliases.put(of_map, None), "the call is repeated after a lost reply"
    assert not aliases.put(alias("one"), None)
    assert aliases.find_own("a") is None
    assert_true(client)


def test_an_alias_that_was_deleted_at_once_is_not_put_again_when_the_call_is_repeated(aliases: AliasStore) -> None:
    first = alias("one")
    assert aliases.put(first, None)
    assert aliases.remove(first)
    assert aliases.put(first, None), "the first try has put it"
    assert aliases.find_own("a") is None


def test_a_reference_that_was_removed_does_not_come_back(
    client: redis.Redis, indexes: IndexStore, aliases: AliasStore, pins: Pins
) -> None:
    one, named = indexes.create(new_index("one")), alias("one")
    assert pins.pin(one, user(named))
    assert aliases.put(named, None)
    aliases.remove(named)  # before the one who put it goes on
    pins.unpin("one", user(named))
    pins.settle("one", user(named))
    assert pins.users("one") == []
    assert indexes.delete("one")
    client.hset("bochner:{index:a}:pins", "left:by an earlier version", 0)
    assert aliases.remove(named) is False
    assert aliases.put(again := alias("two"), None)
    client.hset("bochner:{index:a}:pins", "left:by an earlier version", 0)
    assert aliases.remove(again)


def test_what_an_alias_stands_for_stays(
    client: redis.Redis, indexes: IndexStore, aliases: AliasStore, pins: Pins
) -> None:
    made, named = indexes.create(new_index("one", ttl=50)), alias("one")
    indexes.upsert(made, [entry(1)])
    assert pins.pin(made, user(named))
    aliases.put(named, None)
    pins.settle("one", user(named))
    of_index = [key for key in client.scan_iter(match="bochner:{index:one}*") if not key.endswith(b":receipts")]
    assert {client.ttl(key) for key in of_index} == {-1}
    assert pins.users("one") == [user(named)]

    class Refused(Exception):
        pass

    def refuse(_: bytes, __: str) -> None:
        if pins.users("one"):
            raise Refused

    with pytest.raises(Refused):
        indexes.delete("one", refuse)
    moved = alias("two")
    assert aliases.put(moved, named)  # and the process dies
    pins.tidy()
    assert 0 < client.ttl("bochner:{index:one}:manifest") <= 50
    assert indexes.delete("one", refuse)
    assert_true(client)


def test_what_has_just_expired_is_not_pinned(
    client: redis.Redis, indexes: IndexStore, pins: Pins, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, of = indexes.create(new_index("one", ttl=50)), user(alias("one"))
    find = indexes.find_own

    def expire(name: str) -> IndexManifest | None:
        client.delete("bochner:{index:one}:manifest")
        return find(name)

    monkeypatch.setattr(indexes, "find_own", expire)
    assert not pins.pin(made, of)
    assert not client.exists("bochner:{index:one}:pins")


def test_a_process_that_dies_before_it_puts_the_alias_keeps_the_index_for_a_minute(
    client: redis.Redis, indexes: IndexStore, pins: Pins
) -> None:
    made, never = indexes.create(new_index("one", ttl=50)), user(alias("one"))
    assert pins.pin(made, never)
    assert pins.users("one") == [never]
    client.hincrby("bochner:{index:one}:pins", never.field, -3600)
    pins.tidy()
    assert pins.users("one") == []
    assert 0 < client.ttl("bochner:{index:one}:manifest") <= 50


def test_an_alias_counts_for_whoever_put_it_last(client: redis.Redis, indexes: IndexStore) -> None:
    indexes.create(new_index("one"))
    aliases, account = AliasStore(client, IndexAlias), Account(client)
    for owner in ("b", "c"):
        account.allow(owner, Quota(max_store_names=1))
    there = alias("one")
    aliases.put(there, None, "b")
    with pytest.raises(QuotaExceeded, match="key_names is 1"):
        aliases.put(alias("one", "other"), None, "b")
    for owner, of in product("bc", ("two", "one")):
        after = alias(of)
        assert aliases.put(after, there, owner), "whoever has one name may move it"
        there = after
    assert (account.usage("b").names, account.usage("c").names) == (0, 1)
    assert_true(client)


def test_an_alias_of_a_newer_version_keeps_what_it_stands_for(
    client: redis.Redis, indexes: IndexStore, aliases: AliasStore, pins: Pins
) -> None:
    made, named = indexes.create(new_index("one")), alias("one")
    assert pins.pin(made, user(named))
    aliases.put(named, None)
    pins.settle("one", user(named))
    client.set("bochner:{index:a}:manifest", named.stored.replace(b'"schema_version":1', b'"schema_version":2'))
    with pytest.raises(NewerVersion):
        aliases.find_own("a")
    assert pins.users("one") == [user(named)]
