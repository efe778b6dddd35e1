"""The account says what the store holds, and refuses what has no room."""

from typing import Any

import pytest
import redis

from app.jobs import scripts, worker
from app.jobs.checkpoints import Checkpoint
from app.jobs.jobs import Jobs
from app.jobs.record import NotMine
from app.store import pieces
from app.store.account import UNCOMMITTED_TTL, UNLIMITED, Account, Entry, Quota, Usage
from app.store.datasets import DatasetStore
from app.store.errors import QuotaExceeded, StoreFull, StoreUnavailable
from app.store.maps import MapStore
from app.store.named import NameTaken
from app.store.pieces import PIECE_BYTES
from service_tests.checks import keys
from service_tests.jobs.site import attempt
from service_tests.ledger import assert_true, pass_time
from service_tests.servers import until
from service_tests.store.charged import building, put_dataset
from service_tests.store.new_maps import new

NOTHING = Usage(0, 0)


def test_maps_and_datasets_are_entered_and_taken_out(client: redis.Redis) -> None:
    maps = MapStore(client)
    made = maps.create(new(megabytes=1.5))
    assert assert_true(client) == (sum(made.lengths.values()), 1)
    assert put_dataset(client, "d")
    assert assert_true(client).names == 2
    with pytest.raises(NameTaken):
        maps.create(new(seed=1))
    assert not put_dataset(client, "d", 20)
    assert assert_true(client).names == 2
    maps.delete("m")
    DatasetStore(client).delete("d")
    assert assert_true(client) == NOTHING
    assert not client.exists("bochner:account", "bochner:account:entries", "bochner:account:ends")


def test_what_expires_is_taken_out(client: redis.Redis) -> None:
    put_dataset(client, "brief", ttl=1)
    put_dataset(client, "stays", 20)
    put_dataset(client, "kept", 30, ttl=1)
    datasets = DatasetStore(client)
    there = datasets.find("kept")
    assert there is not None
    datasets.renew(there, None)
    until(lambda: Account(client).usage().names == 2)
    assert assert_true(client).names == 2
    there = datasets.find("stays")
    assert there is not None
    datasets.renew(there, 1000)
    pass_time(client)
    assert assert_true(client).names == 1


def test_the_store_is_full_at_its_limits(client: redis.Redis) -> None:
    size = sum(MapStore(client).create(new()).lengths.values())
    brimful = MapStore(client, Quota(2 * size, 3))
    brimful.create(new("n"))
    with pytest.raises(QuotaExceeded) as refused:
        brimful.create(new("o"))
    assert (refused.value.limit, refused.value.allowed) == ("max_store_bytes", 2 * size)
    assert f"{size} bytes more were to be kept beside {2 * size}" in str(refused.value)
    with pytest.raises(QuotaExceeded):
        brimful.check_room(1)
    brimful.delete("n")
    brimful.check_room(size)
    brimful.create(new("o"))
    put_dataset(client, "d", 1)
    with pytest.raises(QuotaExceeded) as refused:
        put_dataset(client, "e", 1, quota=Quota(None, 3))
    assert (refused.value.limit, refused.value.allowed) == ("max_store_names", 3)
    assert assert_true(client).names == 3
    assert {client.ttl(key) for key in keys(client)} == {-1}


def test_an_owner_has_limits_of_its_own(client: redis.Redis) -> None:
    account, maps = Account(client), MapStore(client)
    size = sum(maps.create(new("other"), owner="b").lengths.values())
    account.allow("a", Quota(3 * size, 2))
    maps.create(new("m"), owner="a")
    put_dataset(client, "d", 1, owner="a")
    assert account.usage("a").names == 2
    with pytest.raises(QuotaExceeded, match="key_names is 2"):
        maps.create(new("n"), owner="a")
    account.allow("a", Quota(size, None))
    with pytest.raises(QuotaExceeded, match=f"key_bytes is {size}"):
        maps.check_room(1, "a")
    maps.create(new("n"), owner="b")
    DatasetStore(client).delete("d")
    maps.delete("m")
    maps.create(new("m"), owner="a")
    account.allow("a", UNLIMITED)
    maps.create(new("o"), owner="a")
    assert account.usage("a") == (2 * size, 2)
    assert_true(client)


def test_no_owner_has_more_names_than_it_leaves_to_others(client: redis.Redis) -> None:
    for owner, n in (("a", 5), ("b", 2), ("c", 1)):
        for i in range(n):
            put_dataset(client, f"{owner}{i}", owner=owner, quota=Quota(None, 9))
        with pytest.raises(QuotaExceeded, match="key_names is"):
            put_dataset(client, "more", owner=owner, quota=Quota(None, 9))


