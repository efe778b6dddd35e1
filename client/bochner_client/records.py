"""Answers of the service about maps, datasets, indexes, jobs, keys and the service itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, ClassVar, Literal, Self

State = Literal["queued", "running", "succeeded", "failed", "cancelled"]
"""State of a job."""
Status = Literal["building", "ready", "failed"]
"""Status of a map or an index."""
Role = Literal["metrics", "read", "write", "admin"]
"""Role of a key; each role includes those listed before it."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """Base class of objects in answers."""

    _times: ClassVar[tuple[str, ...]] = ()
    """Members that are times."""

    document: Mapping[str, Any] = field(repr=False, compare=False)
    """The JSON object, unchanged, including members that are newer than this client."""

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Self:
        """Return the record of a JSON object; missing members become None."""
        members: dict[str, Any] = {one.name: document.get(one.name) for one in fields(cls)}
        members |= cls._read(document)
        for name in cls._times:
            if members[name] is not None:
                members[name] = datetime.fromisoformat(members[name])
        return cls(**{**members, "document": document})

    @classmethod
    def _read(cls, document: Mapping[str, Any]) -> dict[str, Any]:
        """Return the members whose type differs from that in JSON."""
        del document
        return {}


@dataclass(frozen=True, kw_only=True)
class JobError(Record):
    """Why a job failed."""

    reason: str
    detail: str
    pointer: str | None


@dataclass(frozen=True, kw_only=True)
class MapRecord(Record):
    """A map: its spec with all defaults filled in, and its properties."""

    _times = ("created_at", "expires_at")

    name: str
    status: Status
    spec: dict[str, Any]
    error: JobError | None
    n_frequencies: int | None
    n_output: int | None
    digest: str | None
    bytes: int
    created_at: datetime
    ttl: int | None
    """Seconds that the map lives after its last use; None for ever."""
    expires_at: datetime | None
    generator: dict[str, str]
    parameter_stream: int | None
    signature: str | None
    job: str | None
    report: dict[str, float] | None
    warnings: tuple[str, ...]

    @classmethod
    def _read(cls, document: Mapping[str, Any]) -> dict[str, Any]:
        return {"error": _error(document), "warnings": tuple(document.get("warnings") or ())}


@dataclass(frozen=True, kw_only=True)
class MapPreview(Record):
    """Preview of the map that `put_map` would make of a spec, and of its cost."""

    name: str
    exists: bool
    spec: dict[str, Any]
    at_once: bool
    """Whether the map can be built within a request. Otherwise a job would build it, and the sizes are upper bounds."""
    n_frequencies: int
    n_output: int
    bytes: int
    building_bytes: int
    seconds: float | None
    report: dict[str, float] | None
    warnings: tuple[str, ...]

    @classmethod
    def _read(cls, document: Mapping[str, Any]) -> dict[str, Any]:
        return {"warnings": tuple(document.get("warnings") or ())}


@dataclass(frozen=True, kw_only=True)
class DatasetRecord(Record):
    """A dataset. In lists, `column_ranges` is None."""

    _times = ("created_at", "expires_at")

    name: str
    shape: tuple[int, int]
    dtype: str
    sparse: bool
    ids: Literal["int", "string"] | None
    """Type of the ids that were stored with the rows; None if there are no ids."""
    digest: str
    bytes: int
    created_at: datetime
    expires_at: datetime | None
    column_ranges: list[tuple[float | None, float | None]] | None

    @classmethod
    def _read(cls, document: Mapping[str, Any]) -> dict[str, Any]:
        ranges = document.get("column_ranges")
        pairs = None if ranges is None else [(least, largest) for least, largest in ranges]
        return {"shape": tuple(document["shape"]), "column_ranges": pairs}


@dataclass(frozen=True, kw_only=True)
class IndexRecord(Record):
    """An index of vectors, which are searched by their codes of a map."""

    _times = ("created_at", "expires_at")

    name: str
    status: Status
    error: JobError | None
    job: str | None
    """Link of the job that finds bands for the index's target, or has failed to."""
    map: str
    """Name of the map whose codes the index keeps."""
    keep: Literal["codes", "vectors"]
    banding: Literal["bands", "scan"] | None
    """How the index is searched; None until the job has found it out."""
    bands: int | None
    rows_per_band: int | None
    serves: bool | None
    """Whether searches reach the target; None without one, or until a job has looked for bands."""
    s: int
    """Number of codes of a vector."""
    bits: int
    """Bits of a code."""
    size: int
    """Number of vectors in the index."""
    bytes: int
    created_at: datetime
    ttl: int | None
    """Seconds that the index lives after its last use; None for ever."""
    expires_at: datetime | None

    @classmethod
    def _read(cls, document: Mapping[str, Any]) -> dict[str, Any]:
        return {"error": _error(document)}


