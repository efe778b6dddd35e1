"""A real cluster: what only one shows of indexes and backups."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.jobs.jobs import Jobs
from app.jobs.worker import Queue
from app.store import identity
from app.store.account import Account, Quota
from app.store.backup import BackupFailed, back_up, restore
from app.store.connection import MANY, Client, connect, inside
from app.store.errors import QuotaExceeded
from app.store.identity import StoreReplaced
from app.store.indexes import ENTRY_BYTES, IndexStore
from app.store.maps import MapStore
from service_tests.clusters import Cluster, cluster
from service_tests.servers import EVERY_WRITE, valkey
from service_tests.store.charged import building
from service_tests.store.new_indexes import S, entry, held, new_index
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


def test_an_index_is_changed_at_once(client: Client) -> None:
    indexes = IndexStore(client)
    for name in ("i", "j", "k"):
        manifest = indexes.create(new_index(name, keep="vectors"))
        indexes.upsert(manifest, [entry(i, vector=b"v%d" % i) for i in range(300)])
        assert indexes.remove(manifest, b"s7")
        assert len(held(indexes, manifest)) == 299
        assert indexes.vectors(manifest, [b"s8", b"s7"], 100) == [b"v8", None]
        looked = indexes.look(name, manifest)
        assert looked is not None
        assert looked[1].size == 299
    assert [one.name for one in indexes.page("", None, 9)[0]] == ["i", "j", "k"]
    assert indexes.delete("i")


def test_a_quota_counts_what_is_in_all_places(client: Client) -> None:
    indexes, account = IndexStore(client), Account(client)
    made, some = [indexes.create(new_index(name)) for name in ("i", "j", "k")], [entry(i) for i in range(300)]
    for one in made:
        indexes.upsert(one, some, by="b")
    used = account.usage("b").nbytes
    account.allow("b", Quota(used + 100, None))
    for one in made:
        indexes.upsert(one, some, by="b")  # takes no more
    indexes.upsert(made[0], [entry(300)], by="b")
    for one in made:
        with pytest.raises(QuotaExceeded, match=f"key_bytes is {used + 100}"):
            indexes.upsert(one, [entry(301)], by="b")
    whole = IndexStore(client, Quota(account.usage().nbytes + 100, None))
    with pytest.raises(QuotaExceeded, match="max_store_bytes"):
        whole.upsert(made[1], [entry(i) for i in range(301, 600)])
    assert account.usage("b").nbytes == used + 8 + S + ENTRY_BYTES + 2 * len(entry(300).id)


def test_a_backup_during_which_slots_move_is_refused(nodes: Cluster, client: Client, tmp_path: Path) -> None:
    identity.settle(client)
    MapStore(client).create(new("m"))
    first, second, *_ = nodes.primaries()
    with first.client() as node:
        slot = node.cluster("NODES")[f"127.0.0.1:{first.port}"]["slots"][0][0]
    first.says("CLUSTER", "SETSLOT", slot, "MIGRATING", second.says("CLUSTER", "MYID").decode())
    with pytest.raises(BackupFailed, match="slots of the cluster moved"):
        back_up(client, tmp_path / "moving")
    first.says("CLUSTER", "SETSLOT", slot, "STABLE")
    assert back_up(client, tmp_path / "still")


def test_a_cluster_whose_first_place_came_back_empty_is_known_to_every_process(
    nodes: Cluster, client: Client, tmp_path: Path
) -> None:
    identity.settle(client)
    identity.require_marks(client)
    MapStore(client).create(new("m"))
    client.delete(inside(MANY.roots[0], identity.KEY))
    with connect(nodes.url, 5, replicas=1) as fresh:
        for look in (identity.settle, identity.require_marks):
            with pytest.raises(StoreReplaced, match="came back without"):
                look(fresh)
        with pytest.raises(BackupFailed, match="came back without"):
            back_up(fresh, tmp_path / "file")
        identity.accept(fresh)
        identity.settle(fresh)


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
        identity.settle(single)
        MapStore(single).create(new("m"))
        back_up(single, tmp_path / "single")
    with pytest.raises(BackupFailed, match="of one server, and the store is a cluster"):
        restore(client, tmp_path / "single")
