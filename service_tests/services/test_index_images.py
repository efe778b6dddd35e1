"""Each process has the codes of an index in memory, as they are in the store whenever it is asked."""

import gc
import itertools
import threading
import weakref
from typing import Any

import numpy as np
import pytest
import redis
from scipy.sparse import csr_array

from app.container import Container
from app.core.arrays import Rows
from app.core.errors import TooLarge
from app.core.indexes.options import Batch, CheckCount, SearchOptions
from app.core.progress import Progress
from app.core.spec import MapSpec
from app.services import index_images, index_search, index_vectors
from app.services.asked import NOTHING, AskedSpec
from app.services.indexes import AskedIndex
from app.settings import Settings
from app.store.errors import StoreUnavailable
from app.store.indexes import IndexStore, Part

SPEC = MapSpec.model_validate(
    {"input_dim": 3, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "s": 32, "seed": 1}
)
BATCH = 200
ROWS = np.tile([1.0, 2.0, 0.5], (1000, 1))


@pytest.fixture
def url(client: redis.Redis, store_url: str) -> str:
    """An empty store."""
    assert client.dbsize() == 0
    return store_url


def process(url: str, cache_bytes: int = 1 << 30) -> Container:
    """The services as a process of their own has them."""
    return Container(Settings(redis_url=url, cache_bytes=cache_bytes))


def made(services: Container, name: str) -> str:
    """An index over a map."""
    services.map_creation.create("m", AskedSpec(SPEC, NOTHING), Progress())
    services.indexes.create(name, AskedIndex(map="m", bands=8, rows_per_band=1), None)
    return name


def upsert(services: Container, name: str, ids: list[object], tag: str | None = None) -> None:
    def read(_: int, __: CheckCount) -> Batch:
        return Batch(ROWS[: len(ids)], ids, [tag] * len(ids))

    assert services.index_upserts.upsert(name, read) == (ids, [], [], ())


def found(services: Container, name: str, tag: str | None = None) -> set[object]:
    (result,), *_ = services.index_vectors.search(name, lambda _: (SearchOptions(k=1000, tag=tag), ROWS[:1]))
    return {*result["ids"]}


def test_what_one_process_has_put_every_other_finds_at_once(url: str) -> None:
    processes = [process(url) for _ in range(3)]
    name, there = made(processes[0], "shared"), set[object]()
    for step in range(6):
        writer, ids = processes[step % 3], [f"{step}-{i}" if i % 3 else i for i in range(20 * step)]
        upsert(writer, name, [*ids])
        there |= {*ids}
        for gone in sorted(map(str, there))[::17]:
            one: int | str = int(gone) if gone.isdigit() else gone
            processes[(step + 1) % 3].index_vectors.remove(name, one)
            there.remove(one)
        assert all(found(one, name) == there for one in processes)
    for tag, writer in zip("abc", processes, strict=True):  # one change at a time, of the same vector
        upsert(writer, name, ["0"], tag)
        assert all(found(one, name, tag) == {"0"} for one in processes)


def test_a_store_that_was_put_back_is_read_anew(url: str) -> None:
    service = process(url)
    name = made(service, "back")
    upsert(service, name, [*range(300)])
    with redis.Redis.from_url(url) as store:
        before = {key: store.dump(key) for key in store.scan_iter()}
        upsert(service, name, [0, "gone"])
        assert found(service, name) == {*range(300), "gone"}
        store.flushall()
        for key, value in before.items():
            store.restore(key, 0, value)
    assert found(service, name) == {*range(300)}
    upsert(service, name, [0, "new"])
    assert found(service, name) == {*range(300), "new"}


@pytest.mark.parametrize("nbytes", [1, 100, 1 << 20])
def test_exact_similarities_are_the_same_however_much_is_read_at_once(
    url: str, monkeypatch: pytest.MonkeyPatch, nbytes: int
) -> None:
    for limit in ("_BYTES_AT_ONCE", "_BYTES_COMPARED"):
        monkeypatch.setattr(index_search, limit, nbytes)
    service, rows = process(url), np.random.default_rng(3).random((60, 3))
    service.map_creation.create("m", AskedSpec(SPEC, NOTHING), Progress())
    service.indexes.create("kept", AskedIndex(map="m", keep="vectors"), None)
    for first in range(0, 60, 20):  # dense and sparse by turns
        some: Rows = rows[first : first + 20] if first % 40 else csr_array(rows[first : first + 20])
        batch = Batch(some, [*range(first, first + 20)], None)
        service.index_upserts.upsert("kept", lambda *_, batch=batch: batch)
    results, *_ = service.index_vectors.search("kept", lambda _: (SearchOptions(k=60), rows[:3]))
    exact = np.minimum(rows[:3, None], rows).sum(2) / np.maximum(rows[:3, None], rows).sum(2)
    for one, of_query in zip(results, exact, strict=True):
        order = np.argsort(-of_query)
        assert one["ids"] == order.tolist()
        np.testing.assert_allclose(one["exact"], of_query[order], rtol=1e-12)


