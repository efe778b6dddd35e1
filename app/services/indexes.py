"""Indexes: requests for them, their records and codes, and the indexes in use."""

import hashlib
import logging
import secrets
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from math import ceil, floor
from threading import Lock
from typing import Annotated, Literal, NamedTuple, Self

import cachetools
import numpy as np
from pydantic import Field, model_validator
from scipy.special import bdtrik

from app.core.arrays import Matrix, Rows, Whole
from app.core.errors import InvalidInput
from app.core.hashing.code_laws import CodeLaw
from app.core.indexes.banding import Banding, Codes, Layout, banding_for, probability
from app.core.indexes.options import BandsOptions
from app.core.maps import FeatureMap
from app.core.model import NAME_PATTERN, Described, Frozen
from app.core.progress import Pause, no_pause
from app.jobs.jobs import Jobs
from app.jobs.record import JobError, TooManyJobs, link
from app.services.errors import IndexExists, IndexInUse, IndexNotFound, IndexNotReady
from app.services.maps import Maps
from app.store.errors import NameHeld, NewerVersion, QuotaExceeded, StoreDamaged, StoreUnavailable, left_out
from app.store.indexes import BLOCK, IndexManifest, IndexState, IndexStore, MapOfIndex
from app.store.manifest import now
from app.store.maps import MapManifest, MapStore
from app.store.named import NameTaken, Reservation, State, end
from app.store.pins import Pins, User

MOST_CODES = 1 << 16
"""Most bands, and most codes of a band."""
# Most bytes of the codes of a vector: a block of the store has those of 128 vectors, and is read as a whole.
_MOST_CODE_BYTES = 1 << 16
_BANDS = (
    "A search looks at the vectors that agree with the query in all codes of one of so many bands. Without bands it "
    "looks at the codes of all vectors."
)
_ROWS_PER_BAND = "Codes of a band; bands · rows_per_band are at most those of a vector."
_TARGET = (
    "In the place of bands: those that have the recall in the least time, as `POST /v1/indexes/advice` finds them; "
    "none, where comparing all codes takes less."
)

Warnings = Annotated[
    list[str] | None, Field(description="There where something is doubtful, as in the header Bochner-Warning.")
]


class Target(Frozen):
    """Requirements for searches of an index that choose its bands: `k` and `dataset`, or `min_similarity`."""

    recall: float = Field(gt=0, lt=1)
    """Share of the vectors that a search is to find, on average: of the k most similar ones, or the probability to find
    one of similarity `min_similarity`.
    """
    k: Annotated[int, Field(ge=1, le=100)] | None = None
    """Number of vectors that a search is to find."""
    dataset: Annotated[str, Field(pattern=NAME_PATTERN)] | None = None
    """Name of a dataset of rows like those that the index will hold, ideally all of them."""
    min_similarity: Annotated[float, Field(gt=0, le=1)] | None = None
    """Similarity of the vectors that a search is to find. No dataset is needed. For maps whose points have no seed, or
    that warn of a bias, the recall may be far smaller: give k and dataset, for which bands are measured.
    """

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if self.min_similarity is None:
            if missing := [member for member in ("k", "dataset") if getattr(self, member) is None]:
                detail = f"a target has k and dataset, or min_similarity; {missing[0]} is missing"
                raise InvalidInput(detail, f"/target/{missing[0]}")
        elif self.k is not None or self.dataset is not None:
            raise InvalidInput("expected k and dataset, or min_similarity, got both", "/target/min_similarity")
        return self


class AskedIndex(Frozen):
    """An index to create: its map, how searches work, and what it keeps."""

    map: str = Field(pattern=NAME_PATTERN)
    """Name of the map whose codes the index keeps."""
    bands: Annotated[int, Field(ge=1, le=MOST_CODES, description=_BANDS)] | None = None
    rows_per_band: Annotated[int, Field(ge=1, le=MOST_CODES, description=_ROWS_PER_BAND)] | None = None
    target: Annotated[Target, Field(description=_TARGET)] | None = None
    keep: Literal["codes", "vectors"] = "codes"
    """`codes`: only codes are kept, and similarities are estimated. `vectors`: the vectors are kept too, and the best
    candidates of a search are compared exactly.
    """

    @model_validator(mode="after")
    def _both_or_none(self) -> Self:
        if (self.bands is None) != (self.rows_per_band is None):
            missing = "bands" if self.bands is None else "rows_per_band"
            raise InvalidInput("bands and rows_per_band come together, or neither does", f"/{missing}")
        if self.target is not None and self.bands is not None:
            raise InvalidInput("expected bands or a target, which chooses them, got both", "/target")
        return self

    @property
    def banding(self) -> Banding | None:
        """The requested bands; None if there are none."""
        return _banding(self.bands, self.rows_per_band)

    def check(self, s: int, row_bytes: int) -> None:
        """Raise InvalidInput if the codes of a vector are too long, or the bands need more than its s codes."""
        if row_bytes > _MOST_CODE_BYTES:
            detail = f"codes of a vector take at most {_MOST_CODE_BYTES} bytes in an index, got {row_bytes}"
            raise InvalidInput(detail, "/map")
        wanted = (self.bands or 0) * (self.rows_per_band or 0)
        if wanted > s:
            detail = f"{self.bands} bands of {self.rows_per_band} codes are {wanted}; vectors of the map have {s}"
            raise InvalidInput(detail, "/bands")


