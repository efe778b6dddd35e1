"""Things of the store kept ready in memory, and how they are fetched from there."""

import threading
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import cachetools
from numpy.typing import NDArray

from app.store.errors import StoreDamaged
from app.store.manifest import Manifest
from app.store.named import Arrays, NamedStore


class Sized(Protocol):
    """What can be kept ready."""

    @property
    def bytes(self) -> int:
        """Memory it takes."""


M = TypeVar("M", bound=Manifest)
T = TypeVar("T", bound=Sized)
Found = TypeVar("Found")


class Gone(Exception):
    """What was read was deleted, or has expired, while it was read."""


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
        by_digest = cachetools.cached(
            self._cache, key=lambda manifest: f"{manifest.kind} {manifest.digest}", condition=self._condition
        )
        kept: Callable[[M], T] = by_digest(load)
        return kept


def latest(find_and_read: Callable[[], Found]) -> Found:
    """What finds and then reads gives, once nothing comes between the two."""
    while True:
        try:
            return find_and_read()
        except Gone:
            continue


def array_of(store: NamedStore[M], manifest: M, array_name: str) -> NDArray[Any]:
    """One array of a thing.

    Raises:
        Gone: the thing is not there any more.
        StoreDamaged: the array is not what was written.
    """
    array = store.read(manifest, array_name)
    if array is None:
        raise Gone
    return array


def arrays_of(store: NamedStore[M], manifest: M) -> Arrays:
    """All arrays of a thing; raises what `array_of` raises."""
    return {array_name: array_of(store, manifest, array_name) for array_name in manifest.arrays}


def check_sealed(manifest: Manifest, digest: str) -> None:
    """Raise StoreDamaged for a manifest that was changed: `digest` is what it says of the thing now."""
    if digest != manifest.digest:
        called = f"{manifest.kind} {manifest.name!r}"
        raise StoreDamaged(f"the manifest of {called} does not have the digest it was stored with")