@pytest.mark.parametrize("how", ["cancelled", "failed", "deleted"])
def test_what_was_promised_is_given_back(client: redis.Redis, how: str) -> None:
    job = building(client, "m", promised=1 << 20)
    assert Account(client).usage().nbytes > 1 << 20
    if how == "failed":
        mine = attempt(client, job)
        mine._run("end", "failed", 60, '{"reason": "time", "detail": "it took long"}', "")
        assert_true(client)
        MapStore(client).delete("m")
    else:
        Jobs(client, 100, 60).cancel(job)
    assert assert_true(client).names == 1
    pass_time(client)
    assert assert_true(client) == NOTHING


def test_everything_of_a_job_counts_as_long_as_it_is_kept(client: redis.Redis) -> None:
    jobs = Jobs(client, 100, 60)
    sent = bytes(PIECE_BYTES + 5)
    job = jobs.submit("walk", {"steps": 1}, attachments={"x": sent}, checkpoint=Checkpoint(b"begun", 0, 1), owner="a")
    assert assert_true(client).nbytes > len(sent)
    mine = attempt(client, job.id)
    for state in (b"further", bytes(2 * PIECE_BYTES)):
        mine._next_checkpoint = 0
        mine.checkpoint(lambda: state)  # noqa: B023
        assert_true(client)
    written = mine.write(f"bochner:{{job:{job.id}}}:result:ab", b"found")
    mine._run("end", "succeeded", 60, "", f'[["text/plain", "bochner:{{job:{job.id}}}:result:ab", 1]]', keys=written)
    assert assert_true(client) == (5, 1)
    assert Account(client).usage("a") == (5, 1)
    pass_time(client)
    assert assert_true(client) == NOTHING


def test_a_job_without_room_is_not_taken_on(client: redis.Redis) -> None:
    with pytest.raises(QuotaExceeded):
        Jobs(client, 100, 60, Quota(1000, None)).submit("walk", {}, attachments={"x": bytes(1001)})
    with pytest.raises(QuotaExceeded):
        building(client, "m", Quota(None, 1))
    with pytest.raises(QuotaExceeded):
        building(client, "m", Quota(1000, None), promised=1001)
    assert keys(client) == set()
    assert assert_true(client) == NOTHING


def test_what_a_put_that_died_has_entered_goes_with_its_pieces(client: redis.Redis) -> None:
    brimful = Account(client, Quota(300, 1))
    deadline = brimful.charge([Entry("bochner:{map:m}:0123", 300, 1)], "a")
    now = int(client.time()[0])
    assert now < deadline <= now + UNCOMMITTED_TTL
    assert Account(client).usage("a") == (300, 1)
    assert brimful.charge([Entry("bochner:{map:m}:0123", 300, 1)], "a") == deadline, "asked again after a lost reply"
    assert Account(client).usage("a") == (300, 1)
    pass_time(client)
    assert assert_true(client) == NOTHING


def test_the_result_of_a_job_that_is_written_several_times_counts_once(
    client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Jobs(client, 9, 60).submit("walk", {}, owner="a")
    context, before, failures = attempt(client, job.id), Account(client).usage("a").nbytes, list[str]()
    write = pieces.write

    def fail_at_first(*given: Any) -> list[str]:
        if len(failures) < 5:
            failures.append("full")
            raise StoreFull("there is no room on the disk")
        return write(*given)

    monkeypatch.setattr(pieces, "write", fail_at_first)
    monkeypatch.setattr("time.sleep", lambda _: None)
    Account(client).allow("a", Quota(before + 1500, None))
    worker._write_end(client, context, 60, {"text/plain": bytes(1000)})
    assert Jobs(client, 9, 60).get(job.id).state == "succeeded"
    assert Account(client).usage("a").nbytes - before <= 1500


def test_the_result_of_a_job_stays_whose_end_was_stored_though_the_reply_was_lost(
    client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, run = Jobs(client, 9, 60).submit("walk", {}), scripts.run

    def lose(of: redis.Redis, name: str, *given: Any, **named: Any) -> Any:
        told = run(of, name, *given, **named)
        if name == "end":
            raise StoreUnavailable("no reply")
        return told

    monkeypatch.setattr(scripts, "run", lose)
    monkeypatch.setattr("time.sleep", lambda _: None)
    with pytest.raises(NotMine):
        worker._write_end(client, attempt(client, job.id), 60, {"text/plain": b"result"})
    monkeypatch.undo()
    (body,) = Jobs(client, 9, 60).result(job.id)
    assert b"".join(Jobs(client, 9, 60).parts(job.id, body)) == b"result"


def test_an_end_that_arrives_late_does_not_end_a_job_without_its_result(client: redis.Redis) -> None:
    job = Jobs(client, 9, 60).submit("walk", {})
    context = attempt(client, job.id)
    late = context.write(scripts.key(job.id, "result:1"), b"first")
    context.discard_written()
    assert not client.exists(*late)
    assert scripts.run(client, "end", job.id, context.message, "succeeded", 60, "", b"[]", keys=late) == 0
    worker._write_end(client, context, 60, {"text/plain": b"second"})
    assert Jobs(client, 9, 60).get(job.id).state == "succeeded"
    assert_true(client)
