"""Indexes keep the vectors that were put last, and nothing of others."""

import random
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import pytest
import redis

from app.core.errors import InvalidInput
from app.store import named
from app.store.account import Account, Quota, Usage
from app.store.connection import connect
from app.store.errors import Gone, QuotaExceeded
from app.store.indexes import (
    BLOCK,
    ENTRY_BYTES,
    KEY_BYTES,
    MOST_BYTES_OF_TAGS,
    MOST_VECTORS,
    NONE_KNOWN,
    Entry,
    IndexStore,
)
from app.store.manifest import now
from service_tests.checks import keys
from service_tests.ledger import assert_true, pass_time
from service_tests.races import at_once
from service_tests.servers import EVERY_WRITE, until, valkey, wire
from service_tests.store.new_indexes import S, entry, held, new_index


@pytest.fixture
def indexes(client: redis.Redis) -> IndexStore:
    return IndexStore(client)


def tagged(one: Entry, number: int) -> Entry:
    """The vector with one of five sets of tags, the first of which is empty."""
    text = b"" if number == 0 else b'["%d"]' % number
    return one._replace(row=number.to_bytes(8, "little") + one.row[8:], tags=text)


def test_any_order_of_changes_leaves_what_a_dictionary_would_hold(client: redis.Redis, indexes: IndexStore) -> None:
    made = indexes.create(new_index(keep="vectors"))
    rng, truth = random.Random(17), dict[bytes, Entry]()
    for step in range(60):
        if rng.random() < 0.5:
            some = rng.sample(range(400), rng.randrange(1, 90))
            put = [tagged(entry(i, step, rng.randbytes(rng.randrange(1, 40))), rng.randrange(5)) for i in some]
            indexes.upsert(made, put, by=rng.choice(["", "a", "b"]))
            truth |= {one.id: one for one in put}
        else:
            for i in rng.sample(range(400), 40):
                gone = truth.pop(entry(i).id, None)
                assert indexes.remove(made, entry(i).id) == (gone is not None)
        assert held(indexes, made) == {key: one.row for key, one in truth.items()}
        assert_true(client)
    rows = indexes.rows(made, [*truth, b"sother"], tags=True)
    assert [None if row is None else row.tags for row in rows] == [one.tags or None for one in truth.values()] + [None]
    ids = [*truth, b"sother"]
    stored = [one.vector for one in truth.values()] + [None]
    assert indexes.vectors(made, ids, 1 << 20) == stored
    for most in (0, 1, 100, 1000):
        found = indexes.vectors(made, ids, most)
        lengths = [len(one or b"") for one in stored[: len(found) + 1]]
        assert found == stored[: len(found)]
        assert len(found) == 1 or sum(lengths[:-1]) <= most < sum(lengths)
    repeated = ids * (1 + MOST_VECTORS // len(ids))
    assert len(indexes.vectors(made, repeated, 1 << 30)) == MOST_VECTORS < len(repeated)
    assert_true(client)
    assert len(truth) > 100
    for one in truth:
        indexes.remove(made, one)
    there = indexes.look("i", made)
    assert there is not None
    assert (there[1].size, there[1].nbytes) == (0, 0)


def test_vectors_count_for_those_who_put_them_in(client: redis.Redis, indexes: IndexStore) -> None:
    """Codes and ids of vectors; what else an index takes counts for its owner."""
    account = Account(client)
    made = indexes.create(new_index(ttl=100), "maker")
    each = 8 + S + ENTRY_BYTES + 2 * len(entry(100).id)
    some = [entry(i) for i in range(100, 999)]
    account.allow("b", Quota(300 * each))
    indexes.upsert(made, some[0:100], by="maker")
    with pytest.raises(QuotaExceeded, match="key_bytes"):
        indexes.upsert(made, some[50:351], by="b")
    indexes.upsert(made, some[50:350], by="b")
    indexes.upsert(made, some[350:351], by="c")

    def kept() -> list[int]:
        assert_true(client)
        return [account.usage(who).nbytes for who in ("b", "c")]

    assert kept() == [300 * each, each]
    assert account.usage("maker").names == 1
    indexes.remove(made, some[0].id)  # the last vector, that of c, moves
    assert kept() == [300 * each, each]
    indexes.remove_many(made, [one.id for one in some[90:110]])
    assert kept() == [280 * each, each]
    indexes.remove(made, some[350].id)
    assert kept() == [280 * each, 0]
    assert indexes.renew(made, 200) is not None
    assert kept() == [280 * each, 0]
    indexes.delete("i")
    assert kept() == [0, 0]
    again = indexes.create(new_index(ttl=100), "maker")
    indexes.upsert(again, [entry(i) for i in range(10, 60)], by="b")
    pass_time(client)
    assert kept() == [0, 0]


def test_what_vectors_of_others_take_beside_themselves_is_held_against_the_limit_of_the_owner(
    client: redis.Redis, indexes: IndexStore
) -> None:
    """The first vector of an index takes a block of codes and a bucket of ids; the block counts for the owner."""
    account, grown = Account(client), 0
    for name, room in (("i", None), ("j", -1), ("j", 0)):
        made = indexes.find(name) or indexes.create(new_index(name=name), "maker")
        before = account.usage("maker").nbytes
        if room is not None:
            account.allow("maker", Quota(before + grown + room))
        if room == -1:
            with pytest.raises(QuotaExceeded, match=f"owner_bytes is {before + grown - 1}"):
                indexes.upsert(made, [entry(1)], by="b")
            assert account.usage("maker").nbytes == before
        else:
            indexes.upsert(made, [entry(1)], by="b")
            grown = account.usage("maker").nbytes - before
            assert grown > (BLOCK - 1) * (8 + S)
        assert_true(client)
    indexes.upsert(made, [entry(1)._replace(row=entry(2).row)], by="c")  # nothing begins
    account.allow("maker", Quota(10))
    indexes.upsert(made, [entry(1)], by="b")


@pytest.mark.parametrize("keep", ["codes", "vectors"])
def test_vectors_and_tags_count_for_those_who_put_them_in(
    client: redis.Redis, indexes: IndexStore, keep: Literal["codes", "vectors"]
) -> None:
    """Vectors for whoever has put them in last, sets of tags for whoever has first, whatever others do."""
    account, rng = Account(client), random.Random(5)
    truth, sets = dict[bytes, tuple[str, int, bytes]](), dict[bytes, tuple[str, int]]()
    made = indexes.create(new_index(keep=keep), "maker")
    for _ in range(40):
        who, some = rng.choice(["maker", "b", "c", ""]), rng.sample(range(3000), rng.randrange(1, 400))
        tags, text = rng.randrange(6).to_bytes(8, "little"), b'["%s"]' % (b"t" * rng.randrange(1, 9))
        match rng.randrange(3):
            case 0:
                put = [entry(i, vector=b"v" * rng.randrange(1, 40) if keep == "vectors" else b"") for i in some]
                put = [one._replace(row=tags + one.row[8:], tags=text if any(tags) else b"") for one in put]
                indexes.upsert(made, put, by=who)
                beside = 8 + S + ENTRY_BYTES + (ENTRY_BYTES if keep == "vectors" else 0)
                truth |= {one.id: (who, beside + 2 * len(one.id) + len(one.vector), tags) for one in put}
            case 1:
                there = [one for one in map(entry, some) if one.id in truth]
                put = [one._replace(row=tags + one.row[8:], tags=text if any(tags) else b"") for one in there]
                indexes.upsert(made, put, by=who, tags_alone=True)
                truth |= {one.id: (*truth[one.id][:2], tags) for one in there}
            case _:
                indexes.remove_many(made, [entry(i).id for i in some])
                truth = {key: one for key, one in truth.items() if key not in {entry(i).id for i in some}}
        used = {tags for *_, tags in truth.values() if any(tags)}
        kept = 2 * ENTRY_BYTES + 4 + len(text)
        sets = {tags: sets.get(tags, (who, kept)) for tags in used}
        assert_true(client)
        for owner in ("b", "c"):
            wanted = sum(nbytes for of, nbytes, _ in truth.values() if of == owner)
            wanted += sum(nbytes for of, nbytes in sets.values() if of == owner)
            assert account.usage(owner).nbytes == wanted
    assert len(truth) > BLOCK
    assert {of for of, _ in sets.values()} & {"b", "c"}
    account.allow("full", Quota(10))
    old = next(iter(truth))
    one = next(one for one in map(entry, range(3000)) if one.id == old)
    with pytest.raises(QuotaExceeded, match="key_bytes"):  # although the index would not grow
        indexes.upsert(made, [one._replace(vector=b"v" if keep == "vectors" else b"")], by="full")


def test_a_change_that_is_repeated_after_a_lost_reply_is_not_made_again(
    client: redis.Redis, indexes: IndexStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripts = {name: getattr(indexes, name) for name in ("_upsert", "_remove", "_create")}

    def lost(name: str, meanwhile: Callable[[], object]) -> None:
        def twice(**given: Any) -> Any:
            monkeypatch.setattr(indexes, name, scripts[name])
            scripts[name](**given)
            meanwhile()
            return scripts[name](**given)

        monkeypatch.setattr(indexes, name, twice)

    made = indexes.create(new_index())
    lost("_upsert", lambda: indexes.remove(made, entry(1).id))
    assert indexes.upsert(made, [entry(1), entry(2)])
    assert [*held(indexes, made)] == [entry(2).id]
    state = indexes.look("i", made)
    assert state is not None
    lost("_upsert", lambda: None)
    assert indexes.upsert(made, [entry(3)], revision=state[1].revision)
    lost("_remove", lambda: indexes.upsert(made, [entry(2)]))
    assert indexes.remove_many(made, [entry(2).id, entry(9).id]) == [True, False]
    assert {*held(indexes, made)} == {entry(2).id, entry(3).id}
    lost("_create", lambda: indexes.delete("j"))
    created = new_index("j")
    assert indexes.create(created) == created
    assert indexes.look("j") is None
    assert_true(client)


def test_nothing_is_left_of_an_index_that_is_deleted(client: redis.Redis, indexes: IndexStore) -> None:
    made = indexes.create(new_index(keep="vectors"))
    indexes.upsert(made, [entry(i, vector=b"v") for i in range(1000)])
    indexes.remove(made, entry(3).id)
    assert assert_true(client).names == 1
    assert indexes.delete("i")
    assert not indexes.delete("i")
    pass_time(client)
    assert keys(client) == set()
    with pytest.raises(Gone):
        indexes.upsert(made, [entry(1)])
    with pytest.raises(Gone):
        indexes.remove(made, b"s1")
    with pytest.raises(Gone):
        indexes.changes(made, NONE_KNOWN, 1)
    assert indexes.look("i", made) is None


def test_a_batch_without_room_is_refused_whole(client: redis.Redis) -> None:
    most = BLOCK * (8 + S) + 126 * (ENTRY_BYTES + 8 + KEY_BYTES + 44)  # a block, and ids
    indexes = IndexStore(client, Quota(most, 2))
    made = indexes.create(new_index())
    indexes.upsert(made, [entry(i) for i in range(20)])
    for replaced in (0, 20):
        with pytest.raises(QuotaExceeded, match=f"max_store_bytes is {most}"):
            indexes.upsert(made, [entry(i) for i in range(replaced, replaced + 140)])
        assert len(held(indexes, made)) == 20
    indexes.upsert(made, [entry(i, 1) for i in range(20)])  # the room is theirs already
    indexes.create(new_index("j", ttl=100))
    with pytest.raises(QuotaExceeded, match="max_store_names"):
        indexes.create(new_index("k"))
    assert assert_true(client).names == 2
    pass_time(client)
    indexes.upsert(made, [entry(i) for i in range(20, 100)])
    indexes.create(new_index("k", ttl=100))
    more = [entry(i) for i in range(100, 129)]
    with pytest.raises(QuotaExceeded):
        indexes.upsert(made, more)  # its 129th vector begins a block
    assert assert_true(client).names == 2


def test_all_tags_of_an_index_stay_short_enough_to_be_restored(client: redis.Redis, indexes: IndexStore) -> None:
    made = indexes.create(new_index())
    indexes.upsert(made, [tagged(entry(1), 1)])
    (state,) = client.scan_iter(match="*:state")
    client.hset(state, "tags", MOST_BYTES_OF_TAGS - 10)
    with pytest.raises(InvalidInput, match="all tags of index 'i' would take 26"):
        indexes.upsert(made, [entry(3), tagged(entry(2), 2)])
    assert len(held(indexes, made)) == 1
    indexes.upsert(made, [entry(3), tagged(entry(4), 1)])


def test_an_index_with_a_time_to_live_goes_whole(client: redis.Redis, indexes: IndexStore) -> None:
    made = indexes.create(new_index(keep="vectors", ttl=100))
    indexes.upsert(made, [entry(i, vector=b"v") for i in range(258)])
    for one in (b"s5", b"s256"):  # the second is then the last one, alone in its block
        assert indexes.remove(made, one)
    of_index = [key for key in keys(client) if b"{index:i}" in key and not key.endswith(b"receipts")]
    assert all(99 <= client.ttl(key) <= 101 for key in of_index)
    assert len(of_index) > 200
    later = indexes.renew(made, 500)
    assert later is not None
    found = indexes.look("i", made)
    assert found is not None
    assert found[0] == later
    assert all(499 <= client.ttl(key) <= 501 for key in of_index)
    for_ever = indexes.renew(later, None)
    assert for_ever is not None
    assert {client.ttl(key) for key in of_index} == {-1}
    pass_time(client)
    assert assert_true(client).names == 1
    assert indexes.renew(for_ever, 100)
    pass_time(client)
    assert indexes.find("i") is None
    assert assert_true(client) == Usage(0, 0)
    assert indexes.page("", None, 10) == ([], None)
    assert keys(client) == set()


def test_those_who_write_at_once_lose_nothing(indexes: IndexStore) -> None:
    made = indexes.create(new_index())

    def write(writer: int) -> None:
        for batch in range(5):
            first = 100 * (5 * writer + batch)
            indexes.upsert(made, [entry(i, writer) for i in range(first, first + 100)])
            assert indexes.remove(made, entry(first).id)

    at_once(4, write)
    assert held(indexes, made) == {entry(i).id: entry(i, i // 500).row for i in range(2000) if i % 100}


def test_changes_whose_replies_are_lost_are_made_once(tmp_path: Path) -> None:
    with valkey(tmp_path, *EVERY_WRITE) as url, wire(url) as cut, connect(cut.url, 5) as client:
        indexes = IndexStore(client)
        # The second time the scripts are known: else the reply that is lost says that they are not.
        for name in "ji":
            made = indexes.create(new_index(name))
            indexes.upsert(made, [entry(1)])
            indexes.remove(made, entry(1).id)
            assert indexes.renew(made, 900)
            if name == "j":
                indexes.delete("j")
        changes: list[Callable[[], object]] = [
            lambda: indexes.upsert(made, [entry(i) for i in range(130)]),
            lambda: indexes.remove(made, b"s3"),
            lambda: indexes.renew(made, 500) is not None,
            lambda: indexes.delete("i"),
        ]
        for lost, change in enumerate(changes):
            cut.lose_reply_to(b"EVALSHA")
            assert change() in (None, True)
            assert cut.lost == lost + 1
            if lost < 2:
                assert len(held(indexes, made)) == 130 - lost


def test_an_index_in_use_does_not_expire(
    client: redis.Redis, indexes: IndexStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(named, "_NOTE_SECONDS", 0.001)
    short, for_ever = indexes.create(new_index("short", ttl=1000)), indexes.create(new_index("ever"))
    before = client.get(indexes.key("ever"))
    with indexes.using(short, for_ever):
        for _ in range(3):
            client.expire(indexes.key("short"), 100)  # time goes by
            aged = short.model_copy(update={"expires_at": now() + timedelta(seconds=100)})
            client.set(indexes.key("short"), aged.stored, keepttl=True)
            until(lambda: client.ttl(indexes.key("short")) > 900)
    client.set(indexes.key("short"), aged.stored)
    assert client.get(indexes.key("short")) == aged.stored, "the use has ended"
    assert client.get(indexes.key("ever")) == before
    with indexes.using(short):
        indexes.delete("short", lambda *_: None)
        again = indexes.create(new_index("short", ttl=10))
    assert indexes.find("short") == again