@dataclass(frozen=True, kw_only=True)
class SearchResult(Record):
    """Vectors found for one row, best first."""

    ids: list[int | str]
    similarity: list[float]
    """Similarities estimated from codes."""
    standard_error: list[float]
    """Standard errors of the estimates; 0 if all codes agree or none do, which does not mean certainty."""
    exact: list[float] | None
    """Similarities of the vectors themselves; None if they were not compared."""
    candidates: int
    """Number of vectors that the row was compared with."""
    tags: list[list[str] | None] | None
    """The tags of each vector, where they were asked for; None for one that an earlier version of the service kept."""
    searched: str | None
    """`bands` if these share a band with the row, `scan` if they are all vectors, or all with the tag."""


@dataclass(frozen=True, kw_only=True)
class VectorRecord(Record):
    """A vector of an index."""

    id: int | str
    tags: list[str] | None
    """Its tags, sorted; None if an earlier version of the service kept the vector with a tag."""
    vector: list[float] | dict[str, Any] | None
    """Its numbers, or `indices` and `values` of a sparse row; None unless they were asked for."""


@dataclass(frozen=True, kw_only=True)
class RefusedVector(Record):
    """A vector that was not put into an index, as it is similar to another."""

    id: int | str
    """Its id."""
    like: int | str
    """Id of the most similar vector: one of the index, or one before it in the batch."""
    similarity: float
    """Similarity of the two as estimated from codes."""
    exact: float | None = None
    """Their exact similarity; None if the index keeps codes alone."""


class Upserted(int):
    """The number of vectors put into an index."""

    skipped: tuple[int | str, ...] = ()
    """Ids of the vectors that have no codes and were left out."""
    inserted: tuple[int | str, ...] = ()
    """Ids of the vectors that were put, with `unless_similar`."""
    refused: tuple[RefusedVector, ...] = ()
    """The vectors that are similar to others, with `unless_similar`."""


@dataclass(frozen=True, kw_only=True)
class PlannedBands(Record):
    """Bands of hashes that find similar vectors."""

    bands: int
    rows_per_band: int
    recall: float
    """Probability to find a pair of the requested similarity."""
    serves: bool
    """Whether that is the requested recall; if not, there are too few hashes."""
    curve: list[dict[str, float]]
    """The recall at similarities from 0 to 1."""


@dataclass(frozen=True, kw_only=True)
class DeletedVectors(Record):
    """The result of deleting vectors of an index."""

    deleted: int
    missing: list[int | str]
    """Ids without a vector."""


@dataclass(frozen=True, kw_only=True)
class ChangedTags(Record):
    """The result of changing tags of vectors."""

    changed: int
    missing: list[int | str]
    """Ids without a vector."""


@dataclass(frozen=True, kw_only=True)
class Pair(Record):
    """Two vectors of an index that are similar."""

    a: int | str
    b: int | str
    similarity: float
    """Their similarity as estimated from codes."""
    exact: float | None = None
    """Their exact similarity; None if they were not compared exactly."""


