"""Keeps the codes of indexes in memory as they are in the store."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import numpy as np
from numpy.typing import NDArray

from app.core.errors import TooLarge
from app.core.indexes import vector_ids
from app.core.indexes.image import ChangedBlock, HeldCodes, Image
from app.services.cache import Cache
from app.services.index_spec import layout
from app.store.errors import StoreDamaged
from app.store.indexes import BLOCK, MARK_BYTES, Block, IndexFull, IndexManifest, IndexState, IndexStore

# Blocks that are read by one call: some megabytes.
_BYTES_AT_ONCE = 1 << 22
# Of an id and its length, as most are. An index of longer ones is refused when it is looked at.
_BYTES_OF_ID = 32


class _Held:
    """The codes of one index, and which of its blocks they are of."""

    def __init__(self, manifest: IndexManifest) -> None:
        self.codes = HeldCodes(layout(manifest))
        self.lock = threading.Lock()
        self.revision = -1
        self.revisions: NDArray[np.int64] = np.empty(0, np.int64)

    @property
    def bytes(self) -> int:
        """Memory that it takes."""
        return self.codes.nbytes + self.revisions.nbytes


class Images:
    """The codes of indexes in use, in a cache."""

    def __init__(self, store: IndexStore, cache: Cache) -> None:
        self._store, self._cache = store, cache

    def most(self, manifest: IndexManifest) -> int:
        """How many vectors an index may hold, for the cache of a process to have room for it."""
        return self._cache.limit // self._bytes_per_vector(manifest)

    def refusal(self, manifest: IndexManifest, full: IndexFull) -> TooLarge:
        """The refusal of vectors that an index may not hold beside the others."""
        each = self._bytes_per_vector(manifest)
        detail = f"{full}, as each process holds their codes in its cache; cache_bytes is {self._cache.limit}"
        return TooLarge(detail, limit="cache_bytes", allowed=self._cache.limit, value=full.wanted * each)

    @contextmanager
    def looked_at(self, manifest: IndexManifest, state: IndexState) -> Iterator[Image]:
        """The codes of an index, as they are in the store now or later, if it has been in this state.

        Raises:
            Gone: the index is not there any more.
            StoreDamaged: blocks are missing.
            TooLarge: the cache has no room for the index.
        """
        if state.size > self.most(manifest):
            raise self._too_large(manifest, state.size * self._bytes_per_vector(manifest))
        held = self._cache.held(f"index {manifest.token}", lambda: _Held(manifest))
        with ExitStack() as looking:
            with held.lock:
                if held.revision < state.revision:
                    self._read_changes(manifest, held)
                    self._cache.weigh(f"index {manifest.token}", held)
                if held.bytes > self._cache.limit:
                    raise self._too_large(manifest, held.bytes)
                image = looking.enter_context(held.codes.looked_at())
            yield image

    def _too_large(self, manifest: IndexManifest, nbytes: int) -> TooLarge:
        allowed = self._cache.limit
        detail = f"index {manifest.name!r} takes {nbytes} bytes of memory; cache_bytes is {allowed}"
        return TooLarge(detail, limit="cache_bytes", allowed=allowed, value=nbytes)

    @staticmethod
    def _bytes_per_vector(manifest: IndexManifest) -> int:
        return layout(manifest).most_bytes_per_vector + _BYTES_OF_ID

    def _read_changes(self, manifest: IndexManifest, held: _Held) -> None:
        """Read the blocks that have changed, until all that are held are of one moment."""
        held.revision = -1  # in between, and if the store fails, they are of no moment
        wanted: NDArray[np.intp] = np.empty(0, np.intp)
        at_once = max(1, _BYTES_AT_ONCE // (BLOCK * _stride(manifest)))
        while True:
            some = wanted[:at_once].tolist()
            part = self._store.part(manifest, some)
            n = len(part.revisions)
            if n != -(-part.state.size // BLOCK):
                raise StoreDamaged(f"index {manifest.name!r} has {part.state.size} vectors in {n} blocks")
            revisions = np.full(n, -1, np.int64)
            revisions[: len(held.revisions)] = held.revisions[:n]
            there = [number for number in some if number < n]
            blocks = {
                number: _changed(manifest, part.blocks[i], min(BLOCK, part.state.size - number * BLOCK))
                for i, number in enumerate(some)
                if number < n
            }
            held.codes.change(blocks, part.state.size)
            revisions[there] = part.revisions[there]
            held.revisions = revisions
            wanted = np.flatnonzero(revisions != part.revisions)
            if not wanted.size:
                held.revision = part.state.revision
                return


def _changed(manifest: IndexManifest, block: Block, n: int) -> ChangedBlock:
    """A block of n vectors as images take it; StoreDamaged if it is none."""
    stride = _stride(manifest)
    if len(block.codes) != BLOCK * stride or vector_ids.count(block.ids) != n:
        raise StoreDamaged(f"a block of index {manifest.name!r} has {len(block.codes)} and {len(block.ids)} bytes")
    rows = np.frombuffer(block.codes, np.uint8).reshape(BLOCK, stride)
    marks = np.ascontiguousarray(rows[:, :MARK_BYTES]).view("<u8")[:, 0]
    return ChangedBlock(marks, rows[:, MARK_BYTES:], block.ids)


def _stride(manifest: IndexManifest) -> int:
    return MARK_BYTES + manifest.code_bytes
