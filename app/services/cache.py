"""Memory cache of objects from the store."""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol, TypeVar

import cachetools

from app.store.errors import Gone, StoreDamaged
from app.store.indexes import MapOfIndex
from app.store.manifest import Manifest


class Sized(Protocol):
    """Object that knows its size, and so can be cached."""

    @property
    def bytes(self) -> int:
        """Memory that the object takes, in bytes."""


M = TypeVar("M", bound=Manifest)
T = TypeVar("T", bound=Sized)
Found = TypeVar("Found")

# Memory of an object in the cache whose `bytes` are 0.
_BYTES_PER_ENTRY = 4096
# A thing that is replaced as often as this, each time just before it is read, is damaged.
_MOST_READS = 32


class Cache:
    """Memory cache for objects of all kinds; the least recently used objects are evicted first.

    Objects are cached by the digest of everything they depend on: an object that was deleted and created again under
    its old name is never served stale.

    Args:
        cache_bytes: size of the cache.
        used: called on each use with whether the object was in the cache.
    """

    def __init__(self, cache_bytes: int, used: Callable[[bool], None] = lambda _: None) -> None:
        self._used = used
        self._cache: cachetools.LRUCache[str, Any] = cachetools.LRUCache(
            cache_bytes, getsizeof=lambda kept: kept.bytes + _BYTES_PER_ENTRY
        )
        # Threads that need the same object wait for the first of them to load it.
        self._condition = threading.Condition()

    def keeping(self, load: Callable[[M], T]) -> Callable[[M], T]:
        """Return a function that caches the results of `load`."""

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
        """Most bytes that the cache may take."""
        return int(self._cache.maxsize)

    @property
    def nbytes(self) -> int:
        """Bytes that the cache takes now."""
        return int(self._cache.currsize)

    @property
    def entries(self) -> int:
        """Number of objects in the cache."""
        return len(self._cache)

    def there(self, manifest: Manifest | MapOfIndex) -> Any | None:
        """Return the object of a manifest or of an index's map if it is in memory, else None; never load it."""
        with self._condition:
            there = self._cache.get(_key(manifest))
        if there is not None:
            self._used(True)
        return there

    def hold(self, key: str, make: Callable[[], T]) -> T:
        """Return the object under this key, made if it is missing; its size may change while it is in the cache."""
        with self._condition:
            there: T | None = self._cache.get(key)
            self._used(there is not None)
            if there is None:
                there = make()
                self._keep(key, there)
            return there

    def weigh(self, key: str, thing: Sized) -> None:
        """Keep an object whose size has changed. An object larger than the cache is dropped."""
        with self._condition:
            self._keep(key, thing)

    def _keep(self, key: str, thing: Sized) -> None:
        self._cache.pop(key, None)
        with suppress(ValueError):  # raised if the object is larger than the cache
            self._cache[key] = thing


def _key(manifest: Manifest | MapOfIndex) -> str:
    return f"{manifest.kind} {manifest.digest}"


def latest(find_and_read: Callable[[], Found]) -> Found:
    """Find an object and then read it; start again if the object is replaced in between.

    StoreDamaged if that happens so often that the object found cannot be the one that is read.
    """
    for _ in range(_MOST_READS):
        with suppress(Gone):
            return find_and_read()
    raise StoreDamaged(f"what is found is not there to be read, {_MOST_READS} times in a row")
