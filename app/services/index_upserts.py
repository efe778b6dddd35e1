"""Insertion of vectors into indexes: all of a batch, or those that are like no other."""

import time
from collections.abc import Callable, Sequence
from itertools import chain, compress
from typing import Any, NamedTuple, TypeVar

import numpy as np

from app.core.arrays import Rows, own_bytes, row_blocks
from app.core.errors import InvalidInput
from app.core.indexes import labels
from app.core.indexes.banding import Codes
from app.core.indexes.labels import pack_rows
from app.core.indexes.options import Batch, CheckCount, SearchOptions, TagChanges
from app.core.indexes.search import nearest
from app.core.progress import Pause, no_pause
from app.services.cache import latest
from app.services.datasets import Datasets, at_their_datasets
from app.services.index_images import Images, Seen
from app.services.index_search import Search, read_tags
from app.services.indexes import Indexes, OpenIndex
from app.services.limits import Limits
from app.services.vectors import warnings_of
from app.store.errors import Gone, StoreUnavailable
from app.store.indexes import MARK_BYTES, Entry, IndexFull, IndexStore

Changed = TypeVar("Changed")
Alike = dict[int, dict[str, Any]]
"""Vectors of a batch that are like others, by their numbers: the members of `RefusedVector` without the id."""

_NUMBERS = "similarity", "exact"
# A vector is written again when one before it is deleted.
_MOST_VECTOR_BYTES = 1 << 20
# Vectors that are packed at a time, or that one call reads to change their tags, with codes and tags of up to 160 kB.
_ROWS_AT_ONCE = 100
# How long a change is tried again because others have changed the index meanwhile.
_CHANGING_SECONDS = 20.0


class Rule(NamedTuple):
    """Which vectors of a batch are put into an index."""

    skips: bool = False
    """Whether vectors that have no codes are left out."""
    unless_similar: float | None = None
    """Similarity from which a vector is refused, to one of the index or to one before it in the batch."""
    is_dry: bool = False
    """Whether nothing is stored."""


_ALL = Rule()


class Upserted(NamedTuple):
    """The result of an upsert."""

    inserted: list[int | str]
    """Ids of the vectors that are stored, or would be."""
    skipped: list[int | str]
    """Ids of the vectors that have no codes."""
    refused: list[dict[str, Any]]
    """Each vector that is like another, see `RefusedVector`."""
    warnings: tuple[str, ...]
    """Doubts about the codes, one sentence each."""


class _Prepared(NamedTuple):
    """A batch that is valid."""

    keys: Sequence[bytes]
    tags: Sequence[tuple[bytes, bytes]]
    """Mark of each vector's tags, and the tags as a JSON list."""
    rows: Rows
    vectors: Sequence[bytes]
    """The rows as they are stored; empty if the index keeps codes alone."""
    codes: Codes
    skipped: list[int | str]
    warnings: tuple[str, ...]


