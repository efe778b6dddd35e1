"""Vectors of indexes: removal, reading, counting and search."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import PostedRows, Rows, row_blocks
from app.core.datasets import Reference
from app.core.errors import InvalidOption
from app.core.indexes import labels
from app.core.indexes.labels import unpack_rows
from app.core.indexes.options import MOST_PAGED, DeleteOptions, Filter, SearchOptions
from app.core.progress import Pause, no_pause
from app.services.cache import latest
from app.services.datasets import Datasets, at_their_datasets
from app.services.errors import IndexNotFound, VectorNotFound
from app.services.index_images import Images, id_at
from app.services.index_search import Result, Search, operations_of_filter, read_tags
from app.services.indexes import Indexes, OpenIndex
from app.services.limits import Limits
from app.services.vectors import warnings_of
from app.store.errors import Gone
from app.store.indexes import MARK_BYTES, IndexStore, StoredRow

Slots = NDArray[np.int64]
Warnings = tuple[str, ...]
"""Doubts about the codes, one sentence each."""


class IndexVectors:
    """Operations on the vectors of indexes. Methods raise what `Indexes.open` raises, and may use `threads` threads."""

    def __init__(
        self, store: IndexStore, indexes: Indexes, images: Images, datasets: Datasets, limits: Limits, threads: int
    ) -> None:
        self._store, self._indexes, self._images = store, indexes, images
        self._datasets, self._limits, self._threads = datasets, limits, threads

    def remove(self, name: str, vector_id: int | str) -> None:
        """Remove a vector from an index; raise VectorNotFound if there is none with this id."""
        written = labels.encode_id(vector_id, "")
        if not latest(lambda: self._store.remove(self._indexes.open(name).manifest, written)):
            raise VectorNotFound(name, vector_id)

    def begin_removal(self, name: str, asked: DeleteOptions) -> "Removal":
        """Choose vectors to remove: by their ids, or those whose tags fit a filter.

        Raises:
            InvalidInput: an id is invalid or occurs twice.
            TooLarge: there are too many ids for one request.
        """
        if asked.ids is not None:
            self._limits.check_batch(len(asked.ids))
        given = None if asked.ids is None else labels.encode_ids(asked.ids, "/ids")

        def choose() -> Removal:
            opened = self._indexes.open(name)
            if given is not None or asked.filter is None:
                keys = given or []
                slots = np.array(self._store.slots(opened.manifest, keys), np.int64)
                return Removal(self._store, opened, slots, keys.__getitem__, None)
            with self._images.looked_at(opened.manifest, opened.state) as image:
                self._limits.check_operations(operations_of_filter(image))
                slots, blocks = np.flatnonzero(labels.fitting(image.marks, image.tags, asked.filter)), [*image.ids]
                marks = image.marks[slots]
            return Removal(self._store, opened, slots, lambda i: id_at(blocks, slots[i]), marks)

        return latest(choose)

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
        pause: Pause = no_pause,
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
            seen = self._images.looked_at(opened.manifest, opened.state)
            with self._store.using(opened.manifest), seen as image:
                options, posted = read(opened.feature_map.spec.input_dim)
                found = Search(self._store, self._limits, opened, image, options, self._threads, as_text, pause=pause)
                if posted is None:
                    results = found.results_of(options.ids or ())
                    return results, _next(options, found), opened.doubts
                given = self._datasets.read_rows({"vectors": posted}, opened.feature_map.spec.gate)
                with at_their_datasets(given.references):
                    results = found.results(given.rows["vectors"])
                    doubts = warnings_of(opened.feature_map, given.rows) + opened.doubts
                    return results, _next(options, found), doubts

        return latest(look)


def _next(options: SearchOptions, found: Search) -> str | None:
    """Return the cursor of the next page; None if all results have ended before, or no more may be found."""
    return str(options.last) if found.has_more and options.last + options.k <= MOST_PAGED else None


class Removal:
    """Removal of vectors from an index, some at a time. Vectors that get other tags meanwhile stay.

    `slots` are those of the vectors, (n,), −1 for none; `key` returns the id of one. `marks`, (n,), are those of the
    tags that they must have, None for any.
    """

    def __init__(
        self,
        store: IndexStore,
        opened: OpenIndex,
        slots: Slots,
        key: Callable[[int], bytes],
        marks: NDArray[np.uint64] | None,
    ) -> None:
        self._store, self._manifest, self._key, self._marks = store, opened.manifest, key, marks
        self._order = _order_of_removal(slots, opened.state.size)
        self.removed = np.zeros(len(slots), np.bool_)
        """Whether each vector has been removed, (n,)."""

    def under_way(self) -> AbstractContextManager[None]:
        """Keep the index from expiring during a with block."""
        return self._store.using(self._manifest)

    @property
    def steps(self) -> Iterator[Callable[[], object]]:
        """Calls that remove some vectors each, in some milliseconds; one of them may raise IndexNotFound."""
        for part in row_blocks(len(self._order), _REMOVED_AT_ONCE):
            yield partial(self._remove, self._order[part])
        if not len(self._order):  # an earlier try of the same request may have removed them
            yield partial(self._store.confirm, self._manifest)

    def _remove(self, some: Slots) -> None:
        of_some = None if self._marks is None else [one.tobytes() for one in self._marks[some].astype("<u8")]
        try:
            self.removed[some] = self._store.remove_many(self._manifest, [*map(self._key, some.tolist())], of_some)
        except Gone:
            raise IndexNotFound(self._manifest.name) from None


def _order_of_removal(slots: Slots, size: int) -> Slots:
    """Return an order in which to remove vectors, given their slots (−1 for none), that moves as few as possible.

    Where a vector is removed, the last one moves into its slot. In this order no vector moves that is itself to be
    removed, and no other moves twice.
    """
    size = max(size, int(slots.max(initial=-1)) + 1)  # others may have put vectors in since it was read
    doomed = np.flatnonzero(slots >= 0)
    doomed = doomed[np.argsort(slots[doomed], kind="stable")]
    is_behind = slots[doomed] >= size - len(doomed)
    # Those behind where the index will end are removed when they are the last; all others when another one is.
    order, is_last = np.empty_like(doomed), np.zeros(len(doomed), np.bool_)
    lasts = size - 1 - slots[doomed[is_behind]]
    is_last[lasts], order[lasts] = True, doomed[is_behind]
    order[~is_last] = doomed[~is_behind]
    return np.concatenate([np.flatnonzero(slots < 0), order])


def _tags_of(one: StoredRow) -> list[str] | None:
    return read_tags(labels.number(one.row[:MARK_BYTES]), one.tags)


def _shown(rows: Rows) -> Any:
    """Return a row as it is posted in JSON: numbers, or indices and values."""
    return rows[0] if isinstance(rows, np.ndarray) else {"indices": rows.indices, "values": rows.data}


# Vectors that one call removes, some milliseconds.
_REMOVED_AT_ONCE = 100
# Most bytes of a number in JSON and in memory, for a byte as it is stored.
_BYTES_PER_NUMBER = 8


# Parts of an index that are looked at for a page of vectors with a tag, vectors of a part, and bytes of their tags.
_PARTS, _PART, _PART_BYTES = 20, 1000, 1 << 20
