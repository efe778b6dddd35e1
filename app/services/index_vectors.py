"""Vectors of indexes: insertion, removal and search; the codes of indexes in use are kept in memory."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from app.core.arrays import Matrix, PostedRows, Rows, row_blocks
from app.core.datasets import Reference
from app.core.errors import InvalidInput, TooLarge
from app.core.indexes import labels
from app.core.indexes.banding import ChangedBlock, HeldCodes, Image
from app.core.indexes.labels import is_sparse, pack_rows, unpack_rows
from app.core.indexes.options import Batch, CheckCount, SearchOptions
from app.core.indexes.search import Hits, search
from app.services.cache import Cache, latest
from app.services.datasets import Datasets, at_their_datasets
from app.services.errors import VectorNotFound
from app.services.indexes import Indexes, OpenIndex, layout
from app.services.limits import Limits
from app.services.vectors import warnings_of
from app.store.errors import StoreDamaged, StoreUnavailable
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
)

# Bytes of blocks, or of vectors for exact comparison, that one call reads; and bytes of queries, packed.
_BYTES_AT_ONCE = 1 << 22
# The most that is read of an index at once if it changes meanwhile, and how long this is tried, once all was read.
_MOST_BYTES_AT_ONCE, _READING_SECONDS = 1 << 26, 5.0
# What a block takes beside codes and ids, for each of its vectors.
_BYTES_OF_BLOCK = 1
# Bytes of vectors in the form in which they are compared exactly.
_BYTES_COMPARED = 1 << 26


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
            held.codes.change(blocks, size)
            n_read += len(blocks)
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


Result = dict[str, Any]
"""Result of one query: the members of a `SearchResult`."""

# Costs, in multiplications: comparing a byte of codes; finding a bucket in a segment; finding a vector in a bucket;
# answering a query, whatever is found; reading from the store the vectors that are compared exactly with a query; and a
# byte of sparse vectors in the form in which they are compared, which may be dense.
_PER_BYTE, _PER_BAND, _PER_BUCKET, _PER_QUERY, _PER_READING, _PER_DENSE_BYTE = 2, 128, 40, 200_000, 4_000_000, 16
# Memory for a query, and for a vector that is found, as Python objects with an id and three numbers.
_BYTES_PER_QUERY, _BYTES_PER_RESULT = 512, 256
# Most bytes of one character of an id in JSON.
_CHARACTER_BYTES = 6


class Search:
    """Search in a snapshot of an index."""

    def __init__(
        self, store: IndexStore, limits: Limits, opened: OpenIndex, image: Image, options: SearchOptions, threads: int
    ) -> None:
        self._store, self._limits, self._threads = store, limits, threads
        self._opened, self._image, self._options = opened, image, options
        keeps = opened.manifest.keep == "vectors"
        if options.exact and not keeps:
            raise InvalidInput(f"exact needs vectors, and index {opened.manifest.name!r} keeps codes alone", "/exact")
        self._exactly = keeps if options.exact is None else options.exact
        self._spent, self._nbytes = 0, 0

    def results(self, rows: Rows) -> list[Result]:
        """Return the result of each row; raise what `IndexVectors.search` raises."""
        opened, image, options, layout = self._opened, self._image, self._options, self._opened.layout
        n, k = rows.shape[0], options.compared_exactly if self._exactly else options.k
        self._take(n * (_BYTES_PER_QUERY + min(k, image.size) * _BYTES_PER_RESULT))
        self._spend(opened.feature_map.operations(rows), n)
        self._spend((_PER_QUERY + (_PER_READING if self._exactly and image.size else 0)) * n, n)
        bands = 0 if layout.banding is None else layout.banding.bands
        per_query = _PER_BAND * bands * len(image.segments) if bands else _PER_BYTE * image.size * layout.code_bytes
        self._spend(per_query * n, n)
        similarity = options.min_similarity
        least = 0 if similarity is None else opened.codes.least(similarity, self._exactly)
        marked = None if options.tag is None else labels.number(labels.mark(options.tag, "/tag"))
        found = []
        for part in row_blocks(n, _BYTES_AT_ONCE // (layout.code_bytes + 2 * bands)):
            queries = opened.codes.pack(opened.feature_map, rows[part])
            every = search(image, layout, queries, k, least, marked, self._threads)
            found += [self._result(rows[i : i + 1], hits) for i, hits in enumerate(every, part.start)]
        return found

    def _result(self, row: Rows, hits: Hits) -> Result:
        layout = self._opened.layout
        if layout.banding is not None:
            self._spend(_PER_BUCKET * layout.banding.bands * hits.candidates)
        places = (divmod(slot, layout.slots_per_block) for slot in hits.slots.tolist())
        ids = [labels.at(self._image.ids[block], place) for block, place in places]
        similarity, error = self._opened.codes.similarities(hits.counts)
        if not self._exactly:
            return self._write_result(ids, {"similarity": similarity, "standard_error": error}, hits)
        exact = self._exact(row, ids)
        order = np.argsort(-exact, kind="stable")  # among equal ones, those that agree in more codes come first
        order = order[exact[order] >= (self._options.min_similarity or -np.inf)][: self._options.k]
        numbers = {"similarity": similarity[order], "standard_error": error[order], "exact": exact[order]}
        return self._write_result([ids[i] for i in order], numbers, hits)

    def _write_result(self, ids: list[bytes], numbers: dict[str, Matrix], hits: Hits) -> Result:
        self._take(_CHARACTER_BYTES * sum(map(len, ids)))  # some ids are longer than everything else about a vector
        told: Result = {"ids": [labels.read(one) for one in ids]}
        return told | {name: one.tolist() for name, one in numbers.items()} | {"candidates": hits.candidates}

    def _exact(self, row: Rows, ids: list[bytes]) -> Matrix:
        """Return the exact similarities of a row and vectors as stored now; NaN for vectors that no longer exist."""
        opened, found = self._opened, np.full(len(ids), np.nan)
        first, at_once = 0, 1 + _BYTES_AT_ONCE * opened.state.size // max(1, opened.state.nbytes)
        while first < len(ids):
            stored = self._store.vectors(opened.manifest, ids[first : first + at_once], _BYTES_AT_ONCE)
            found[first : first + len(stored)] = self._compare(row, stored)
            first, at_once = first + len(stored), 2 * len(stored)
        return found

    def _compare(self, row: Rows, stored: list[bytes | None]) -> Matrix:
        """Return the exact similarities of a row and stored vectors; NaN in the place of None."""
        feature_map, found = self._opened.feature_map, np.full(len(stored), np.nan)
        for sparse in (False, True):
            there = {i: one for i, one in enumerate(stored) if one is not None and is_sparse(one) is sparse}
            if there:
                others = self._unpack_rows([*there.values()])
                nbytes = feature_map.kernel.exact_bytes(row, others)
                self._spend(feature_map.kernel.exact_operations(row, others) + sparse * _PER_DENSE_BYTE * nbytes)
                for part in row_blocks(len(there), _BYTES_COMPARED * len(there) // max(1, nbytes)):
                    found[[*there][part]] = feature_map.exact_gram(row, others[part])[0]
        return found

    def _unpack_rows(self, stored: list[bytes]) -> Rows:
        try:
            return unpack_rows(stored, self._opened.feature_map.spec.input_dim)
        except (ValueError, IndexError) as error:
            raise StoreDamaged(f"a vector of index {self._opened.manifest.name!r} is not what was kept") from error

    def _take(self, nbytes: int) -> None:
        """Count the memory of results; raise TooLarge if it is too much for one answer."""
        self._nbytes += nbytes
        self._limits.check_result(self._nbytes)

    def _spend(self, operations: int, n: int = 0) -> None:
        """Count work; raise TooLarge if it is too much for one request."""
        self._spent += operations
        self._limits.check_operations(self._spent, n)


Warnings = tuple[str, ...]
"""Doubts about the codes, one sentence each."""


class IndexVectors:
    """Operations on the vectors of indexes. Methods raise what `Indexes.open` raises, and may use `threads` threads."""

    def __init__(
        self, store: IndexStore, indexes: Indexes, images: Images, datasets: Datasets, limits: Limits, threads: int
    ) -> None:
        self._store, self._indexes, self._images = store, indexes, images
        self._datasets, self._limits, self._threads = datasets, limits, threads

    def upsert(self, name: str, read: Callable[[int, CheckCount], Batch], owner: str = "") -> tuple[int, Warnings]:
        """Put vectors into an index, all of them or none; they replace vectors with the same ids.

        `read` receives the length of a row, and a function that checks the number of vectors. The vectors count towards
        `owner`'s quota, whoever created the index.

        Returns:
            The number of vectors, and doubts about their codes.

        Raises:
            InvalidInput: a vector has no codes; ids or tags are invalid, or their number differs from that of the
                vectors; or an id occurs twice.
            TooLarge: there are too many vectors for one request, or for the memory of a process.
            QuotaExceeded: there is no room for the vectors.
        """
        return latest(lambda: self._upsert(self._indexes.open(name), read, owner))

    def remove(self, name: str, vector_id: int | str, owner: str = "") -> None:
        """Remove a vector from an index, for an owner; raise VectorNotFound if there is none with this id."""
        written = labels.encode_id(vector_id, "")
        if not latest(lambda: self._store.remove(self._indexes.open(name).manifest, written, owner)):
            raise VectorNotFound(name, vector_id)

    def search(
        self, name: str, read: Callable[[int], tuple[SearchOptions, PostedRows | Reference]]
    ) -> tuple[list[Result], Warnings]:
        """Find the nearest vectors to each query, see `Search.results`; also return doubts about the queries' codes.

        `read` receives the length of a row.

        Raises:
            InvalidInput: a query has no codes, or exact similarities are requested of an index that keeps codes only.
            TooLarge: the work or the results exceed a limit.
        """

        def look() -> tuple[list[Result], Warnings]:
            opened = self._indexes.open(name)
            with self._images.looked_at(opened.manifest, opened.state) as image:
                options, posted = read(opened.feature_map.spec.input_dim)
                given = self._datasets.read_rows({"vectors": posted}, opened.feature_map.spec.gate)
                with at_their_datasets(given.references):
                    found = Search(self._store, self._limits, opened, image, options, self._threads)
                    return found.results(given.rows["vectors"]), warnings_of(opened.feature_map, given.rows)

        return latest(look)

    def _upsert(self, opened: OpenIndex, read: Callable[[int, CheckCount], Batch], owner: str) -> tuple[int, Warnings]:
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
        marks = [labels.UNTAGGED] * n if batch.tags is None else labels.marks(batch.tags, "/tags")
        self._limits.check_operations(feature_map.operations(rows), n)
        vectors = pack_rows(rows) if opened.manifest.keep == "vectors" else [b""] * n
        self._limits.check_batch_bytes(sum(map(len, vectors)) + n * opened.layout.code_bytes)
        with at_their_datasets(given.references):
            codes = opened.codes.pack(feature_map, rows)
        entries = [
            Entry(key, mark + code.tobytes(), vector)
            for key, mark, code, vector in zip(keys, marks, codes, vectors, strict=True)
        ]
        if entries:
            try:
                self._store.upsert(opened.manifest, entries, self._images.room(opened.manifest), owner)
            except IndexFull as full:
                raise self._images.refusal(full) from full
        return n, warnings_of(feature_map, given.rows)
