"""Jobs that copy the vectors of an index into another one: over another map, or with other bands."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple, cast

import numpy as np
import orjson
from pydantic import Field

from app.core.arrays import Rows, vectors
from app.core.errors import InvalidInput
from app.core.indexes import labels
from app.core.indexes.labels import is_sparse, pack_rows, unpack_rows
from app.core.model import NAME_PATTERN, Frozen
from app.core.progress import Progress
from app.jobs.jobs import Jobs
from app.jobs.record import JobRecord
from app.services.index_upserts import IndexUpserts
from app.services.indexes import MOST_CODES, AskedIndex, Indexes, IndexRecord, OpenIndex, Target
from app.services.maps import Maps
from app.store.errors import Gone, NameHeld
from app.store.indexes import MARK_BYTES, Entry, IndexStore, StoredRow

COPY = "copy-index"
# Vectors that are copied at once, and bytes of their tags, or of vectors that one call reads.
_AT_ONCE, _BYTES_AT_ONCE = 100, 1 << 22
# Vectors, some at least, whose ids are kept before they are copied.
_IN_HAND = 2000


class AskedCopy(Frozen):
    """The index to copy, and in what the copy differs from it."""

    source: Annotated[str, Field(alias="from", pattern=NAME_PATTERN)]
    """Name of the index whose vectors are copied."""
    map: Annotated[str, Field(pattern=NAME_PATTERN)] | None = None
    """Name of another map, for rows that are prepared in the same way. The index to copy must keep vectors."""
    bands: Annotated[int, Field(ge=1, le=MOST_CODES)] | None = None
    """Number of bands; null for none. Without it, those of the index to copy."""
    rows_per_band: Annotated[int, Field(ge=1, le=MOST_CODES)] | None = None
    """Codes of a band."""
    target: Target | None = None
    """`recall` and `min_similarity`, by which bands are chosen."""
    keep: Literal["codes", "vectors"] | None = None
    """What the copy keeps; without it, what the index to copy does."""


class IndexCopies(NamedTuple):
    """Copies indexes by jobs."""

    store: IndexStore
    indexes: Indexes
    maps: Maps
    upserts: IndexUpserts
    jobs: Jobs

    def submit(self, name: str, asked: AskedCopy, ttl: int | None, owner: str = "") -> JobRecord:
        """Create an index, unless an empty one exists, and submit a job that copies all vectors of another one into it.

        Raises:
            IndexNotFound: there is no index to copy.
            InvalidInput: it keeps codes alone, and the copy needs vectors; or the map is for other rows.
            NameHeld: the copy exists, and has vectors.
            TooManyJobs: the job queue is full. The copy is there then, and empty.
        Also raises what `Indexes.create` raises.
        """
        source = self.indexes.open(asked.source)
        manifest = source.manifest
        if asked.target is not None and asked.target.dataset is not None:
            raise InvalidInput("the target of a copy has min_similarity, and no dataset", "/target/dataset")
        given = asked.model_dump(exclude={"source"}, exclude_none=True)
        banding = {"bands": manifest.bands, "rows_per_band": manifest.rows_per_band}
        if asked.target is not None or ("bands" in asked.model_fields_set and asked.bands is None):
            banding = {}
        subject = self.maps.open(asked.map or manifest.map.name)
        members = {"keep": manifest.keep} | banding | given | {"map": subject.name}
        if _needs_vectors(source, members["keep"], subject.digest) and manifest.keep != "vectors":
            detail = f"index {manifest.name!r} keeps codes alone, and no vectors to copy"
            raise InvalidInput(detail, "/from")
        before, after = (one.feature_map.spec.model_dump(include={"input_dim", "input"}) for one in (source, subject))
        if before != after:
            detail = f"map {subject.name!r} has another input_dim, or prepares its input in another way"
            raise InvalidInput(detail, "/map")
        self.indexes.create(name, AskedIndex.model_validate(members), ttl, owner, check=_refuse_vectors)
        target = self.indexes.open(name).manifest
        if target.map.digest != subject.digest:
            raise InvalidInput(f"map {subject.name!r} was replaced meanwhile: delete the copy, and try again", "/map")
        payload = {"from": [manifest.name, manifest.token], "to": [target.name, target.token]}
        return self.jobs.submit(
            COPY,
            payload,
            subject={"index": name, "from": manifest.name},
            result_link=f"/v1/indexes/{name}",
            owner=owner,
        )

    def copy(self, payload: Mapping[str, Any], progress: Progress, owner: str) -> None:
        """Copy all vectors that are in the index during the whole job, from the last slot to the first.

        A change that is made meanwhile, first in the index and then in the copy, is in both.

        Raises:
            InvalidInput: one of the indexes no longer exists, or a vector has no codes.
        """
        restored, before, in_hand = progress.restore(), cast("int | None", None), list[bytes]()
        if restored is not None:
            before, ids = orjson.loads(restored)
            in_hand = [*map(bytes.fromhex, ids)]
        source, target = (self.indexes.open_same(*payload[one]) for one in ("from", "to"))
        try:
            with self.store.using(source.manifest, target.manifest):
                while in_hand or before != 0:
                    for i in range(0, len(in_hand), _AT_ONCE):
                        progress.checkpoint(lambda: _state(before, in_hand[i:]))  # noqa: B023 - called at once
                        source, target = (self.indexes.open_same(*payload[one]) for one in ("from", "to"))
                        _Copying(self, source, target, owner, progress).copy(in_hand[i : i + _AT_ONCE])
                        left = (before or 0) + max(0, len(in_hand) - i - _AT_ONCE)
                        progress.report(max(0, source.state.size - left), source.state.size)
                    in_hand = []
                    while before != 0 and len(in_hand) < _IN_HAND:
                        page, before = self.store.vector_page(source.manifest, before, _AT_ONCE, _BYTES_AT_ONCE)
                        in_hand += [one.id for one in page]
                    # Kept before they are copied: if the job stops then, and others delete one of them, it finds out.
                    progress.save(lambda: _state(before, in_hand))  # noqa: B023 - called at once
        except Gone as error:
            raise InvalidInput("an index was deleted while it was copied") from error


def _state(before: int | None, in_hand: list[bytes]) -> bytes:
    return orjson.dumps([before, [one.hex() for one in in_hand]])


_Stored = tuple[StoredRow | None, bytes | None]
"""Row of a vector, and the vector itself if it is needed; None where there is none."""


class _Copying(NamedTuple):
    """One index that is being copied into another."""

    of: IndexCopies
    source: OpenIndex
    target: OpenIndex
    owner: str
    progress: Progress

    def copy(self, ids: list[bytes]) -> None:
        """Copy the vectors with some ids as they are now.

        They are read again, and those that have changed copied again, until nothing has changed since they were read.
        So what others change meanwhile, first here and then in the copy, is not overwritten with what was there before.
        """
        copied = dict.fromkeys(ids, cast("_Stored", ()))
        ids = [*copied]  # each once: a vector that moves to a lower slot is on two pages
        revision = -1
        while revision != (revision := self._revision(self.source)):
            now = dict(zip(ids, self._read(ids), strict=True))
            changed = [one for one in ids if now[one] != copied[one]]
            if not changed:  # other vectors have changed
                return
            self._put([now[one] for one in changed])
            gone = [one for one in changed if now[one][0] is None]
            while gone and not self.of.store.remove_many(self.target.manifest, gone, revision=self._own_revision()):
                pass  # others have changed the copy meanwhile
            copied = now

    def _revision(self, of: OpenIndex) -> int:
        return self.of.indexes.open_same(of.manifest.name, of.manifest.token).state.revision

    def _own_revision(self) -> int:
        """Return the revision of the copy, in which this attempt still has the job.

        A write that is for this revision alone is refused once another attempt, or somebody after the job, has written.
        """
        revision = self._revision(self.target)
        self.progress.confirm()
        return revision

    @property
    def _needs_vectors(self) -> bool:
        target = self.target.manifest
        return _needs_vectors(self.source, target.keep, target.map.digest)

    def _read(self, ids: list[bytes]) -> list[_Stored]:
        manifest, vectors = self.source.manifest, list[bytes | None]()
        rows = self.of.store.rows(manifest, ids, tags=True)
        while self._needs_vectors and len(vectors) < len(ids):
            vectors += self.of.store.vectors(manifest, ids[len(vectors) :], _BYTES_AT_ONCE)
        return [*zip(rows, vectors or [None] * len(ids), strict=True)]

    def _put(self, changed: list[_Stored]) -> None:
        there = [(row, vector) for row, vector in changed if row is not None]
        if not self._needs_vectors:
            self._store([Entry(row.id, row.row, b"", row.tags or b"") for row, _ in there])
        for sparse in (False, True):
            some = [(row, one) for row, one in there if one is not None and is_sparse(one) is sparse]
            if some:
                rows = unpack_rows([one for _, one in some], self.target.feature_map.spec.input_dim)
                self._store(_encode(self.target, [row for row, _ in some], rows))

    def _store(self, entries: list[Entry]) -> None:
        while entries and not self.of.upserts.store(self.target, entries, self.owner, self._own_revision()):
            pass  # others have changed the copy meanwhile


def _refuse_vectors(record: IndexRecord) -> None:
    """Raise NameHeld if the index that has the name of a copy has vectors."""
    if record.size:
        detail = f"index {record.name!r} exists, and has vectors; delete it, or take another name for the copy"
        raise NameHeld("index", detail)


def _needs_vectors(source: OpenIndex, keep: str, digest: str) -> bool:
    """Whether a copy that keeps this, and is over the map with a digest, needs more than the codes of the index."""
    return keep == "vectors" or source.manifest.map.digest != digest


def _encode(target: OpenIndex, stored: list[StoredRow], rows: Rows) -> list[Entry]:
    """Return vectors as the copy stores them, given their ids and tags and the vectors themselves."""
    spec = target.feature_map.spec
    rows = vectors(rows, spec.input_dim, spec.numpy_dtype, "/map")  # they were prepared when they were put
    without = np.flatnonzero(target.feature_map.find_rows_without_code(rows))
    if without.size:
        raise InvalidInput(f"vector {labels.read(stored[without[0]].id)!r} is all zero, and has no codes", "/map")
    codes = target.codes.pack(target.feature_map, rows)
    kept = pack_rows(rows) if target.manifest.keep == "vectors" else [b""] * len(stored)
    return [
        Entry(one.id, one.row[:MARK_BYTES] + code.tobytes(), vector, one.tags or b"")
        for one, code, vector in zip(stored, codes, kept, strict=True)
    ]