def test_only_blocks_that_have_changed_are_read_again(url: str) -> None:
    writer, reader = process(url), process(url)
    name = made(writer, "blocks")
    for first in range(0, 1000, BATCH):
        upsert(writer, name, [*range(first, first + BATCH)])
    with redis.Redis.from_url(url) as store:
        sent = []
        for changed in (0, 1, 1):
            upsert(writer, name, [*range(changed)])
            before = store.info("stats")["total_net_output_bytes"]
            assert len(found(reader, name)) == 1000
            sent.append(store.info("stats")["total_net_output_bytes"] - before)
    # A thousand vectors take 40 bytes each and their ids, those of a block and what the store says of itself a sixth.
    assert sent[0] > 42_000
    assert max(sent[1:]) < 15_000


def test_no_search_sees_half_of_a_batch(url: str) -> None:
    writer, reader = process(url), process(url)
    name = made(writer, "whole")
    ids: list[object] = [*range(BATCH)]
    upsert(writer, name, ids, "0")
    done, seen = threading.Event(), list[int]()

    def search() -> None:
        while not done.is_set():
            seen.extend(len(found(reader, name, str(tag))) for tag in range(15))

    searching = [threading.Thread(target=search) for _ in range(2)]
    for one in searching:
        one.start()
    for tag in range(1, 15):
        upsert(writer, name, ids, str(tag))
    done.set()
    for one in searching:
        one.join()
    assert len(seen) >= 30
    assert {*seen} == {0, BATCH}


def test_a_search_ends_although_the_index_changes_all_the_time(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Something in each block has changed whenever the blocks are read; ten of them are too many for a small read."""
    writer, reader = process(url), process(url)
    name = made(writer, "changing")
    everything: list[object] = [*range(1000)]
    upsert(writer, name, everything)
    read, n_changes = IndexStore.changes, itertools.count()

    def change_and_read(store: IndexStore, *asked: Any) -> Part:
        upsert(writer, name, everything[::100], f"{next(n_changes)}")
        return read(store, *asked)

    monkeypatch.setattr(IndexStore, "changes", change_and_read)
    assert found(reader, name) == {*everything}
    assert found(reader, name, "0") == {*everything[::100]}
    monkeypatch.setattr(index_images, "_MOST_BYTES_AT_ONCE", 1)
    monkeypatch.setattr(index_images, "_BYTES_AT_ONCE", 1)
    monkeypatch.setattr(index_images, "_READING_SECONDS", 0.05)
    upsert(writer, name, everything)
    with pytest.raises(StoreUnavailable, match="index 'changing' changes faster than it can be read"):
        found(reader, name)


def test_a_check_ends_although_the_index_changes_all_the_time(
    url: str, client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looks at each of the eight blocks once, though the first one has changed whenever a block is read."""
    services = process(url)
    name = made(services, "checked")
    upsert(services, name, [*range(1000)])
    store = IndexStore(client)
    manifest = store.find(name)
    assert manifest is not None
    read, seen = IndexStore.changes, list[int]()

    def change_and_read(store: IndexStore, *asked: Any) -> Part:
        upsert(services, name, [0], str(len(seen)))
        part = read(store, *asked)
        seen.extend(part.blocks)
        return part

    monkeypatch.setattr(IndexStore, "changes", change_and_read)
    store.verify(manifest)
    assert seen == [*range(8)]


def test_long_ids_count_when_they_are_put(url: str, client: redis.Redis) -> None:
    """Codes alone would fit. An index that an earlier version has let grow is refused, and read once for that."""
    small, large = process(url, cache_bytes=100_000), process(url)
    name = made(small, "long")
    ids: list[object] = [f"{i:0900d}" for i in range(BATCH)]
    upsert(small, name, ids[:50])
    with pytest.raises(TooLarge, match=r"would take \d+ bytes of memory; such vectors may be 101 at most") as refused:
        upsert(small, name, ids)
    assert refused.value.value > 180_000
    small.index_vectors.remove(name, str(ids[0]))
    assert len(found(small, name)) == 49
    (state,) = client.keys("*:state")
    client.hset(state, mapping={"ids": 7, "revision": int(client.hget(state, "revision") or 0) + 1})
    # So an earlier version leaves it, which counts no ids.
    with pytest.raises(TooLarge):
        upsert(small, name, ids)
    upsert(large, name, ids)
    sent = []
    for _ in range(2):
        before = client.info("stats")["total_net_output_bytes"]
        with pytest.raises(TooLarge, match=r"takes \d{6} bytes of memory; cache_bytes is 100000"):
            found(small, name)
        sent.append(client.info("stats")["total_net_output_bytes"] - before)
    assert sent[0] > 180_000
    assert sent[1] < 20_000
    assert len(found(large, name)) == BATCH


def test_a_search_keeps_no_snapshot_in_memory_after_its_end(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    services, searches = process(url), list[weakref.ref[index_search.Search]]()
    upsert(services, made(services, "i"), ["a", "b"])

    class Watched(index_search.Search):
        def __init__(self, *args: Any, **named: Any) -> None:
            super().__init__(*args, **named)
            searches.append(weakref.ref(self))

    monkeypatch.setattr(index_vectors, "Search", Watched)
    gc.disable()  # which would drop what only refers to itself
    try:
        assert found(services, "i") == {"a", "b"}
        assert [one() for one in searches] == [None]
    finally:
        gc.enable()
