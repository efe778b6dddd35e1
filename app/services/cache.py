"""Things of the store kept ready in memory."""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol, TypeVar

import cachetools

from app.store.errors import Gone, StoreDamaged
from app.store.indexes import MapOfIndex
from app.store.manifest import Manifest


class Sized(Protocol):
    """A thing that knows its size, and so can be kept ready."""

    @property
    def bytes(self) -> int:
        """Memory it takes."""


M = TypeVar("M", bound=Manifest)
T = TypeVar("T", bound=Sized)
Found = TypeVar("Found")

# A thing that is replaced as often as this, each time just before it is read, is damaged.
_MOST_READS = 32


class Cache:
    """Memory for things of all kinds; the least recently used go first.

    Things are kept by the digest of all they hang on: one that was deleted and made anew under its old name can never
    be served stale.

    Args:
        cache_bytes: size of it.
        used: is told of each use whether the thing was ready.
    """

    def __init__(self, cache_bytes: int, used: Callable[[bool], None] = lambda _: None) -> None:
        self._used = used
        self._cache: cachetools.LRUCache[str, Any] = cachetools.LRUCache(cache_bytes, getsizeof=lambda kept: kept.bytes)
        # Makes threads that want one thing wait for the first of them to load it.
        self._condition = threading.Condition()

    def keeping(self, load: Callable[[M], T]) -> Callable[[M], T]:
        """The same function, with its results kept."""

        def count_and_load(manifest: M) -> T:
            self._used(False)
            return load(manifest)

        by_digest = cachetools.cached(self._cache, key=_key, condition=self._condition)
        loaded: Callable[[M], T] = by_digest(count_and_load)

        def get(manifest: M) -> T:
            there: T | None = self.there(manifest)
            return loaded(manifest) if there is None else there

        return get

    @property
    def limit(self) -> int:
        """Bytes that it may take."""
        return int(self._cache.maxsize)

    @property
    def nbytes(self) -> int:
        """Bytes that it takes."""
        return int(self._cache.currsize)

    @property
    def entries(self) -> int:
        """Things that it keeps."""
        return len(self._cache)

    def there(self, manifest: Manifest | MapOfIndex) -> Any | None:
        """The thing of a manifest, or of what tells of one, if it is kept in memory; else None. It is never loaded."""
        with self._condition:
            there = self._cache.get(_key(manifest))
        if there is not None:
            self._used(True)
        return there

    def hold(self, key: str, make: Callable[[], T]) -> T:
        """The thing under a key of its own, which may change while it is kept; made anew where it is not there."""
        with self._condition:
            there: T | None = self._cache.get(key)
            self._used(there is not None)
            if there is None:
                there = make()
                self._keep(key, there)
            return there

    def weigh(self, key: str, thing: Sized) -> None:
        """Keep a thing that has another size now. One that is larger than the cache is not kept."""
        with self._condition:
            self._keep(key, thing)

    def _keep(self, key: str, thing: Sized) -> None:
        self._cache.pop(key, None)
        with suppress(ValueError):  # it is too large
            self._cache[key] = thing


def _key(manifest: Manifest | MapOfIndex) -> str:
    return f"{manifest.kind} {manifest.digest}"


def latest(find_and_read: Callable[[], Found]) -> Found:
    """The result of finding a thing and then reading it, begun again where the thing is replaced in between.

    StoreDamaged where that comes so often that what is found cannot be what is read.
    """
    for _ in range(_MOST_READS):
        with suppress(Gone):
            return find_and_read()
    raise StoreDamaged(f"what is found is not there to be read, {_MOST_READS} times in a row")