class IndexUpserts:
    """Puts vectors into indexes. Methods raise what `Indexes.open` raises, and may use `threads` threads."""

    def __init__(
        self, store: IndexStore, indexes: Indexes, images: Images, datasets: Datasets, limits: Limits, threads: int
    ) -> None:
        self._store, self._indexes, self._images = store, indexes, images
        self._datasets, self._limits, self._threads = datasets, limits, threads

    def upsert(
        self,
        name: str,
        read: Callable[[int, CheckCount], Batch],
        rule: Rule = _ALL,
        owner: str = "",
        pause: Pause = no_pause,
    ) -> Upserted:
        """Put the vectors of a batch into an index, in one step; they replace vectors with the same ids.

        `read` receives the length of a row, and a function that checks the number of vectors. The vectors count towards
        `owner`'s quota, whoever created the index. If vectors are refused that are similar to others, no vector that
        somebody else puts in meanwhile is overlooked. `pause` is called before anything is put in.

        Raises:
            InvalidInput: a vector has no codes; ids or tags are invalid, or their number differs from that of the
                vectors; or an id occurs twice.
            TooLarge: there are too many vectors for one request, or for the memory of a process.
            QuotaExceeded: there is no room for the vectors.
        """

        def put() -> Upserted:
            opened = self._indexes.open(name)
            with self._store.using(opened.manifest):
                batch = self._prepare(opened, read, rule.skips, pause)
                alike = self._put(opened, batch, rule, owner)
            ids = [labels.read(key) for key in batch.keys]
            refused = [{"id": ids[i], **one} for i, one in sorted(alike.items())]
            warnings = batch.warnings + (opened.doubts if rule.unless_similar is not None else ())
            return Upserted([one for i, one in enumerate(ids) if i not in alike], batch.skipped, refused, warnings)

        return latest(put)

    def change_tags(self, name: str, asked: TagChanges, owner: str = "") -> tuple[int, list[int | str]]:
        """Add and remove tags of vectors, in one step; return how many now have other tags, and ids without a vector.

        Raises:
            InvalidInput: an id is invalid or occurs twice; a vector would have too many tags, or has one whose text an
                earlier version did not keep.
            TooLarge: there are too many ids for one request, or their codes and tags take too much.
            QuotaExceeded: there is no room for the tags.
        """
        self._limits.check_batch(len(asked.ids))
        keys = labels.encode_ids(asked.ids, "/ids")

        def change(opened: OpenIndex) -> tuple[int, list[int | str]] | None:
            entries, missing, nbytes = list[Entry](), list[int | str](), 0
            parts = (keys[part] for part in row_blocks(len(keys), _ROWS_AT_ONCE))
            every = (self._store.rows(opened.manifest, part, tags=True) for part in parts)
            for i, one in enumerate(chain.from_iterable(every)):
                if one is None:
                    missing.append(asked.ids[i])
                    continue
                before = read_tags(labels.number(one.row[:MARK_BYTES]), one.tags)
                if before is None:
                    raise InvalidInput("the text of its tag is not known: send the vector with its tags", f"/ids/{i}")
                tags = sorted({*before, *asked.add_tags} - {*asked.remove_tags})
                if tags != before:
                    mark, text = labels.encode_tags(tags, f"/ids/{i}")
                    entries.append(Entry(one.id, mark + one.row[MARK_BYTES:], b"", text))
                    nbytes += len(one.row) + len(text)
                    self._limits.check_batch_bytes(nbytes)
            if not entries:  # an earlier try of the same request may have changed them
                self._store.confirm(opened.manifest)
            elif not self.store(opened, entries, owner, opened.state.revision, tags_alone=True):
                return None
            return len(entries), missing

        return latest(lambda: self._until_unchanged(self._indexes.open(name), change))

    def _prepare(
        self, opened: OpenIndex, read: Callable[[int, CheckCount], Batch], skips: bool, pause: Pause
    ) -> _Prepared:
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
        self._limits.check_operations(feature_map.code_operations(rows), n)
        has_code = ~feature_map.find_rows_without_code(rows) if skips else np.ones(n, np.bool_)
        numbers = np.flatnonzero(has_code)
        skipped = [labels.read(keys[i]) for i in np.flatnonzero(~has_code)]
        if skipped:
            self._limits.check_rows(own_bytes(rows))  # most of them are copied
            rows, n = rows[has_code], n - len(skipped)
            keys, tags = [*compress(keys, has_code)], [*compress(tags, has_code)]
        nbytes = n * opened.layout.code_bytes + sum(len(text) for _, text in tags)
        self._limits.check_batch_bytes(nbytes)
        vectors = [b""] * n
        for part in row_blocks(n if opened.manifest.keep == "vectors" else 0, _ROWS_AT_ONCE):
            vectors[part] = pack_rows(rows[part])
            for i, one in enumerate(vectors[part], part.start):
                if len(one) > _MOST_VECTOR_BYTES:
                    detail = f"vectors take at most {_MOST_VECTOR_BYTES} bytes in an index that keeps them"
                    raise InvalidInput(f"{detail}, got {len(one)}", f"/vectors/{numbers[i]}")
                nbytes += len(one)
            self._limits.check_batch_bytes(nbytes)
        with at_their_datasets(given.references):
            codes = opened.codes.pack(feature_map, rows, pause)
        return _Prepared(keys, tags, rows, vectors, codes, skipped, warnings_of(feature_map, given.rows))

    def _put(self, opened: OpenIndex, batch: _Prepared, rule: Rule, owner: str) -> Alike:
        """Store the vectors that are like no other; return the others, by their numbers in the batch.

        If the index has changed meanwhile, the store refuses them. Then they are compared with what is new in it.
        """
        entries = [
            Entry(key, mark + code.tobytes(), vector, text)
            for key, (mark, text), code, vector in zip(batch.keys, batch.tags, batch.codes, batch.vectors, strict=True)
        ]
        alike: Alike = {}
        compared: tuple[Alike, Seen] | None = None

        def put(opened: OpenIndex) -> Alike | None:
            nonlocal compared
            if rule.unless_similar is not None:
                compared = self._compare(opened, batch, rule.unless_similar, alike, compared)
            found, revision = (alike, None) if compared is None else (compared[0], compared[1].revision)
            wanted = [one for i, one in enumerate(entries) if i not in found]
            if rule.is_dry:
                return found
            if not wanted:  # an earlier try of the same request may have put those that they are like
                self._store.confirm(opened.manifest)
                return found
            return found if self.store(opened, wanted, owner, revision) else None

        return self._until_unchanged(opened, put)

    def _until_unchanged(self, opened: OpenIndex, change: Callable[[OpenIndex], Changed | None]) -> Changed:
        """Return what `change` does, once the index has not changed between its reading and its writing."""
        ends_at: float | None = None  # the first comparison may take long, the others look at what has changed
        while (found := change(opened)) is None:
            ends_at = ends_at or time.monotonic() + _CHANGING_SECONDS
            if time.monotonic() > ends_at:
                raise StoreUnavailable(f"index {opened.manifest.name!r} changes faster than it can be compared")
            again = self._indexes.open(opened.manifest.name)
            if again.manifest.token != opened.manifest.token:
                raise Gone
            opened = again
        return found

    def store(
        self,
        opened: OpenIndex,
        entries: list[Entry],
        owner: str,
        revision: int | None = None,
        *,
        tags_alone: bool = False,
    ) -> bool:
        """Store vectors, all of them or none; see `IndexStore.upsert`. TooLarge if a process has no room for them."""
        room = self._images.room(opened.manifest)
        try:
            return self._store.upsert(opened.manifest, entries, room, owner, revision, tags_alone=tags_alone)
        except IndexFull as full:
            raise self._images.refusal(full) from full

    def _compare(
        self, opened: OpenIndex, batch: _Prepared, similarity: float, alike: Alike, before: tuple[Alike, Seen] | None
    ) -> tuple[Alike, Seen]:
        """Compare vectors with those of the index, add to `alike` those that are like one, and then with each other.

        With the result of an earlier comparison, only what has changed in the index since is looked at. Returns all
        that are like another, and the snapshot of the index.
        """
        left = np.array([i for i in range(len(batch.keys)) if i not in alike], np.intp)
        options, n_before = SearchOptions(k=1, min_similarity=similarity, scan=True), len(alike)
        with self._images.seen(opened.manifest, opened.state) as seen:
            among = None if before is None else seen.changed_since(before[1])
            if among is not None:
                law, least = opened.codes, opened.codes.least(similarity, opened.manifest.keep == "vectors")
                changed, codes = np.flatnonzero(among), seen.image.codes
                near = nearest(batch.codes[left], codes, law.s, law.bits, 1, changed, least) if len(changed) else None
                left = left[near.slots[:, 0] >= 0] if near is not None else left[:0]
            own = [batch.keys[i] for i in left]
            search = Search(self._store, self._limits, opened, seen.image, options, self._threads, own=own, among=among)
            for j, one in search.most_similar(batch.rows, left, batch.codes[left]).items():
                alike[int(left[j])] = {"like": one["ids"][0]} | {key: one[key][0] for key in _NUMBERS if key in one}
            if before is not None and len(alike) == n_before:
                return before[0], seen
            left = np.array([i for i in range(len(batch.keys)) if i not in alike], np.intp)
            within = search.alike(batch.rows, left, batch.codes[left])
        each = {
            int(left[i]): {"like": labels.read(batch.keys[left[j]]), **numbers} for i, (j, numbers) in within.items()
        }
        return alike | each, seen