@dataclass(frozen=True, kw_only=True)
class Duplicates(Record):
    """The duplicates in an index."""

    clusters: list[list[int | str]]
    """Ids of the vectors of each cluster, large clusters first. With `answer="clusters"`, the one to keep is the first.
    """
    similarity_to_kept: list[list[float]]
    """Similarity of each of these vectors to the one to keep; empty without `answer="clusters"`."""
    pairs: tuple[Pair, ...]
    """All pairs, with `answer="pairs"`."""
    size: int
    """Number of vectors that the index held."""
    min_similarity: float
    standard_error: float
    """Standard error of estimates at `min_similarity`: pairs within a few of these may be on either side of it."""
    compared: int
    """Number of comparisons of two vectors."""

    @classmethod
    def _read(cls, document: Mapping[str, Any]) -> dict[str, Any]:
        found = document.get("clusters", [])
        is_plain = not found or isinstance(found[0], list)
        return {
            "clusters": found if is_plain else [one["ids"] for one in found],
            "similarity_to_kept": [] if is_plain else [one["similarity_to_kept"] for one in found],
            "pairs": tuple(map(Pair.read, document.get("pairs", ()))),
        }


@dataclass(frozen=True, kw_only=True)
class Recall(Record):
    """Recall of an index: what its searches find of the nearest vectors."""

    recall: float
    """Share of the nearest vectors that a search finds, on average."""
    standard_error: float
    lost_by: dict[str, float]
    """Shares that are lost, by what loses them: `bands`, `k` or `codes`."""
    compared_with: str
    """`vectors` for exact similarities; `codes` for a scan of all codes, where the index keeps codes alone."""
    candidates: float
    """Vectors that a query is compared with, on average."""
    queries: int
    size: int
    """Number of vectors that the index held."""


@dataclass(frozen=True, kw_only=True)
class AliasRecord(Record):
    """An alias: a further name of a map or an index."""

    _times = ("changed_at",)

    name: str
    map: str | None
    """Map that it stands for; None if it stands for an index."""
    index: str | None
    """Index that it stands for; None if it stands for a map."""
    digest: str
    """Another one after each change."""
    changed_at: datetime


@dataclass(frozen=True, kw_only=True)
class JobRecord(Record):
    """A job, and how far it is."""

    _times = ("created_at", "started_at", "ended_at")

    id: str
    kind: str
    subject: dict[str, str]
    state: State
    progress: float
    step: int | None
    of: int | None
    objective: float | None
    eta_seconds: float | None
    result: str | None
    error: JobError | None
    waiting_for: str | None
    """Reason why the job is still queued."""
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None

    @classmethod
    def _read(cls, document: Mapping[str, Any]) -> dict[str, Any]:
        return {"error": _error(document)}


@dataclass(frozen=True, kw_only=True)
class JobEvent(Record):
    """State of a job at one moment."""

    id: str
    """Id of the job."""
    state: State
    progress: float
    """Progress from 0 to 1."""
    step: int | None
    of: int | None
    objective: float | None
    eta_seconds: float | None
    event_id: str
    """Id of the event; pass it as `after` to `watch_job` to continue after this event."""
    last: bool
    """Whether the job has ended."""


@dataclass(frozen=True, kw_only=True)
class KeyRecord(Record):
    """A key, without the secret text."""

    _times = ("created_at", "expires_at", "last_used_at")

    id: str
    name: str
    role: Role
    created_at: datetime
    rate: float | None
    burst: int | None
    quota: int | None
    expires_at: datetime | None
    last_used_at: datetime | None
    """Time of the last use, to the minute."""
    bytes: int


@dataclass(frozen=True, kw_only=True)
class CreatedKey(KeyRecord):
    """A newly created key."""

    key: str
    """The secret text of the key, which is shown only here."""


@dataclass(frozen=True, kw_only=True)
class Info(Record):
    """Information about the service: versions, limits, the store, and its usage."""

    versions: dict[str, str]
    limits: dict[str, float]
    store: dict[str, Any]
    usage: dict[str, int]


def _error(document: Mapping[str, Any]) -> JobError | None:
    found = document.get("error")
    return None if found is None else JobError.read(found)