class Searching(NamedTuple):
    """How an index with a target is searched."""

    banding: Banding | None
    """None for a scan."""
    serves: bool
    """Whether searches reach the target."""
    map_digest: str
    """Digest of the map for which this holds."""


class Point(Described):
    """A point of the curve of bands."""

    similarity: float
    """Similarity of two vectors: the rate at which their hashes agree."""
    recall: float
    """Probability that they share a band: 1 − (1 − similarity^rows_per_band)^bands."""


class PlannedBands(Described):
    """Bands of hashes that find similar vectors."""

    bands: int
    """Number of bands."""
    rows_per_band: int
    """Hashes of a band."""
    recall: float
    """Probability to find a pair of the requested similarity."""
    serves: bool
    """Whether that is the requested recall. If not, there are too few hashes, and these bands are those of most recall.
    """
    curve: list[Point]
    """The recall at similarities from 0 to 1."""


def plan_bands(options: BandsOptions) -> PlannedBands:
    """Return the bands with the fewest candidates that have the recall."""
    banding, serves = banding_for(options.hashes, options.min_similarity, options.recall)
    curve = [Point(similarity=i / 20, recall=probability(banding, i / 20)) for i in range(21)]
    recall = probability(banding, options.min_similarity)
    return PlannedBands(**banding._asdict(), recall=recall, serves=serves, curve=curve)


class IndexRecord(Described):
    """An index."""

    name: str
    """Name of the index."""
    status: Literal["building", "ready", "failed"]
    """Whether the index can be used: a job may still be finding its bands."""
    error: JobError | None
    """Reason why the job of the index failed."""
    job: str | None
    """Link to the job that finds bands for the target or has failed to find them; null when the index is ready."""
    map: str
    """Name of the map whose codes the index keeps."""
    keep: Literal["codes", "vectors"]
    """Whether the index keeps codes only, or vectors too."""
    banding: Literal["bands", "scan"] | None
    """`bands`: a search looks at the vectors that share a band with the query. `scan`: a search looks at the codes of
    all vectors. null until a job has chosen one of the two.
    """
    bands: int | None
    """Number of bands; null for a scan, and until a job has found the bands."""
    rows_per_band: int | None
    """Codes per band; null if `bands` is null."""
    serves: bool | None
    """Whether searches safely reach the target. If not, the codes of the map are too short, or the dataset too small to
    tell; `POST /v1/indexes/advice` says which. null without a target, and until a job has looked for bands.
    """
    s: int
    """Codes per vector."""
    bits: int
    """Bits per code."""
    size: int
    """Number of vectors in the index."""
    bytes: int
    """Size of the stored data, in bytes."""
    created_at: datetime
    """Time of the PUT."""
    ttl: int | None
    """Seconds that the index lives after its last use, which is a search or a change; null for ever."""
    expires_at: datetime | None
    """When the index is deleted if it is not used before; null for never, and while a job finds its bands. A use
    postpones this time if more than a sixteenth of `ttl` has passed.
    """


class IndexPage(Described):
    """A page of indexes in order of their names."""

    indexes: list[IndexRecord]
    """Indexes, in order of their names."""
    next: str | None
    """Cursor of the next page, null on the last one."""


class RefusedVector(Described):
    """A vector that was not put into the index, as it is similar to another."""

    id: int | str
    """Its id."""
    like: int | str
    """Id of the most similar vector: one of the index, or one before it in the batch."""
    similarity: float
    """Similarity of the two as estimated from codes."""
    exact: float | None = None
    """Their exact similarity; present only if the index keeps vectors."""


