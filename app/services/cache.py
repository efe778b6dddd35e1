"""Things of the store kept ready in memory."""

import threading
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import cachetools

from app.store.errors import Gone
from app.store.manifest import Manifest


class Sized(Protocol):
    """A thing that knows its size, and so can be kept ready."""

    @property
    def bytes(self) -> int:
        """Memory it takes."""


M = TypeVar("M", bound=Manifest)
T = TypeVar("T", bound=Sized)
Found = TypeVar("Found")


class Cache:
    """Memory for things of all kinds; the least recently used go first.

    Things are kept by the digest of all they hang on: one that was deleted and made anew under its old name can never
    be served stale.

    Args:
        cache_bytes: size of it.
    """

    def __init__(self, cache_bytes: int) -> None:
        self._cache: cachetools.LRUCache[str, Any] = cachetools.LRUCache(cache_bytes, getsizeof=lambda kept: kept.bytes)
        # Makes threads that want one thing wait for the first of them to load it.
        self._condition = threading.Condition()

    def keeping(self, load: Callable[[M], T]) -> Callable[[M], T]:
        """The same function, with its results kept."""
        by_digest = cachetools.cached(self._cache, key=_key, condition=self._condition)
        kept: Callable[[M], T] = by_digest(load)
        return kept

    def there(self, manifest: Manifest) -> Any | None:
        """The thing that this manifest names, if it is kept in memory; else None. It is never loaded."""
        with self._condition:
            return self._cache.get(_key(manifest))


def _key(manifest: Manifest) -> str:
    return f"{manifest.kind} {manifest.digest}"


def latest(find_and_read: Callable[[], Found]) -> Found:
    """The result of finding a thing and then reading it, begun again where the thing is replaced in between."""
    while True:
        try:
            return find_and_read()
        except Gone:
            continue
