"""Jobs that copy the vectors of an index into another one: over another map, or with other bands."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple, cast

import numpy as np
from pydantic import Field

from app.core.arrays import Rows
from app.core.errors import InvalidInput
from app.core.indexes import labels
from app.core.indexes.labels import is_sparse, pack_rows, unpack_rows
from app.core.model import NAME_PATTERN, Frozen
from app.core.progress import Progress
from app.jobs.jobs import Jobs
from app.jobs.record import JobRecord, TooManyJobs
from app.services.index_upserts import IndexUpserts
from app.services.indexes import AskedIndex, Indexes, OpenIndex, Target
from app.store.errors import Gone, NameHeld, QuotaExceeded
from app.store.indexes import MARK_BYTES, Entry, IndexStore, StoredRow

COPY = "copy-index"
# Vectors that are copied at once, and bytes of their tags, or of vectors that one call reads.
_AT_ONCE, _BYTES_AT_ONCE = 100, 1 << 22


class AskedCopy(Frozen):
    """The index to copy, and in what the copy differs from it."""

    source: Annotated[str, Field(alias="from", pattern=NAME_PATTERN)]
    """Name of the index whose vectors are copied."""
    map: Annotated[str, Field(pattern=NAME_PATTERN)] | None = None
    """Name of another map, for rows that are prepared in the same way. The index to copy must keep vectors."""
    bands: int | None = None
    """Number of bands; null for none. Without it, those of the index to copy."""
    rows_per_band: int | None = None
    """Codes of a band."""
    target: Target | None = None
    """`recall` and `min_similarity`, by which bands are chosen."""
    keep: Literal["codes", "vectors"] | None = None
    """What the copy keeps; without it, what the index to copy does."""


class IndexCopies(NamedTuple):
    """Copies indexes by jobs."""

    store: IndexStore
    indexes: Indexes
    upserts: IndexUpserts
    jobs: Jobs

    def submit(self, name: str, asked: AskedCopy, ttl: int | None, owner: str = "") -> JobRecord:
        """Create an index, unless an empty one exists, and submit a job that copies all vectors of another one into it.

        Raises:
            IndexNotFound: there is no index to copy.
            InvalidInput: it keeps codes alone, and the copy needs vectors; or the map is for other rows.
            NameHeld: the copy exists, and has vectors.
            TooManyJobs: the job queue is full.
        Also raises what `Indexes.create` raises.
        """
        source = self.indexes.open(asked.source)
        there = source.manifest
        if asked.target is not None and asked.target.dataset is not None:
            raise InvalidInput("the target of a copy has min_similarity, and no dataset", "/target/dataset")
        members = {"bands": there.bands, "rows_per_band": there.rows_per_band} if asked.target is None else {}
        members |= {"map": there.map.name, "keep": there.keep} | asked.model_dump(
            exclude={"source"}, exclude_unset=True
        )
        record, is_new = self.indexes.create(name, AskedIndex.model_validate(members), ttl, owner)
        if record.size:
            detail = f"index {name!r} exists, and has vectors; delete it, or take another name for the copy"
            raise NameHeld("index", detail)
        try:
            target = self.indexes.open(name)
            _check(source, target)
            payload = {"from": [there.name, there.token], "to": [name, target.manifest.token]}
            subject = {"index": name, "from": there.name}
            return self.jobs.submit(COPY, payload, subject=subject, result_link=f"/v1/indexes/{name}", owner=owner)
        except (InvalidInput, TooManyJobs, QuotaExceeded):
            if is_new:
                self.indexes.delete(record.name)
            raise

    def copy(self, payload: Mapping[str, Any], progress: Progress, owner: str) -> None:
        """Copy all vectors that are there from beginning to end, from the last slot to the first.

        Whoever changes vectors meanwhile, first in the index and then in the copy, finds these changes in both.

        Raises:
            InvalidInput: one of the indexes no longer exists, or a vector has no codes.
        """
        try:
            source, target = (self.indexes.open_same(*payload[one]) for one in ("from", "to"))
            copying, size = _Copying(self, source, target, owner), source.state.size
            restored = progress.restore()
            before = None if restored is None else int(restored)
            while before != 0:
                page, before = self.store.vector_page(source.manifest, before, _AT_ONCE, _BYTES_AT_ONCE)
                copying.copy([one.id for one in page])
                progress.report(max(0, size - before), size)
                progress.checkpoint(lambda: b"%d" % before)  # noqa: B023 - called before it returns
        except Gone as error:
            raise InvalidInput("an index was deleted while it was copied") from error


_Stored = tuple[StoredRow | None, bytes | None]
"""Row of a vector, and the vector itself if it is needed; None where there is none."""


class _Copying(NamedTuple):
    """One index that is being copied into another."""

    of: IndexCopies
    source: OpenIndex
    target: OpenIndex
    owner: str

    def copy(self, ids: list[bytes]) -> None:
        """Copy the vectors with some ids as they are now.

        They are read again, and copied again, until the index has not changed since they were read. So what others
        change meanwhile, first here and then in the copy, is not overwritten with what was there before.
        """
        copied = dict.fromkeys(ids, cast("_Stored", ()))
        revision = -1
        while revision != (revision := self._revision()):
            now = dict(zip(ids, self._read(ids), strict=True))
            changed = [one for one in ids if now[one] != copied[one]]
            self._put([now[one] for one in changed])
            gone = [one for one in changed if now[one][0] is None]
            if gone:
                self.of.store.remove_many(self.target.manifest, gone, self.owner)
            copied = now

    def _revision(self) -> int:
        found = self.of.store.look(self.source.manifest.name, self.source.manifest)
        if found is None or found[0].token != self.source.manifest.token:
            raise Gone
        return found[1].revision

    def _read(self, ids: list[bytes]) -> list[_Stored]:
        manifest, vectors = self.source.manifest, list[bytes | None]()
        rows = self.of.store.rows(manifest, ids, tags=True)
        while _needs_vectors(self.source, self.target) and len(vectors) < len(ids):
            vectors += self.of.store.vectors(manifest, ids[len(vectors) :], _BYTES_AT_ONCE)
        return [*zip(rows, vectors or [None] * len(ids), strict=True)]

    def _put(self, changed: list[_Stored]) -> None:
        there = [(row, vector) for row, vector in changed if row is not None]
        if not _needs_vectors(self.source, self.target):
            self._store([Entry(row.id, row.row, b"", row.tags or b"") for row, _ in there])
        for sparse in (False, True):
            some = [(row, one) for row, one in there if one is not None and is_sparse(one) is sparse]
            if some:
                rows = unpack_rows([one for _, one in some], self.target.feature_map.spec.input_dim)
                self._store(_encode(self.target, [row for row, _ in some], rows))

    def _store(self, entries: list[Entry]) -> None:
        if entries:
            self.of.upserts.store(self.target, entries, self.owner)


def _needs_vectors(source: OpenIndex, target: OpenIndex) -> bool:
    return target.manifest.keep == "vectors" or source.manifest.map.digest != target.manifest.map.digest


def _check(source: OpenIndex, target: OpenIndex) -> None:
    """Raise InvalidInput unless the vectors of an index can be copied into another one."""
    if _needs_vectors(source, target) and source.manifest.keep != "vectors":
        raise InvalidInput(f"index {source.manifest.name!r} keeps codes alone, and no vectors to copy", "/from")
    before, after = (one.feature_map.spec for one in (source, target))
    if (before.input_dim, before.input) != (after.input_dim, after.input):
        detail = f"map {target.manifest.map.name!r} has another input_dim, or prepares its input in another way"
        raise InvalidInput(detail, "/map")


def _encode(target: OpenIndex, stored: list[StoredRow], rows: Rows) -> list[Entry]:
    """Return vectors as the copy stores them, given their ids and tags and the vectors themselves."""
    spec = target.feature_map.spec
    rows = spec.model_copy(update={"input": None}).gate(rows, "/map")  # they were prepared when they were put
    without = np.flatnonzero(target.feature_map.find_rows_without_code(rows))
    if without.size:
        raise InvalidInput(f"vector {labels.read(stored[without[0]].id)!r} is all zero, and has no codes", "/map")
    codes = target.codes.pack(target.feature_map, rows)
    vectors = pack_rows(rows) if target.manifest.keep == "vectors" else [b""] * len(stored)
    return [
        Entry(one.id, one.row[:MARK_BYTES] + code.tobytes(), vector, one.tags or b"")
        for one, code, vector in zip(stored, codes, vectors, strict=True)
    ]