class UpsertAnswer(Described):
    """The result of putting a batch of vectors into an index."""

    upserted: int
    """Number of vectors put into the index, both new and replaced; with dry_run, of those that would be."""
    inserted: list[int | str] | None = None
    """Ids of these vectors; present only with unless_similar."""
    refused: list[RefusedVector] | None = None
    """The vectors that are similar to others; present only with unless_similar."""
    skipped: list[int | str] | None = None
    """Ids of the vectors that have no codes and were left out; present only with on_zero=skip."""
    warnings: Warnings = None


class SparseNumbers(Described):
    """A sparse row."""

    indices: list[int]
    """Columns of its entries, in ascending order."""
    values: list[float]
    """Its entries."""


class VectorRecord(Described):
    """A vector of an index."""

    id: int | str
    """Its id."""
    tags: list[str] | None
    """Its tags, sorted; null if an earlier version has stored the vector with a tag, whose text it did not keep."""
    vector: list[float] | SparseNumbers | None = None
    """Its numbers, as the `input` of the map has prepared them for comparison, if it has one; present only with
    include=vector.
    """


class VectorPage(Described):
    """A page of the vectors of an index, in an order of its own."""

    vectors: list[VectorRecord]
    """The vectors. There may be fewer than `limit`, as a page looks at some vectors and at some bytes of tags only."""
    next: str | None
    """Cursor of the next page, null on the last one."""


class CountAnswer(Described):
    """A number of vectors."""

    count: int
    """Number of vectors whose tags fit."""


class DeletedVectors(Described):
    """The result of deleting vectors of an index."""

    deleted: int
    """Number of vectors that are deleted."""
    missing: list[int | str]
    """Ids without a vector."""


class ChangedTags(Described):
    """The result of changing tags of vectors."""

    changed: int
    """Number of vectors that now have other tags."""
    missing: list[int | str]
    """Ids without a vector."""


class SearchResult(Described):
    """The vectors found for one query, best first."""

    ids: list[int | str]
    """Ids of the vectors found, the most similar first."""
    similarity: list[float]
    """Similarities estimated from codes. An estimate may be below 0."""
    standard_error: list[float]
    """Standard errors of the estimates, computed from the rates at which codes agree. A standard error is 0 if all
    codes agree or none does, which does not mean certainty. It does not include the upward bias of estimates for the
    best of many vectors.
    """
    exact: list[float] | None = None
    """Exact similarities of the vectors; present only if vectors are compared exactly."""
    tags: list[list[str] | None] | None = None
    """The tags of each vector found; present only with `include`."""
    candidates: int
    """Number of vectors that the query was compared with."""
    searched: Literal["bands", "scan"]
    """`bands`: the query was compared with vectors that share a band with it. `scan`: with all vectors, or all that
    have the tag, as where there are no bands, where these are few, or where bands find fewer than k of them.
    """


class SearchAnswer(Described):
    """The results of a search."""

    results: list[SearchResult]
    """Results, one per query, in the order of the queries."""
    next: str | None
    """Cursor of the next page, null if no query has more results, or has 10,000 already. With `min_similarity`, pages
    may be short although others follow, where vectors are compared exactly.
    """
    warnings: Warnings = None


def record(manifest: IndexManifest, state: IndexState) -> IndexRecord:
    """Return the record of an index in this state."""
    banding = "scan" if manifest.bands is None else "bands"
    more = {"status": manifest.state.value, "map": manifest.map.name, "size": state.size, "bytes": state.nbytes}
    job = {"banding": banding} if manifest.job is None else {"banding": None, "job": link(manifest.job)}
    return IndexRecord(**dict(manifest) | more | job)


def layout(manifest: IndexManifest) -> Layout:
    """Return the layout in which an index keeps its vectors."""
    return Layout(manifest.s, manifest.bits, _banding(manifest.bands, manifest.rows_per_band), BLOCK)


def _banding(bands: int | None, rows_per_band: int | None) -> Banding | None:
    return None if bands is None or rows_per_band is None else Banding(bands, rows_per_band)


_EMPTY = IndexState(0, 0, 0)
# If an exact similarity decides later, estimates may be too low by this many standard errors; or by more, where codes
# of similar rows agree in still fewer with this probability, as they do near a similarity of 1.
_ERRORS, _TAIL = 3.0, 1e-3
# Rounding error of a rate: a collision model and its inverse are splines, which agree to 2e-9.
_ROUNDING = 1e-8


