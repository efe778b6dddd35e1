"""What a replica has when it takes the place of its server.

A server that is killed on one machine loses nothing: what it has sent still comes over. So the tests kill the replica
before, or stop it.
"""

import signal
from collections.abc import Callable, Iterator
from contextlib import suppress

import numpy as np
import pytest

from app.container import Container
from app.core.indexes.options import Batch, DeleteOptions, Filter, TagChanges
from app.jobs.jobs import Jobs
from app.services.aliases import AskedAlias
from app.settings import Settings
from app.store import identity
from app.store.account import Account, Quota
from app.store.connection import connect
from app.store.datasets import DatasetStore
from app.store.errors import StoreUnavailable
from app.store.indexes import IndexStore
from app.store.keys import KeyStore, Role, draw_key
from app.store.maps import MapStore
from service_tests.clusters import Pair
from service_tests.servers import until
from service_tests.services.crowds import GMM, crowded, remove, service_with
from service_tests.store.charged import building, put_dataset
from service_tests.store.new_indexes import entry, new_index
from service_tests.store.new_maps import new

pytestmark = pytest.mark.nightly
NAMES = [f"m{i}" for i in range(40)]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    pair = Pair(tmp_path_factory.mktemp("pair"))
    yield pair
    pair.close()


@pytest.fixture
def pair(servers: Pair) -> Pair:
    """A primary and a replica that follows it, both empty."""
    servers.settle()
    with servers.primary.client() as client:
        client.flushall()
    return servers


def test_nothing_that_a_replica_has_confirmed_is_lost(pair: Pair) -> None:
    """Of maps that were put while the replica was there, and then while it was not."""
    acknowledged = []
    for timeout, names in ((5, NAMES[:3]), (0.2, NAMES[3:])):
        with connect(pair.url, timeout, replicas=1) as client:
            for name in names:
                with suppress(StoreUnavailable):
                    MapStore(client).create(new(name))
                    acknowledged.append(name)
        if timeout > 1:
            until(lambda: pair.replica.says("ZCARD", "bochner:maps") == 3)
            pair.replica.kill()
    pair.fail_over()
    with connect(pair.url, 5) as client:
        found = {one.name: one for one in MapStore(client).page("", None, 100)[0]}
        for one in found.values():
            MapStore(client).read_all(one)
    assert acknowledged == [name for name in NAMES if name in found] == NAMES[:3]


def test_every_change_that_a_client_is_told_of_is_confirmed_also_where_it_was_made_before(pair: Pair) -> None:
    made, index = draw_key(name="k", role=Role.read, quota=None), new_index()
    with connect(pair.url, 5) as unconfirmed, connect(pair.url, 0.4, replicas=1) as client:
        maps, datasets, indexes, keys = MapStore(client), DatasetStore(client), IndexStore(client), KeyStore(client, 9)
        for name in ("there", "gone"):
            MapStore(unconfirmed).create(new(name))
        assert MapStore(unconfirmed).delete("gone")
        assert put_dataset(unconfirmed, "d", ttl=None)
        job = building(unconfirmed, "b")
        IndexStore(unconfirmed).create(index)
        there, of_rows = maps.find("there"), datasets.find("d")
        assert there is not None
        assert of_rows is not None
        changes: dict[str, Callable[[], object]] = {
            "a map": lambda: maps.create(new("m")),
            "a map that is there": lambda: maps.renew(there, None),
            "the life of a map": lambda: maps.renew(there, 1000),
            "a deletion": lambda: maps.delete("there"),
            "a deletion that was made": lambda: maps.delete("gone"),
            "a dataset": lambda: put_dataset(client, "e"),
            "a dataset that is there": lambda: datasets.renew(of_rows, None),
            "a job": lambda: Jobs(client, 9, 60).submit("walk", {}),
            "a cancellation": lambda: Jobs(client, 9, 60).cancel(job),
            "an index": lambda: indexes.create(new_index("j")),
            "an index that is there": lambda: indexes.create(index),
            "an index that is put again": lambda: indexes.renew(index, None),
            "vectors": lambda: indexes.upsert(index, [entry(1)]),
            "a vector that is removed": lambda: indexes.remove(index, b"s1"),
            "a deleted index": lambda: indexes.delete("i"),
            "a key": lambda: keys.create(made.key),
            "a revoked key": lambda: keys.revoke(made.key.id),
            "a quota": lambda: Account(client).allow("k", Quota(9, 9)),
            "the end of a quota": lambda: Account(client).allow("k", Quota()),
            "an accepted store": lambda: identity.accept(client),
        }
        pair.replica.kill(signal.SIGSTOP)
        taken, refused = list[str](), dict[str, str]()
        for what, change in changes.items():
            try:
                change()
                taken.append(what)
            except StoreUnavailable as error:
                refused[what] = str(error)
        # Who reads, or notes a use, waits for nobody.
        assert maps.find("m") is not None
        pair.replica.kill(signal.SIGCONT)
        assert taken == []
        # On a busy machine the server itself may be too slow.
        words = "0 of 1 replicas of the store have confirmed the change in time"
        assert sum(told.startswith(words) for told in refused.values()) > 9, refused
        for again in (changes["a map that is there"], changes["a deletion that was made"], changes["a key"]):
            again()


def test_a_request_that_changes_nothing_is_confirmed_as_well(pair: Pair) -> None:
    """A first try may have changed it, and was not confirmed."""
    first = service_with(pair.url, GMM)
    first.index_upserts.upsert("i", lambda *_: Batch(crowded(np.random.default_rng(1), 3), [0, 1, 2], None))
    first.aliases.put("a", AskedAlias(map="m"))
    service = Container(Settings(redis_url=pair.url, store_replicas=1, store_timeout=0.8))
    changes: tuple[Callable[[], object], ...] = (
        lambda: service.index_upserts.change_tags("i", TagChanges(ids=(0,), remove_tags=("gone",))),
        lambda: remove(service, "i", DeleteOptions(filter=Filter(all=("gone",)))),
        lambda: service.aliases.put("a", AskedAlias(map="m")),
        lambda: service.aliases.delete("gone"),
    )
    pair.replica.kill(signal.SIGSTOP)
    try:
        assert service.aliases.get("a").map == "m"
        for change in changes:
            with pytest.raises(StoreUnavailable, match="replicas of the store have confirmed"):
                change()
    finally:
        pair.replica.kill(signal.SIGCONT)
