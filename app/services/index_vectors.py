"""Vectors of indexes: removal, reading, counting and search."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from app.core.arrays import PostedRows, Rows, row_blocks
from app.core.datasets import Reference
from app.core.errors import InvalidOption
from app.core.indexes import labels
from app.core.indexes.labels import unpack_rows
from app.core.indexes.options import MOST_PAGED, DeleteOptions, Filter, SearchOptions
from app.services.cache import latest
from app.services.datasets import Datasets, at_their_datasets
from app.services.errors import IndexNotFound, VectorNotFound
from app.services.index_images import Images
from app.services.index_search import Result, Search, operations_of_filter, read_tags
from app.services.indexes import Indexes, OpenIndex
from app.services.limits import Limits
from app.services.vectors import warnings_of
from app.store.errors import Gone
from app.store.indexes import BLOCK, MARK_BYTES, IndexStore, StoredRow

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

    def remove_many(self, name: str, asked: DeleteOptions) -> tuple[int, list[int | str]]:
        """Remove vectors by their ids, or those whose tags fit a filter; return how many, and the ids without a vector.

        They are removed some at a time. Vectors that get other tags meanwhile stay.

        Raises:
            InvalidInput: an id is invalid or occurs twice.
            TooLarge: there are too many ids for one request.
        """
        if asked.ids is not None:
            self._limits.check_batch(len(asked.ids))
        given = None if asked.ids is None else labels.encode_ids(asked.ids, "/ids")

        def choose() -> tuple[OpenIndex, list[int], list[bytes], list[bytes] | None]:
            opened = self._indexes.open(name)
            if given is not None or asked.filter is None:
                return opened, self._store.slots(opened.manifest, given or []), given or [], None
            with self._images.looked_at(opened.manifest, opened.state) as image:
                self._limits.check_operations(operations_of_filter(image))
                slots = np.flatnonzero(labels.fitting(image.marks, image.tags, asked.filter)).tolist()
                ids = [labels.at(image.ids[slot // BLOCK], slot % BLOCK) for slot in slots]
                marks = [int(image.marks[slot]).to_bytes(MARK_BYTES, "little") for slot in slots]
                return opened, slots, ids, marks

        opened, slots, ids, marks = latest(choose)
        removed, order = np.zeros(len(ids), np.bool_), _order_of_removal(slots, opened.state.size)
        try:
            with self._store.using(opened.manifest):
                for part in row_blocks(len(ids), _REMOVED_AT_ONCE):
                    some = order[part]
                    of_some = None if marks is None else [marks[i] for i in some]
                    removed[some] = self._store.remove_many(opened.manifest, [ids[i] for i in some], of_some)
        except Gone:
            raise IndexNotFound(name) from None
        missing = [one for one, there in zip(asked.ids or (), removed, strict=False) if not there]
        return int(removed.sum()), missing

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
            seen = self._images.looked_at(opened.manifest, opened.state)
            with self._store.using(opened.manifest), seen as image:
                options, posted = read(opened.feature_map.spec.input_dim)
                found = Search(self._store, self._limits, opened, image, options, self._threads, as_text)
                if posted is None:
                    results = found.results_of(options.ids or ())
                    return results, _next(options, found), ()
                given = self._datasets.read_rows({"vectors": posted}, opened.feature_map.spec.gate)
                with at_their_datasets(given.references):
                    results = found.results(given.rows["vectors"])
                    return results, _next(options, found), warnings_of(opened.feature_map, given.rows)

        return latest(look)


def _next(options: SearchOptions, found: Search) -> str | None:
    """Return the cursor of the next page; None if all results have ended before, or no more may be found."""
    return str(options.last) if found.has_more and options.last + options.k <= MOST_PAGED else None


def _order_of_removal(slots: Sequence[int], size: int) -> list[int]:
    """Return an order in which to remove vectors, given their slots (−1 for none), that moves as few as possible.

    Where a vector is removed, the last one moves into its slot. In this order no vector moves that is itself to be
    removed, and no other moves twice.
    """
    left = deque(sorted((i for i, slot in enumerate(slots) if slot >= 0), key=slots.__getitem__))
    order = [i for i, slot in enumerate(slots) if slot < 0]
    lasts = range(size - 1, size - 1 - len(left), -1)
    return order + [left.pop() if slots[left[-1]] == last else left.popleft() for last in lasts]


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
