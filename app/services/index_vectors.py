"""Vectors of indexes: insertion, removal, reading and search; the codes of indexes in use are kept in memory."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import compress
from typing import Any

import numpy as np

from app.core.arrays import PostedRows, Rows
from app.core.datasets import Reference
from app.core.errors import InvalidInput, InvalidOption, TooLarge
from app.core.indexes import labels
from app.core.indexes.banding import ChangedBlock, HeldCodes, Image
from app.core.indexes.labels import pack_rows, unpack_rows
from app.core.indexes.options import MOST_PAGED, Batch, CheckCount, Filter, SearchOptions
from app.services.cache import Cache, latest
from app.services.datasets import Datasets, at_their_datasets
from app.services.errors import VectorNotFound
from app.services.index_search import Result, Search, operations_of_filter, read_tags
from app.services.indexes import Indexes, OpenIndex, layout
from app.services.limits import Limits
from app.services.vectors import warnings_of
from app.store.errors import Gone, StoreDamaged, StoreUnavailable
from app.store.indexes import (
    BLOCK,
    MARK_BYTES,
    NONE_KNOWN,
    Block,
    Entry,
    IndexFull,
    IndexManifest,
    IndexState,
    IndexStore,
    Room,
    StoredRow,
)

# Bytes of blocks that one call reads.
_BYTES_AT_ONCE = 1 << 22
# The most that is read of an index at once if it changes meanwhile, and how long this is tried, once all was read.
_MOST_BYTES_AT_ONCE, _READING_SECONDS = 1 << 26, 5.0
# What a block takes beside codes and ids, for each of its vectors.
_BYTES_OF_BLOCK = 1


class _Held:
    """Codes of one index in memory, and the revisions of its blocks that they belong to."""

    def __init__(self, manifest: IndexManifest) -> None:
        self.codes = HeldCodes(layout(manifest))
        self.lock = threading.Lock()
        self.revision = -1
        self.revisions = NONE_KNOWN
        self.refused = -1, 0
        """Revision in which the index was found to be too large, and its bytes."""

    @property
    def bytes(self) -> int:
        """Memory that the codes take."""
        return self.codes.nbytes + self.revisions.nbytes


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

    @contextmanager
    def looked_at(self, manifest: IndexManifest, state: IndexState) -> Iterator[Image]:
        """Yield a snapshot of an index's codes, of this state or a later one in the store.

        Raises:
            Gone: the index no longer exists.
            StoreDamaged: blocks are missing.
            TooLarge: the cache has no room for the index.
        """
        if (least := state.size * layout(manifest).most_bytes_per_vector) > self._cache.limit:
            raise self._too_large(manifest, least)
        held = self._cache.hold(f"index {manifest.token}", lambda: _Held(manifest))
        with ExitStack() as looking:
            with held.lock:
                if held.refused[0] == state.revision:
                    raise self._too_large(manifest, held.refused[1])
                if held.revision != state.revision:  # it may be lower, if the store was put back
                    self._read_changes(manifest, held)
                    self._cache.weigh(f"index {manifest.token}", held)
                image = looking.enter_context(held.codes.looked_at())
            yield image

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
            held.codes.change(blocks, size, {labels.number(mark): text for mark, text in part.tags.items()})
            n_read += len(blocks)
            if held.bytes > self._cache.limit:
                held.codes.forget_tags()
            if held.bytes > self._cache.limit:  # an index of long ids that an earlier version has let grow
                held.refused = part.state.revision, held.bytes
                held.codes, held.revisions = HeldCodes(layout(manifest)), NONE_KNOWN
                raise self._too_large(manifest, held.refused[1])
            held.revisions, most = known, min(2 * most, _MOST_BYTES_AT_ONCE)
        held.revision = part.state.revision


def _read_block(manifest: IndexManifest, block: Block, n: int) -> ChangedBlock:
    """Return a stored block of n vectors in the form that snapshots take; raise StoreDamaged if it is invalid."""
    stride = MARK_BYTES + manifest.code_bytes
    if len(block.codes) != BLOCK * stride or labels.count(block.ids) != n:
        raise StoreDamaged(f"a block of index {manifest.name!r} has {len(block.codes)} and {len(block.ids)} bytes")
    rows = np.frombuffer(block.codes, np.uint8).reshape(BLOCK, stride)
    marks = np.ascontiguousarray(rows[:, :MARK_BYTES]).view("<u8")[:, 0]
    return ChangedBlock(marks, rows[:, MARK_BYTES:], block.ids)


Warnings = tuple[str, ...]
"""Doubts about the codes, one sentence each."""


class IndexVectors:
    """Operations on the vectors of indexes. Methods raise what `Indexes.open` raises, and may use `threads` threads."""

    def __init__(
        self, store: IndexStore, indexes: Indexes, images: Images, datasets: Datasets, limits: Limits, threads: int
    ) -> None:
        self._store, self._indexes, self._images = store, indexes, images
        self._datasets, self._limits, self._threads = datasets, limits, threads

    def upsert(
        self, name: str, read: Callable[[int, CheckCount], Batch], owner: str = "", skips: bool = False
    ) -> tuple[int, list[int | str], Warnings]:
        """Put vectors into an index, all of them or none; they replace vectors with the same ids.

        `read` receives the length of a row, and a function that checks the number of vectors. The vectors count towards
        `owner`'s quota, whoever created the index. With `skips`, vectors that have no codes are left out.

        Returns:
            The number of vectors, the ids of those left out, and doubts about their codes.

        Raises:
            InvalidInput: a vector has no codes; ids or tags are invalid, or their number differs from that of the
                vectors; or an id occurs twice.
            TooLarge: there are too many vectors for one request, or for the memory of a process.
            QuotaExceeded: there is no room for the vectors.
        """
        return latest(lambda: self._upsert(self._indexes.open(name), read, owner, skips))

    def remove(self, name: str, vector_id: int | str, owner: str = "") -> None:
        """Remove a vector from an index, for an owner; raise VectorNotFound if there is none with this id."""
        written = labels.encode_id(vector_id, "")
        if not latest(lambda: self._store.remove(self._indexes.open(name).manifest, written, owner)):
            raise VectorNotFound(name, vector_id)

    def get(self, name: str, vector_id: int | str, has_vector: bool) -> dict[str, Any]:
        """Return the tags of a vector and, if wanted, its numbers; VectorNotFound if there is none with this id.

        Raises:
            InvalidOption: the index keeps codes alone.
        """
        written = labels.encode_id(vector_id, "")

        def look() -> dict[str, Any]:
            opened = self._indexes.open(name)
            (found,) = self._store.rows(opened.manifest, [written], tags=True)
            if found is None:
                raise VectorNotFound(name, vector_id)
            told: dict[str, Any] = {"id": vector_id, "tags": _tags_of(found)}
            if has_vector:
                if opened.manifest.keep != "vectors":
                    raise InvalidOption(f"index {name!r} keeps codes alone, no vectors", "include")
                (stored,) = self._store.vectors(opened.manifest, [written], 0)
                if stored is None:
                    raise Gone  # meanwhile: look again
                self._limits.check_result(_BYTES_PER_NUMBER * len(stored))
                told["vector"] = _shown(unpack_rows([stored], opened.feature_map.spec.input_dim))
            return told

        return latest(look)

    def read_page(
        self, name: str, before: int | None, limit: int, tag: str | None, as_text: bool
    ) -> tuple[list[dict[str, Any]], int]:
        """Return vectors in the slots before one with their tags, and the slot before which the next page begins.

        A page may have fewer than `limit` vectors, or none, as it looks at some vectors only; 0 for no next page.
        """

        def look() -> tuple[list[dict[str, Any]], int]:
            mark = None if tag is None else labels.encode_tags(tag, "/tag")[0]
            opened, found, next_slot = self._indexes.open(name), list[dict[str, Any]](), before
            for _ in range(1 if tag is None else _PARTS):
                most = limit if tag is None else _PART
                rows, next_slot = self._store.vector_page(opened.manifest, next_slot, most, _PART_BYTES)
                for left, one in zip(range(len(rows) - 1, -1, -1), rows, strict=True):
                    tags = _tags_of(one)
                    if tag is None or (one.row == mark if tags is None else tag in tags):
                        found.append({"id": labels.read(one.id, as_text), "tags": tags})
                    if len(found) == limit:
                        return found, next_slot + left
                if not next_slot:
                    break
            return found, next_slot or 0

        return latest(look)

    def count(self, name: str, wanted: Filter | None) -> int:
        """Return the number of vectors whose tags fit a filter."""

        def look() -> int:
            opened = self._indexes.open(name)
            if wanted is None:
                return opened.state.size
            with self._images.looked_at(opened.manifest, opened.state) as image:
                self._limits.check_operations(operations_of_filter(image))
                return int(labels.fitting(image.marks, image.tags, wanted).sum())

        return latest(look)

    def search(
        self,
        name: str,
        read: Callable[[int], tuple[SearchOptions, PostedRows | Reference | None]],
        as_text: bool = False,
    ) -> tuple[list[Result], str | None, Warnings]:
        """Find the nearest vectors to each query, see `Search.results`.

        Also return the cursor of the next page, if there may be more vectors, and doubts about the queries' codes.
        `read` receives the length of a row; without rows, the options have ids. With `as_text`, whole numbers among the
        ids of results are strings.

        Raises:
            InvalidInput: a query has no codes, or exact similarities are requested of an index that keeps codes only.
            VectorNotFound: there is no vector with one of the ids.
            TooLarge: the work or the results exceed a limit.
        """

        def look() -> tuple[list[Result], str | None, Warnings]:
            opened = self._indexes.open(name)
            with self._images.looked_at(opened.manifest, opened.state) as image:
                options, posted = read(opened.feature_map.spec.input_dim)
                found = Search(self._store, self._limits, opened, image, options, self._threads, as_text)
                if posted is None:
                    results = found.results_of(options.ids or ())
                    return results, _next(options, results), ()
                given = self._datasets.read_rows({"vectors": posted}, opened.feature_map.spec.gate)
                with at_their_datasets(given.references):
                    results = found.results(given.rows["vectors"])
                    return results, _next(options, results), warnings_of(opened.feature_map, given.rows)

        return latest(look)

    def _upsert(
        self, opened: OpenIndex, read: Callable[[int, CheckCount], Batch], owner: str, skips: bool
    ) -> tuple[int, list[int | str], Warnings]:
        feature_map, check = opened.feature_map, self._limits.check_batch
        batch = read(feature_map.spec.input_dim, check)
        given = self._datasets.read_rows({"vectors": batch.vectors}, feature_map.spec.gate)
        rows = given.rows["vectors"]
        n = int(rows.shape[0])
        check(n)
        if batch.ids is None and "vectors" not in given.ids:
            raise InvalidInput("the member ids is missing: each vector needs an id", "/ids")
        ids = given.ids["vectors"].to_list() if batch.ids is None else batch.ids
        for member, came in (("ids", ids), ("tags", batch.tags)):
            if came is not None and len(came) != n:
                raise InvalidInput(f"expected {n} {member}, one for each vector, got {len(came)}", f"/{member}")
        keys = labels.encode_ids(ids, "/ids")
        tags = [(b"", b"")] * n  # for vectors that keep the tags that they have
        if batch.tags is not None:
            tags = [labels.encode_tags(one, f"/tags/{i}") for i, one in enumerate(batch.tags)]
        self._limits.check_operations(feature_map.operations(rows), n)
        has_code = ~feature_map.find_rows_without_code(rows) if skips else np.ones(n, np.bool_)
        skipped = [labels.read(keys[i]) for i in np.flatnonzero(~has_code)]
        if skipped:
            rows, n = rows[has_code], n - len(skipped)
            keys, tags = [*compress(keys, has_code)], [*compress(tags, has_code)]
        vectors = pack_rows(rows) if opened.manifest.keep == "vectors" else [b""] * n
        of_tags = sum(len(text) for _, text in tags)
        self._limits.check_batch_bytes(sum(map(len, vectors)) + n * opened.layout.code_bytes + of_tags)
        with at_their_datasets(given.references):
            codes = opened.codes.pack(feature_map, rows)
        entries = [
            Entry(key, mark + code.tobytes(), vector, text)
            for key, (mark, text), code, vector in zip(keys, tags, codes, vectors, strict=True)
        ]
        if entries:
            try:
                self._store.upsert(opened.manifest, entries, self._images.room(opened.manifest), owner)
            except IndexFull as full:
                raise self._images.refusal(full) from full
        return n, skipped, warnings_of(feature_map, given.rows)


def _next(options: SearchOptions, results: Sequence[Result]) -> str | None:
    """Return the cursor of the next page; None if all results have ended before, or no more may be found."""
    is_full = any(len(one["ids"]) == options.k for one in results)
    return str(options.last) if is_full and options.last + options.k <= MOST_PAGED else None


def _tags_of(one: StoredRow) -> list[str] | None:
    return read_tags(labels.number(one.row[:MARK_BYTES]), one.tags)


def _shown(rows: Rows) -> Any:
    """Return a row as it is posted in JSON: numbers, or indices and values."""
    return rows[0] if isinstance(rows, np.ndarray) else {"indices": rows.indices, "values": rows.data}


# Most bytes of a number in JSON and in memory, for a byte as it is stored.
_BYTES_PER_NUMBER = 8


# Parts of an index that are looked at for a page of vectors with a tag, vectors of a part, and bytes of their tags.
_PARTS, _PART, _PART_BYTES = 20, 1000, 1 << 20
