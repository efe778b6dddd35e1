"""Indexes: what clients ask of them and see, their codes, and those in use."""

import hashlib
import logging
import secrets
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from math import ceil
from threading import Lock
from typing import Annotated, Literal, NamedTuple, Self

import cachetools
import numpy as np
from pydantic import BaseModel, Field, model_validator

from app.core.arrays import Matrix, Rows, Whole
from app.core.errors import InvalidInput
from app.core.hashing.code_laws import CodeLaw
from app.core.indexes.banding import Banding, Codes, Layout
from app.core.maps import FeatureMap
from app.core.model import NAME_PATTERN, Described, Frozen
from app.core.progress import Pause, no_pause
from app.jobs.jobs import Jobs
from app.jobs.record import JobError, TooManyJobs, link
from app.services.errors import IndexExists, IndexNotFound, IndexNotReady
from app.services.maps import Maps
from app.store.errors import NewerVersion, QuotaExceeded, StoreDamaged, StoreUnavailable
from app.store.indexes import BLOCK, IndexManifest, IndexState, IndexStore, MapOfIndex
from app.store.manifest import now
from app.store.maps import MapStore
from app.store.named import NameTaken, Reservation, State, end
from app.store.pins import Index, Pins

_MOST_CODES = 1 << 16
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
    """What searches of an index are to find, for bands to be chosen by."""

    recall: float = Field(gt=0, lt=1)
    """Share of the k most similar vectors that a search is to find, on average."""
    k: int = Field(ge=1, le=100)
    """How many vectors a search is to find."""
    dataset: str = Field(pattern=NAME_PATTERN)
    """Rows like those that the index will hold, best all of them."""


class AskedIndex(Frozen):
    """An index to be made: over which map, how it is searched, what it keeps."""

    map: str = Field(pattern=NAME_PATTERN)
    """Name of the map whose codes it keeps."""
    bands: Annotated[int, Field(ge=1, le=_MOST_CODES, description=_BANDS)] | None = None
    rows_per_band: Annotated[int, Field(ge=1, le=_MOST_CODES, description=_ROWS_PER_BAND)] | None = None
    target: Annotated[Target, Field(description=_TARGET)] | None = None
    keep: Literal["codes", "vectors"] = "codes"
    """`codes`: similarities are estimated. `vectors`: these are kept too, and the best candidates of a search are
    compared exactly.
    """

    @model_validator(mode="after")
    def _both_or_none(self) -> Self:
        if (self.bands is None) != (self.rows_per_band is None):
            missing = "bands" if self.bands is None else "rows_per_band"
            raise InvalidInput("bands and rows_per_band come together, or neither does", f"/{missing}")
        if self.target is not None and self.bands is not None:
            raise InvalidInput("bands and a target came; the target chooses the bands", "/target")
        return self

    @property
    def banding(self) -> Banding | None:
        """The bands that were asked for."""
        return _banding(self.bands, self.rows_per_band)

    def check(self, s: int) -> None:
        """Raise InvalidInput for bands of more codes than a vector has."""
        wanted = (self.bands or 0) * (self.rows_per_band or 0)
        if wanted > s:
            detail = f"{self.bands} bands of {self.rows_per_band} codes are {wanted}; vectors of the map have {s}"
            raise InvalidInput(detail, "/bands")


class IndexRecord(Described):
    """An index."""

    name: str
    status: Literal["building", "ready", "failed"]
    error: JobError | None
    """Why its job failed."""
    job: str | None
    """Link of the job that finds bands for its target, or could not; null when it is ready."""
    map: str
    """Name of the map whose codes it keeps."""
    keep: Literal["codes", "vectors"]
    banding: Literal["bands", "scan"] | None
    """`bands`: a search looks at the vectors that share a band with the query. `scan`: at all codes. null before a job
    has found out which.
    """
    bands: int | None
    """Number of bands; null for a scan, and before a job has found them."""
    rows_per_band: int | None
    """Codes of a band; null where `bands` is."""
    s: int
    """Codes of a vector."""
    bits: int
    """Of a code."""
    size: int
    """Vectors in it."""
    bytes: int
    """Size of what is kept."""
    created_at: datetime
    ttl: int | None
    """Seconds that it lives after its last use: a search or a change. null for ever."""
    expires_at: datetime | None
    """When it is deleted by itself if it is not used before; null for never, and while a job finds its bands. A use
    moves it on where more than a sixteenth of `ttl` has passed.
    """


class IndexPage(BaseModel):
    """Indexes in order of their names."""

    indexes: list[IndexRecord]
    next: str | None = Field(description="Cursor of the next page, null on the last one.")


class UpsertAnswer(BaseModel):
    """What has become of a batch of vectors."""

    upserted: int = Field(description="How many vectors it had, new and replaced ones.")
    warnings: Warnings = None