class IndexCodes(NamedTuple):
    """Codec of an index: how vectors are written as codes of its map."""

    law: CodeLaw

    @property
    def s(self) -> int:
        """Codes per row."""
        return self.law.s

    @property
    def bits(self) -> int:
        """Bits per code."""
        return self.law.encoder.bits

    @property
    def row_bytes(self) -> int:
        """Bytes of the codes of a row."""
        return -(-self.s * self.bits // 8)

    def pack(self, feature_map: FeatureMap, rows: Rows, pause: Pause = no_pause) -> Codes:
        """Return the packed codes of rows, (n, ⌈s·bits/8⌉); raise InvalidInput naming the rows that have no codes."""
        return feature_map.codes(rows, self.law.encoder, pause=pause)

    def least(self, similarity: float, is_decided_later: bool) -> int:
        """Return the number of codes in which rows must agree to have an estimated similarity of at least `similarity`.

        With `is_decided_later`, the rows are compared exactly later, and the number is lower, so that similar rows are
        likely to be included. It is 0 for a similarity of 0 or less, as no kernel is below 0.
        """
        if is_decided_later and similarity > 0:
            tail = np.nan_to_num(bdtrik(_TAIL, self.s, self._rate(similarity)))
            return min(self._least(similarity, -_ERRORS), floor(tail) + 1)
        return 0 if is_decided_later else self._least(similarity, 0)

    def surely(self, similarity: float) -> int:
        """Return in how many codes rows must agree to be surely of this similarity: by three standard errors."""
        return self._least(similarity, _ERRORS)

    def _rate(self, similarity: float) -> float:
        return float(self.law.rates(np.array([max(0.0, similarity)]))[0])

    def _least(self, similarity: float, errors: float) -> int:
        rate = self._rate(similarity)
        rate += errors * float(np.sqrt(max(rate * (1 - rate), 1 / self.s) / self.s))
        return max(0, ceil((rate - _ROUNDING) * self.s))

    def similarities(self, counts: Whole) -> tuple[Matrix, Matrix]:
        """Return similarity estimates and their standard errors, for numbers of agreeing codes."""
        found = self.law.kernel(counts)
        return found.value, found.standard_error


logger = logging.getLogger(__name__)

Submit = Callable[[str, Reservation], object]
"""Submits a job with this id, which holds the name of an index by the reservation."""

# Most manifests that are remembered; opening an index then takes one call to the store.
_REMEMBERED = 1024


class OpenIndex(NamedTuple):
    """Index that is being used."""

    manifest: IndexManifest
    state: IndexState
    feature_map: FeatureMap
    """Map whose codes the index keeps."""
    codes: IndexCodes
    layout: Layout

    @property
    def doubts(self) -> tuple[str, ...]:
        """Errors of estimated similarities that their standard errors do not include, one line of ASCII each."""
        return self.feature_map.similarity_warnings(self.codes.law.encoder)

    def without_bands(self) -> "OpenIndex":
        """Return the index without its bands: these serve searches only, and sorting vectors into them takes time."""
        manifest = self.manifest.model_copy(update={"bands": None, "rows_per_band": None})
        return self._replace(manifest=manifest, layout=self.layout._replace(banding=None))


class Indexes:
    """Indexes of the service. An expired index counts as missing.

    Every method may raise StoreUnavailable or StoreDamaged; methods that use an index by name raise IndexNotFound.
    `index_pins` are references to indexes, `map_pins` those of indexes to maps. `unfit` returns the reason why the
    store cannot be trusted with new indexes, or None if it can.
    """

    def __init__(
        self,
        store: IndexStore,
        index_pins: Pins,
        map_pins: Pins,
        map_store: MapStore,
        maps: Maps,
        unfit: Callable[[], str | None],
        jobs: Jobs,
    ) -> None:
        self._store, self._map_store, self._maps = store, map_store, maps
        self._index_pins, self._map_pins = index_pins, map_pins
        self._unfit, self._jobs = unfit, jobs
        self._known: cachetools.LRUCache[str, IndexManifest] = cachetools.LRUCache(_REMEMBERED)
        self._knowing = Lock()

    def create(
        self,
        name: str,
        asked: AskedIndex,
        ttl: int | None,
        owner: str = "",
        searching: Searching | None = None,
        submit: Submit | None = None,
        check: Callable[[IndexRecord], None] | None = None,
    ) -> tuple[IndexRecord, bool]:
        """Create an index, unless the same exists; it lives `ttl` seconds after its last use, or for ever if None.

        A new index counts towards `owner`'s quota. If it has a target, `searching` is what serves it; or `submit`
        submits the job that finds that and holds the name of the index until then. `check` receives the record of an
        index that was requested before, and may raise: its life is not renewed then.

        Returns:
            The record, and whether the index is new.

        Raises:
            IndexExists: another index has the name.
            MapNotFound: there is no such map.
            MapNotReady: the map is still being built, or its job failed.
            InvalidInput: the map has no codes, or fewer than the bands need.
            QuotaExceeded: there is no room for another name.
            TooManyJobs: a job is needed, and the job queue is full.
        """
        while True:
            asked = self.resolve(asked)  # again, as the name may have become an alias
            text = asked.model_dump_json(exclude_none=True)
            there, created = self._find_standing(name), False
            if there is None:
                with suppress(NameTaken):  # another request was faster
                    there, created = self._make(name, asked, searching, text, ttl, owner, submit)
            if there is None:  # another request took the name, or the map has changed
                continue
            if created:  # and perhaps deleted since, which holds
                return record(*(self._store.look(name, there) or (there, _EMPTY))), True
            same = self._same(there, text, ttl, check)
            if same is not None:
                return same, False

    def there(self, name: str, asked: AskedIndex, ttl: int | None) -> IndexRecord | None:
        """Return the record of an index if the same was requested before, and renew its `ttl`; None if there is none.

        Its job may still be looking for bands. An index whose job failed counts as missing.

        Raises:
            IndexExists: another index has the name.
        """
        there, asked = self._find_standing(name), self.resolve(asked)
        return None if there is None else self._same(there, asked.model_dump_json(exclude_none=True), ttl)

    def resolve(self, asked: AskedIndex) -> AskedIndex:
        """Return a request with the name of the map itself in place of an alias."""
        there = self._map_store.find(asked.map)
        return asked if there is None else asked.model_copy(update={"map": there.name})

    def _same(
        self, there: IndexManifest, asked: str, ttl: int | None, check: Callable[[IndexRecord], None] | None = None
    ) -> IndexRecord | None:
        """Renew an index that was requested again, and return its record; None if it is gone."""
        if there.asked != asked:
            raise IndexExists(there.name)
        if check is not None and (before := self._store.look(there.name, there)) is not None:
            check(record(*before))
        renewed = self._store.renew(there, ttl)
        found = None if renewed is None else self._store.look(there.name, renewed)
        return None if found is None else record(*found)

    def get(self, name: str) -> IndexRecord:
        """Return the record of an index."""
        found = self._store.look(name)
        if found is None:
            raise IndexNotFound(name)
        return record(*found)

    def list(self, prefix: str, cursor: str | None, limit: int) -> IndexPage:
        """Return a page of records in order of their names."""
        manifests, after = self._store.page(prefix, cursor, limit)
        indexes = []
        for manifest in manifests:
            with left_out():
                found = self._store.look(manifest.name, manifest)
                indexes += [] if found is None else [record(*found)]
        return IndexPage(indexes=indexes, next=after)

    def delete(self, name: str) -> None:
        """Delete an index with everything stored for it, and cancel its job; of concurrent calls, only one succeeds.

        Raises:
            IndexInUse: aliases stand for the index.
        """
        gone: list[IndexManifest] = []

        def note(stored: bytes, receipt: str) -> None:
            with suppress(StoreDamaged, NewerVersion):
                gone[:] = [IndexManifest.parse(stored)]
            if users := self._index_pins.users(name):
                raise IndexInUse(name, users)
            self._jobs.cancel_making(IndexManifest, stored, receipt)

        if not self._store.delete(name, note):
            raise IndexNotFound(name)
        for manifest in gone:
            self._map_pins.unpin(manifest.map.name, User(name, manifest.token))

    def open(self, name: str) -> OpenIndex:
        """Return an index for use, which extends its life; raise IndexNotReady if its job has not found its bands."""
        with self._knowing:
            known = self._known.get(name)
        found = self._store.look(name, known)
        if found is None:
            raise IndexNotFound(name)
        manifest, state = require_ready(name, found[0]), found[1]
        if manifest is not known:
            with self._knowing:
                self._known[name] = manifest
        if manifest.is_due:
            self._note_use(manifest)
        feature_map = self._maps.of_index(manifest.map)
        if feature_map is None:
            raise StoreDamaged(f"index {name!r} is over a map {manifest.map.name!r} that is not there any more")
        return OpenIndex(manifest, state, feature_map, IndexCodes(feature_map.code_law("the map")), layout(manifest))

    def open_same(self, name: str, token: str) -> OpenIndex:
        """Return the index of a job for use; InvalidInput if it is not there any more, or another has its name."""
        try:
            opened = self.open(name)
        except (IndexNotFound, IndexNotReady) as error:
            raise InvalidInput(str(error)) from error
        if opened.manifest.token != token:
            raise InvalidInput(f"index {name!r} is not the one that was there when the job was submitted")
        return opened

    def _make(
        self,
        name: str,
        asked: AskedIndex,
        searching: Searching | None,
        text: str,
        ttl: int | None,
        owner: str,
        submit: Submit | None,
    ) -> tuple[IndexManifest | None, bool]:
        """Create an index or reserve its name, and pin its map; return the index with the name, and whether it is new.

        The index is None if the map was deleted or replaced meanwhile.
        """
        if reason := self._unfit():
            raise StoreUnavailable(f"{reason}; no index is created there")
        described = self._describe(name, asked, searching, text, ttl, has_job=submit is not None)
        if described is None:
            return None, False
        there, manifest = described
        pin = User(name, manifest.token)
        if not self._map_pins.pin(there, pin):
            return None, False
        try:
            if submit is not None and manifest.job is not None:
                submit(manifest.job, self._store.reserve(manifest, owner))
                stored = manifest
            else:
                stored = self._store.create(manifest, owner)
        except (QuotaExceeded, NameTaken, NameHeld, TooManyJobs):
            self._map_pins.unpin(asked.map, pin)
            raise
        if stored.token != manifest.token:  # another request was faster
            self._map_pins.unpin(asked.map, pin)
            return stored, False
        self._map_pins.settle(asked.map, pin)
        return stored, True

    def _describe(
        self, name: str, asked: AskedIndex, searching: Searching | None, text: str, ttl: int | None, *, has_job: bool
    ) -> tuple[MapManifest, IndexManifest] | None:
        """Return the manifests of the map and of a new index over it; None if the map was deleted or replaced."""
        opened = self._maps.open(asked.map)
        codes = IndexCodes(opened.feature_map.code_law(f"map {asked.map!r}"))
        asked.check(codes.s, codes.row_bytes)
        there = self._map_store.find(asked.map)
        if there is None or (there.name, there.digest) != (asked.map, opened.digest):
            return None
        if searching is not None and searching.map_digest != opened.digest:
            raise InvalidInput(f"map {asked.map!r} was replaced while bands were measured: try again", "/map")
        target = asked.target
        if target is not None and target.min_similarity is not None:
            rate = float(codes.law.rates(np.array([target.min_similarity]))[0])
            searching = Searching(*banding_for(codes.s, rate, target.recall), opened.digest)
        job = self._jobs.new_id(name) if has_job else None
        banding = asked.banding if searching is None else searching.banding
        return there, IndexManifest(
            schema_version=IndexManifest.newest,
            token=secrets.token_hex(8),
            name=name,
            state=State.ready if job is None else State.building,
            job=job,
            digest="sha256:" + hashlib.sha256(f"{opened.digest} {text}".encode()).hexdigest(),
            created_at=now(),
            map=MapOfIndex(name=asked.map, token=there.token, digest=opened.digest),
            asked=text,
            bits=codes.bits,
            s=codes.s,
            bands=None if banding is None else banding.bands,
            rows_per_band=None if banding is None else banding.rows_per_band,
            serves=None if searching is None else searching.serves,
            keep=asked.keep,
            ttl=ttl,
            expires_at=end(ttl) if job is None else None,
        )

    def _find_standing(self, name: str) -> IndexManifest | None:
        """Find the index that has a name; return None if there is none, or if its job failed; IsAlias for an alias."""
        found = self._store.find_own(name)
        return None if found is None or found.state is State.failed else found

    def _note_use(self, manifest: IndexManifest) -> None:
        try:
            self._store.note_use(manifest)
        except (StoreUnavailable, StoreDamaged) as error:  # a store that refuses writes can still be read
            logger.warning("the use of index %r is not noted: %s", manifest.name, error)


def require_ready(name: str, found: IndexManifest | None) -> IndexManifest:
    """Return the manifest found under a name if its index is ready; raise IndexNotFound or IndexNotReady if not."""
    if found is None:
        raise IndexNotFound(name)
    if found.job is not None:
        raise IndexNotReady(name, found.job, found.error)
    return found
