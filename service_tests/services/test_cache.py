import threading
from itertools import count
from typing import Any, NamedTuple

import pytest

from app.services.cache import Cache, latest
from app.store.errors import Gone
from service_tests.races import at_once


class Thing(NamedTuple):
    bytes: int


class Listed(NamedTuple):
    """What a cache sees of a manifest."""

    name: str
    digest: str
    kind: str = "map"


class Loader:
    """Counts what it loads."""

    def __init__(self, bytes_each: int = 10) -> None:
        self.loaded: list[str] = []
        self._bytes = bytes_each

    def __call__(self, manifest: Any) -> Thing:
        self.loaded.append(manifest.digest)
        return Thing(self._bytes)


def test_things_are_kept_by_digest_not_by_name() -> None:
    load = Loader()
    kept: Any = Cache(100).keeping(load)
    first = kept(Listed("m", "a"))
    assert kept(Listed("m", "a")) is first
    assert kept(Listed("other", "a")) is first
    made_anew = kept(Listed("m", "b"))
    assert made_anew is not first
    assert load.loaded == ["a", "b"]


def test_kinds_of_things_share_the_memory_and_nothing_else() -> None:
    load, cache = Loader(), Cache(100)
    maps, datasets = cache.keeping(load), cache.keeping(load)
    kept: list[Any] = [maps(Listed("m", "a")), datasets(Listed("d", "a", "dataset"))]
    assert kept[0] is not kept[1]
    assert load.loaded == ["a", "a"]


def test_the_least_recently_used_goes_first() -> None:
    load = Loader(bytes_each=40)
    kept: Any = Cache(100).keeping(load)
    for digest in ("a", "b", "a", "c", "a", "b"):
        kept(Listed("m", digest))
    assert load.loaded == ["a", "b", "c", "b"]


@pytest.mark.parametrize("cache_bytes", [0, 9])
def test_what_is_larger_than_the_memory_is_served_and_not_kept(cache_bytes: int) -> None:
    load = Loader()
    kept: Any = Cache(cache_bytes).keeping(load)
    for _ in range(3):
        assert kept(Listed("m", "a")).bytes == 10
    assert load.loaded == ["a"] * 3


def test_many_that_want_one_thing_load_it_once() -> None:
    load, loading = Loader(), threading.Event()

    def slow(manifest: Any) -> Thing:
        loading.wait(0.2)
        return load(manifest)

    kept: Any = Cache(100).keeping(slow)
    found = at_once(8, lambda _: kept(Listed("m", "a")))
    assert load.loaded == ["a"]
    assert all(one is found[0] for one in found)


def test_what_fails_is_tried_again() -> None:
    outcomes: list[Any] = [ValueError("no"), Thing(1)]

    def load(_: Any) -> Thing:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        made: Thing = outcome
        return made

    kept: Any = Cache(100).keeping(load)
    with pytest.raises(ValueError, match="no"):
        kept(Listed("m", "a"))
    assert kept(Listed("m", "a")).bytes == 1


def test_what_goes_while_it_is_read_is_looked_for_again() -> None:
    tries = count(1)

    def find() -> int:
        if (number := next(tries)) < 3:
            raise Gone
        return number

    assert latest(find) == 3


def test_what_is_there_is_found_without_loading_it() -> None:
    load, cache = Loader(), Cache(100)
    kept: Any = cache.keeping(load)
    listed: Any = Listed("m", "a")
    other: Any = Listed("m", "b")
    assert cache.there(listed) is None
    thing = kept(listed)
    assert cache.there(listed) is thing
    assert cache.there(other) is None
    assert load.loaded == ["a"]
