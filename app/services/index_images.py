"""Codes of the indexes in use, which each process keeps in memory and brings up to date with the store."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from app.core.errors import TooLarge
from app.core.indexes import labels
from app.core.indexes.banding import ChangedBlock, HeldCodes, Image, InUse
from app.services.cache import Cache, latest
from app.services.indexes import Indexes, OpenIndex, layout
from app.store.errors import StoreDamaged, StoreUnavailable
from app.store.indexes import (
    BLOCK,
    MARK_BYTES,
    NONE_KNOWN,
    Block,
    IndexFull,
    IndexManifest,
    IndexState,
    IndexStore,
    Room,
)

# Bytes of blocks that one call reads.
_BYTES_AT_ONCE = 1 << 22
# The most that is read of an index at once if it changes meanwhile, and how long this is tried, once all was read.
_MOST_BYTES_AT_ONCE, _READING_SECONDS = 1 << 26, 5.0
# What a block takes beside codes and ids, for each of its vectors.
_BYTES_OF_BLOCK = 1

Found = TypeVar("Found")


class _Held:
    """Codes of one index in memory, and the revisions of its blocks that they belong to."""

    def __init__(self, manifest: IndexManifest, most_bytes: int) -> None:
        self.codes = HeldCodes(layout(manifest), most_bytes)
        self.lock = threading.Lock()
        self.revision = -1
        self.revisions = NONE_KNOWN
        self.refused = -1, 0
        """Revision in which the index was found to be too large, and its bytes."""

    @property
    def bytes(self) -> int:
        """Memory that the codes take."""
        return self.codes.nbytes + self.revisions.nbytes


class Seen(NamedTuple):
    """A snapshot of the codes of an index, and the revision that it is of."""

    image: Image
    revision: int
    revisions: NDArray[np.uint32]
    """Revision of the last change of each block."""

    def changed_since(self, before: "Seen") -> NDArray[np.bool_]:
        """Return which vectors are in blocks that have changed since an earlier snapshot, (size,)."""
        is_new = np.ones(len(self.revisions), np.bool_)
        n = min(len(is_new), len(before.revisions))
        is_new[:n] = self.revisions[:n] != before.revisions[:n]
        return np.repeat(is_new, BLOCK)[: self.image.size]


class Images:
    """Snapshots of the codes of indexes in use, in a cache."""

    def __init__(self, store: IndexStore, cache: Cache) -> None:
        self._store, self._cache = store, cache

    def room(self, manifest: IndexManifest) -> Room:
        """Return the memory that a process has for an index."""
        return Room(self._cache.limit, layout(manifest).most_bytes_per_vector + _BYTES_OF_BLOCK)

    def refusal(self, full: IndexFull) -> TooLarge:
        """Return the error for vectors that would make an index larger than the cache allows."""
        detail = f"{full}, as each process holds their codes in its cache; cache_bytes is {self._cache.limit}"
        return TooLarge(detail, limit="cache_bytes", allowed=self._cache.limit, value=full.wanted)

    def examine(
        self,
        indexes: Indexes,
        payload: Mapping[str, Any],
        look: Callable[[OpenIndex, Image], Found],
        *,
        needs_bands: bool = True,
    ) -> Found:
        """Return what `look` finds in the index of a job, with its bands or without; this may take long.

        Raises:
            InvalidInput: the index is not there, or not any more.
        """
        name, token = payload["index"], payload["token"]

        def find() -> Found:
            opened = indexes.open_same(name, token)
            opened = opened if needs_bands else opened.without_bands()
            with self.looked_at(opened.manifest, opened.state) as image:
                found = look(opened, image)
            indexes.open_same(name, token)
            return found

        with self._store.using(indexes.open_same(name, token).manifest):
            return latest(find)

    @contextmanager
    def looked_at(self, manifest: IndexManifest, state: IndexState) -> Iterator[Image]:
        """Yield a snapshot of an index's codes, of this state or a later one in the store; raises what `seen` does."""
        with self.seen(manifest, state) as seen:
            yield seen.image

    @contextmanager
    def seen(self, manifest: IndexManifest, state: IndexState) -> Iterator[Seen]:
        """Yield a snapshot of an index's codes, of this state or a later one in the store, and its revision.

        Raises:
            Gone: the index no longer exists.
            StoreDamaged: blocks are missing.
            TooLarge: the cache has no room for the index.
        """
        if (least := state.size * layout(manifest).most_bytes_per_vector) > self._cache.limit:
            raise self._too_large(manifest, least)
        held = self._cache.hold(f"index {manifest.token}", lambda: _Held(manifest, self._cache.limit))
        with ExitStack() as looking:
            with held.lock:
                if held.refused[0] == state.revision:
                    raise self._too_large(manifest, held.refused[1])
                if held.revision != state.revision:  # it may be lower, if the store was put back
                    self._read_changes(manifest, held)
                    self._cache.weigh(f"index {manifest.token}", held)
                seen = Seen(looking.enter_context(held.codes.looked_at()), held.revision, held.revisions)
            yield seen

    def _too_large(self, manifest: IndexManifest, nbytes: int) -> TooLarge:
        allowed = self._cache.limit
        detail = f"index {manifest.name!r} takes {nbytes} bytes of memory; cache_bytes is {allowed}"
        return TooLarge(detail, limit="cache_bytes", allowed=allowed, value=nbytes)

    def _read_changes(self, manifest: IndexManifest, held: _Held) -> None:
        """Read the blocks that have changed, until all blocks in memory belong to one revision.

        Each read is larger than the one before, so that it catches up with clients that change the index meanwhile.
        """
        held.revision = -1  # until then, and if the store fails, the blocks belong to no revision
        most, ends_at, n_read, is_over = _BYTES_AT_ONCE, time.monotonic() + _READING_SECONDS, 0, False
        while not is_over:
            if time.monotonic() > ends_at and n_read > len(held.revisions):
                raise StoreUnavailable(f"index {manifest.name!r} changes faster than it can be read")
            part = self._store.changes(manifest, held.revisions, most)
            known, is_over = part.known_after(held.revisions)
            size = part.state.size
            blocks = {n: _read_block(manifest, one, min(BLOCK, size - n * BLOCK)) for n, one in part.blocks.items()}
            try:
                held.codes.change(blocks, size, {labels.number(mark): text for mark, text in part.tags.items()})
            except InUse:
                detail = f"index {manifest.name!r} changes while long searches look at earlier states of it"
                raise StoreUnavailable(detail) from None
            n_read += len(blocks)
            if held.bytes > self._cache.limit:
                held.codes.forget_tags()
            if held.bytes > self._cache.limit:  # an index of long ids that an earlier version has let grow
                held.refused = part.state.revision, held.bytes
                held.codes, held.revisions = HeldCodes(layout(manifest), self._cache.limit), NONE_KNOWN
                raise self._too_large(manifest, held.refused[1])
            held.revisions, most = known, min(2 * most, _MOST_BYTES_AT_ONCE)
        held.revision = part.state.revision


def id_at(blocks: Sequence[bytes], slot: int) -> bytes:
    """Return the id in a slot, given the ids of each block of a snapshot."""
    return labels.at(blocks[slot // BLOCK], slot % BLOCK)


def _read_block(manifest: IndexManifest, block: Block, n: int) -> ChangedBlock:
    """Return a stored block of n vectors in the form that snapshots take; raise StoreDamaged if it is invalid."""
    stride = MARK_BYTES + manifest.code_bytes
    if len(block.codes) != BLOCK * stride or labels.count(block.ids) != n:
        raise StoreDamaged(f"a block of index {manifest.name!r} has {len(block.codes)} and {len(block.ids)} bytes")
    rows = np.frombuffer(block.codes, np.uint8).reshape(BLOCK, stride)
    marks = np.ascontiguousarray(rows[:, :MARK_BYTES]).view("<u8")[:, 0]
    return ChangedBlock(marks, rows[:, MARK_BYTES:], block.ids)
