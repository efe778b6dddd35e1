"""Each process has the codes of an index in memory, as they are in the store whenever it is asked."""

import threading

import numpy as np
import pytest
import redis

from app.container import Container
from app.core.indexes.options import Batch, CheckCount, SearchOptions
from app.core.progress import Progress
from app.core.spec import MapSpec
from app.services.asked import NOTHING, AskedSpec
from app.services.indexes import AskedIndex
from app.settings import Settings

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

    assert services.index_vectors.upsert(name, read) == (len(ids), ())


def found(services: Container, name: str, tag: str | None = None) -> set[object]:
    (result,), _ = services.index_vectors.search(name, lambda _: (SearchOptions(k=1000, tag=tag), ROWS[:1]))
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
