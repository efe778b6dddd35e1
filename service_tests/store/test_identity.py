"""A store that comes back empty, and what a process then says of it."""

import asyncio
from collections.abc import Iterator

import pytest
import redis.asyncio

from app.jobs.errors import JobNotFound
from app.jobs.jobs import Jobs
from app.store import identity
from app.store.connection import Client, connect
from app.store.datasets import DatasetStore
from app.store.errors import StoreUnavailable
from app.store.identity import StoreReplaced
from app.store.maps import MapStore
from service_tests.servers import EVERY_WRITE, valkey
from service_tests.store.new_maps import new


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with valkey(tmp_path_factory.mktemp("marked"), *EVERY_WRITE) as url:
        yield url


@pytest.fixture
def store(url: str) -> Iterator[Client]:
    with connect(url, 5) as client:
        client.flushall()
        yield client


def test_a_new_store_is_marked_by_the_first_that_comes_and_known_to_all(store: Client, url: str) -> None:
    identity.settle(store)
    with connect(url, 5) as second:
        identity.settle(second)
        assert store.seen == second.seen is not None
    identity.check(store)


def test_who_only_looks_leaves_no_mark(store: Client) -> None:
    identity.check(store)
    assert store.dbsize() == 0


def test_a_store_that_was_emptied_has_nothing_missing_in_it(store: Client) -> None:
    """Not a map that there is not, but a store that cannot be asked."""
    identity.settle(store)
    maps, datasets, jobs = MapStore(store), DatasetStore(store), Jobs(store, 1, 60)
    assert maps.find("m") is None
    with pytest.raises(JobNotFound):
        jobs.get("0" * 24)
    store.flushall()
    for ask in (
        lambda: maps.find("m"),
        lambda: maps.delete("m"),
        lambda: maps.page("", None, 10),
        lambda: datasets.find("d"),
        lambda: datasets.page("", None, 10),
        lambda: jobs.get("0" * 24),
        lambda: jobs.page(None, None, 10),
        lambda: identity.settle(store),
    ):
        with pytest.raises(StoreReplaced, match=r"came back without what it held.*bochner accept-store"):
            ask()
    assert store.dbsize() == 0


def test_it_is_noticed_on_the_event_loop_too(store: Client, url: str) -> None:
    identity.settle(store)
    maps = MapStore(store)

    async def look() -> None:
        async with redis.asyncio.Redis.from_url(url) as loop:
            assert await maps.find_by(loop, "m") is None
            store.flushall()
            with pytest.raises(StoreUnavailable, match="came back"):
                await maps.find_by(loop, "m")

    asyncio.run(look())


def test_what_is_there_is_still_given(store: Client) -> None:
    identity.settle(store)
    maps = MapStore(store)
    created = maps.create(new())
    store.delete(identity.KEY)
    assert maps.find("m") == created


def test_a_store_that_another_process_has_marked_anew_is_not_taken_for_the_old_one(store: Client, url: str) -> None:
    identity.settle(store)
    store.flushall()
    with connect(url, 5) as fresh:
        identity.settle(fresh)
    with pytest.raises(StoreReplaced):
        identity.check(store)


def test_an_operator_may_accept_it(store: Client, url: str) -> None:
    identity.settle(store)
    before = store.seen
    store.flushall()
    with connect(url, 5) as operator:
        identity.accept(operator)
    identity.check(store)
    assert store.seen != before
    assert MapStore(store).find("m") is None


def test_a_mark_that_cannot_be_read_is_not_guessed_at(store: Client) -> None:
    store.set(identity.KEY, b"{}")
    with pytest.raises(StoreReplaced, match="cannot read"):
        identity.settle(store)
    assert store.get(identity.KEY) == b"{}"
