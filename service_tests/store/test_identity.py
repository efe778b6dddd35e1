"""A store that comes back empty, and what a process then says of it."""

import time

import pytest

from app.jobs.jobs import Jobs
from app.jobs.record import JobNotFound
from app.store import identity
from app.store.connection import Client, connect
from app.store.datasets import DatasetStore
from app.store.identity import StoreReplaced
from app.store.maps import MapStore


def test_a_store_that_was_emptied_has_nothing_missing_in_it(client: Client) -> None:
    """Not a map that there is not, but a store that cannot be asked."""
    identity.settle(client)
    maps, datasets, jobs = MapStore(client), DatasetStore(client), Jobs(client, 1, 60)
    assert maps.find("m") is None
    with pytest.raises(JobNotFound):
        jobs.get("0" * 24)
    client.flushall()
    for ask in (
        lambda: maps.find("m"),
        lambda: maps.delete("m"),
        lambda: datasets.page("", None, 10),
        lambda: jobs.page(None, None, 10),
        lambda: identity.settle(client),
    ):
        with pytest.raises(StoreReplaced, match=r"came back without what it held.*bochner accept-store"):
            ask()
    assert client.dbsize() == 0


def test_a_store_that_another_process_has_marked_anew_is_not_taken_for_the_old_one(client: Client, url: str) -> None:
    identity.settle(client)
    client.flushall()
    with connect(url, 5) as fresh:
        identity.settle(fresh)
    with pytest.raises(StoreReplaced):
        identity.check(client)


def test_an_operator_may_accept_it(client: Client, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    identity.settle(client)
    before = client.seen
    client.flushall()
    with connect(url, 5) as operator, monkeypatch.context() as patched:
        patched.setattr(time, "time", lambda now=time.time: now() - 3600)  # the clock of the operator's machine
        identity.accept(operator)
    identity.check(client)
    assert client.seen != before
    assert MapStore(client).find("m") is None
    identity.put(client, identity.Mark(id="another", state="accepted", at=time.time() - 3600))
    with pytest.raises(StoreReplaced):  # a store that was accepted for others, before this one was seen
        identity.check(client)