class SearchResult(BaseModel):
    """What is found for one query, best first."""

    ids: list[int | str]
    similarity: list[float] = Field(description="Estimated from codes. An estimate may be below 0.")
    standard_error: list[float] = Field(
        description="Of the estimates, by the rate at which codes agree. It is 0 where all agree or none does, which "
        "is no certainty. Of the best of many, estimates are too high: that is not in it."
    )
    exact: list[float] | None = Field(None, description="Of the vectors themselves; only where these are compared.")
    candidates: int = Field(description="How many vectors it was compared with.")


class SearchAnswer(BaseModel):
    """What a search has found."""

    results: list[SearchResult] = Field(description="One for each query, in their order.")
    warnings: Warnings = None


def record(manifest: IndexManifest, state: IndexState) -> IndexRecord:
    """The record of an index that holds so much."""
    banding = "scan" if manifest.bands is None else "bands"
    more = {"status": manifest.state.value, "map": manifest.map.name, "size": state.size, "bytes": state.nbytes}
    job = {"banding": banding} if manifest.job is None else {"banding": None, "job": link(manifest.job)}
    return IndexRecord(**dict(manifest) | more | job)


def layout(manifest: IndexManifest) -> Layout:
    """How an index keeps its vectors."""
    return Layout(manifest.s, manifest.bits, _banding(manifest.bands, manifest.rows_per_band), BLOCK)


def _banding(bands: int | None, rows_per_band: int | None) -> Banding | None:
    return None if bands is None or rows_per_band is None else Banding(bands, rows_per_band)


# Standard errors by which an estimate may be too low where an exact similarity will decide.
_ERRORS = 3.0
# Of a rate: a law and its inverse are splines, which agree to 2e-9.
_ROUNDING = 1e-8


class IndexCodes(NamedTuple):
    """How an index writes the codes of a map."""

    law: CodeLaw

    @property
    def s(self) -> int:
        """Codes of a row."""
        return self.law.s

    @property
    def bits(self) -> int:
        """Of a code."""
        return self.law.encoder.bits

    def pack(self, feature_map: FeatureMap, rows: Rows, pause: Pause = no_pause) -> Codes:
        """The packed codes of rows, (n, ⌈s·bits/8⌉); InvalidInput names those that have none."""
        return feature_map.codes(rows, self.law.encoder, pause=pause)

    def least(self, similarity: float, is_decided_later: bool) -> int:
        """In how many codes rows must agree for their similarity to be estimated as so large, or for it to be likely.

        The latter is for rows that are compared exactly later; then 0 asks for nothing, as no kernel is less.
        """
        if is_decided_later and similarity <= 0:
            return 0
        rate = float(self.law.rates(np.array([max(0.0, similarity)]))[0])
        if is_decided_later:
            rate -= _ERRORS * float(np.sqrt(max(rate * (1 - rate), 1 / self.s) / self.s))
        return max(0, ceil((rate - _ROUNDING) * self.s))

    def similarities(self, counts: Whole) -> tuple[Matrix, Matrix]:
        """Estimates and their standard errors."""
        found = self.law.kernel(counts)
        return found.value, found.standard_error


logger = logging.getLogger(__name__)

Submit = Callable[[str, Reservation], object]
"""Submits a job of this id, which holds the name of an index."""

# Manifests that are remembered, for one call to the store to do.
_REMEMBERED = 1024


class OpenIndex(NamedTuple):
    """An index that is being used."""

    manifest: IndexManifest
    state: IndexState
    feature_map: FeatureMap
    """The map that its codes are of."""
    codes: IndexCodes
    layout: Layout


