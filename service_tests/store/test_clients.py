"""A real cluster, as the store of everything."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.jobs.jobs import Jobs
from app.jobs.queue import Queue
from app.store import identity
from app.store.account import Account, Quota
from app.store.backup import BackupFailed, back_up
from app.store.clients import Client
from app.store.connection import connect, connect_loop
from app.store.datasets import DatasetStore
from app.store.errors import QuotaExceeded, StoreUnavailable
from app.store.indexes import IndexStore
from app.store.keys import Keys, KeyStore, Role, changed, drawn
from app.store.maps import MapStore
from app.store.rates import RateStore, Taken
from app.store.restore import restore
from app.store.servers import check_writable, keeping
from service_tests.clusters import Cluster, cluster
from service_tests.servers import EVERY_WRITE, until, valkey
from service_tests.store.charged import building, put_dataset
from service_tests.store.new_indexes import entry, held, new_index
from service_tests.store.new_maps import new

pytestmark = pytest.mark.nightly
NAMES = sorted(f"m{i}" for i in range(30))


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("cluster")) as here:
        yield here


@pytest.fixture
def client(nodes: Cluster) -> Iterator[Client]:
    """A client of the cluster, which is empty."""
    nodes.settle()
    with connect(nodes.url, 5, replicas=1) as client:
        for node in nodes.primaries():
            node.says("FLUSHALL")
        yield client


def test_maps_datasets_and_jobs_are_spread_and_listed_together_and_leave_nothing(
    nodes: Cluster, client: Client
) -> None:
    maps, datasets, jobs = MapStore(client), DatasetStore(client), Jobs(client, 100, 60)
    for name in NAMES:
        maps.create(new(name))
        put_dataset(client, name, 3)
        building(client, f"b-{name}")
    assert all(node.says("DBSIZE") > 90 for node in nodes.primaries())
    assert [one.name for one in maps.page("m", None, 100)[0]] == NAMES
    assert [one.name for one in datasets.page("", "m1", 3)[0]] == ["m10", "m11", "m12"]
    assert len(jobs.page(None, None, 100).jobs) == jobs.tally().queued == 30
    assert Account(client).usage().names == 30 + 30 + 2 * 30
    with pytest.raises(QuotaExceeded, match="beside 120; max_store_names is 120"):
        MapStore(client, Quota(None, 120)).create(new("one-more"))
    found = maps.find("m7")
    assert found is not None
    assert {*maps.read_all(found)} == {"frequencies", "weights"}
    for name in NAMES:
        assert maps.delete(name)
        assert not maps.delete(name)
        assert datasets.delete(name)
    for job in jobs.page(None, None, 100).jobs:
        jobs.cancel(job.id)
    assert Account(client).usage().nbytes == 0


def test_workers_find_the_jobs_of_every_place_once(client: Client) -> None:
    jobs, queue = Jobs(client, 100, 60), Queue(client, 60)
    queue.tend()
    ids = {jobs.submit("walk", {}).id for _ in range(20)}
    read = [queue.next(5) for _ in ids]
    assert {one.job_id for one in read if one is not None} == ids
    assert queue.next(0.1) is None
    assert jobs.tally().running == 20


def test_an_index_is_changed_at_once(client: Client) -> None:
    indexes = IndexStore(client)
    for name in ("i", "j", "k"):
        manifest = indexes.create(new_index(name, keep="vectors"))
        indexes.upsert(manifest, [entry(i, vector=b"v%d" % i) for i in range(300)])
        assert indexes.remove(manifest, b"s7")
        assert len(held(indexes, manifest)) == 299
        assert indexes.vectors(manifest, [b"s8", b"s7"]) == [b"v8", None]
        looked = indexes.look(name, manifest)
        assert looked is not None
        assert looked[1].size == 299
    assert [one.name for one in indexes.page("", None, 9)[0]] == ["i", "j", "k"]
    assert indexes.delete("i")


def test_keys_and_rates_are_those_of_one_store(nodes: Cluster, client: Client) -> None:
    key = drawn("k", Role.read, 1, 2, 100).key
    KeyStore(client, 9).create(key)
    Account(client).allow(key.id, Quota(100))

    async def ask() -> tuple[Keys, list[Taken]]:
        loop_client = connect_loop(nodes.url, 5)
        try:
            rates = RateStore(loop_client)
            return await changed(loop_client, Keys({}, None)), [await rates.take(key.id, 0.01, 2, 2) for _ in range(2)]
        finally:
            await loop_client.aclose()

    found, taken = asyncio.run(ask())
    assert found.by_id == {key.id: key}
    assert [one.requests for one in taken] == [2, 0]
    with pytest.raises(QuotaExceeded, match="key_bytes is 100"):
        put_dataset(client, "d", 10, owner=key.id)


def test_a_backup_has_all_places_and_goes_into_a_cluster_and_nowhere_else(
    nodes: Cluster, client: Client, tmp_path: Path
) -> None:
    identity.settle(client)
    maps, jobs, path = MapStore(client), Jobs(client, 100, 60), tmp_path / "backup"
    for name in NAMES:
        maps.create(new(name))
        building(client, f"b-{name}")
    ids = [job.id for job in jobs.page(None, None, 100).jobs]
    assert back_up(client, path) > 200
    with pytest.raises(BackupFailed, match="The store is not empty"):
        restore(client, path)
    for node in nodes.primaries():
        node.says("FLUSHALL")
    data = path.read_bytes()
    (tmp_path / "cut").write_bytes(data[: data.index(b"REDIS00", 1)])
    with pytest.raises(BackupFailed, match=r"it has [5-6] of 16 places of a cluster"):
        restore(client, tmp_path / "cut")
    assert restore(client, path) > 200
    identity.settle(client)
    for name in NAMES:
        found = maps.find(name)
        assert found is not None
        maps.read_all(found)
    assert [job.id for job in jobs.page(None, None, 100).jobs] == ids
    queue = Queue(client, 60)
    assert {one.job_id for one in (queue.next(1) for _ in ids) if one is not None} == {*ids}
    with valkey(tmp_path, *EVERY_WRITE) as url, connect(url, 5) as single:
        with pytest.raises(BackupFailed, match="of a cluster, and the store is one server"):
            restore(single, path)
        MapStore(single).create(new("m"))
        back_up(single, tmp_path / "single")
    with pytest.raises(BackupFailed, match="of one server, and the store is a cluster"):
        restore(client, tmp_path / "single")


def test_a_part_that_is_away_takes_nothing_else_along_and_comes_back_with_all_that_was_confirmed(
    nodes: Cluster, client: Client
) -> None:
    identity.settle(client)
    maps = MapStore(client)
    for name in NAMES:
        maps.create(new(name))
    nodes.may_fail_over(False)
    killed = nodes.primaries()[0]
    killed.kill()
    there = [name for name in NAMES if _is_there(maps, name)]
    assert 10 <= len(there) < 30
    assert any("places of the store take no writes" in one for one in check_writable(client))
    assert "1 of 3 primaries" in " ".join(keeping(client).warnings)
    nodes.may_fail_over(True)
    until(lambda: all(_is_there(maps, name) for name in NAMES))
    for name in NAMES:
        found = maps.find(name)
        assert found is not None
        maps.read_all(found)
    assert "has 0 replicas, and store_replicas is 1" in " ".join(keeping(client).warnings)
    killed.start()
    nodes.settle()
    until(lambda: check_writable(client) == [])
    for name in NAMES:
        assert maps.delete(name)


def _is_there(maps: MapStore, name: str) -> bool:
    try:
        return maps.find(name) is not None
    except StoreUnavailable:
        return False