class Indexes:
    """The indexes of the service. One that has expired is not there.

    Every method may raise StoreUnavailable or StoreDamaged; those that take a name of an index to use, IndexNotFound.
    `unfit` says why the store cannot be trusted with new indexes, None if it can.
    """

    def __init__(
        self,
        store: IndexStore,
        pins: Pins,
        map_store: MapStore,
        maps: Maps,
        unfit: Callable[[], str | None],
        jobs: Jobs,
    ) -> None:
        self._store, self._pins, self._map_store, self._maps = store, pins, map_store, maps
        self._unfit, self._jobs = unfit, jobs
        self._known: cachetools.LRUCache[str, IndexManifest] = cachetools.LRUCache(_REMEMBERED)
        self._knowing = Lock()

    def create(
        self,
        name: str,
        asked: AskedIndex,
        ttl: int | None,
        owner: str = "",
        banding: Banding | None = None,
        submit: Submit | None = None,
    ) -> tuple[IndexRecord, bool]:
        """Make an index, unless the same is there; it lives `ttl` seconds after its last use, None for ever.

        A new one is `owner`'s in the account of the store. Where its bands were left to a target, it has this banding,
        or `submit` submits the job that is to find them, which holds its name until then.

        Returns:
            The record, and whether the index is new.

        Raises:
            IndexExists: another one has the name.
            MapNotFound: there is no such map.
            MapNotReady: it is still being built, or could not be.
            InvalidInput: it gives no codes, or not as many as the bands want.
            QuotaExceeded: there is no room for another name.
            TooManyJobs: it takes a job, and as many wait as may.
        """
        text = asked.model_dump_json(exclude_none=True)
        while True:
            there, created = self._find_standing(name), False
            if there is None:
                with suppress(NameTaken):  # another was faster
                    there, created = self._make(name, asked, banding or asked.banding, text, ttl, owner, submit)
            if there is None:  # nor is the map any more
                continue
            found = self._same(there, text, ttl, created)
            if found is not None:
                return found, created

    def there(self, name: str, asked: AskedIndex, ttl: int | None) -> IndexRecord | None:
        """The record of an index that was asked for in the same way, which lives on as `ttl` says; None without one.

        A job may be still to find its bands. One that has failed is in nobody's way.

        Raises:
            IndexExists: another one has the name.
        """
        there = self._find_standing(name)
        return None if there is None else self._same(there, asked.model_dump_json(exclude_none=True), ttl)

    def _same(self, there: IndexManifest, asked: str, ttl: int | None, created: bool = False) -> IndexRecord | None:
        """The record of an index that was put again, or just now; None if it is gone."""
        if there.asked != asked:
            raise IndexExists(there.name)
        renewed = there if created else self._store.renew(there, ttl)
        found = None if renewed is None else self._store.look(there.name, renewed)
        return None if found is None else record(*found)

    def get(self, name: str) -> IndexRecord:
        """The record of an index."""
        found = self._store.look(name)
        if found is None:
            raise IndexNotFound(name)
        return record(*found)

    def list(self, prefix: str, cursor: str | None, limit: int) -> IndexPage:
        """A page of records in order of their names."""
        manifests, after = self._store.page(prefix, cursor, limit)
        every = (self._store.look(manifest.name, manifest) for manifest in manifests)
        return IndexPage(indexes=[record(*found) for found in every if found is not None], next=after)

    def delete(self, name: str) -> None:
        """Remove an index, with all that is kept for it, and cancel its job; of many at once, one removes it."""
        gone: list[IndexManifest] = []

        def note(stored: bytes, receipt: str) -> None:
            with suppress(StoreDamaged, NewerVersion):
                gone[:] = [IndexManifest.parse(stored)]
            self._jobs.cancel_making(IndexManifest, stored, receipt)

        if not self._store.delete(name, note):
            raise IndexNotFound(name)
        for manifest in gone:
            self._pins.unpin(manifest.map.name, Index(name, manifest.token))

    def open(self, name: str) -> OpenIndex:
        """An index to be used, which so lives on, as it is now; IndexNotReady if a job is to find its bands still."""
        with self._knowing:
            known = self._known.get(name)
        found = self._store.look(name, known)
        if found is None:
            raise IndexNotFound(name)
        manifest, state = found
        if manifest.job is not None:
            raise IndexNotReady(name, manifest.job, manifest.error)
        if manifest is not known:
            with self._knowing:
                self._known[name] = manifest
        if manifest.is_due:
            self._note_use(manifest)
        feature_map = self._maps.of_index(manifest.map)
        if feature_map is None:
            raise StoreDamaged(f"index {name!r} is over a map {manifest.map.name!r} that is not there any more")
        return OpenIndex(manifest, state, feature_map, IndexCodes(feature_map.code_law("the map")), layout(manifest))

    def _make(
        self,
        name: str,
        asked: AskedIndex,
        banding: Banding | None,
        text: str,
        ttl: int | None,
        owner: str,
        submit: Submit | None,
    ) -> tuple[IndexManifest | None, bool]:
        """Make an index or hold its name, and have its map stay; what has the name then, and whether it is this one.

        It is None where the map has gone meanwhile.
        """
        if reason := self._unfit():
            raise StoreUnavailable(f"{reason}; no index is created there")
        opened = self._maps.open(asked.map)
        codes = IndexCodes(opened.feature_map.code_law(f"map {asked.map!r}"))
        asked.check(codes.s)
        there = self._map_store.find(asked.map)
        if there is None or there.digest != opened.digest:
            return None, False
        job = None if submit is None else self._jobs.new_id(name)
        manifest = IndexManifest(
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
            keep=asked.keep,
            ttl=ttl,
            expires_at=end(ttl) if job is None else None,
        )
        pin = Index(name, manifest.token)
        if not self._pins.pin(there, pin):
            return None, False
        try:
            if submit is not None and job is not None:
                submit(job, self._store.reserve(manifest, owner))
                self._pins.settle(asked.map, pin)
                return manifest, True
            stored = self._store.create(manifest, owner)
        except (QuotaExceeded, NameTaken, TooManyJobs):
            self._pins.unpin(asked.map, pin)
            raise
        if stored.token != manifest.token:  # another was faster
            self._pins.unpin(asked.map, pin)
        return stored, stored.token == manifest.token

    def _find_standing(self, name: str) -> IndexManifest | None:
        """Find the index that has a name; None if there is none, or one that failed."""
        found = self._store.find(name)
        return None if found is None or found.state is State.failed else found

    def _note_use(self, manifest: IndexManifest) -> None:
        try:
            self._store.note_use(manifest)
        except (StoreUnavailable, StoreDamaged) as error:  # a store that takes no writes still gives what it has
            logger.warning("the use of index %r is not noted: %s", manifest.name, error)
