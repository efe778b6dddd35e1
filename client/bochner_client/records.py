"""What the service answers about maps, datasets, indexes, jobs, keys and itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, ClassVar, Literal, Self

State = Literal["queued", "running", "succeeded", "failed", "cancelled"]
"""Of a job."""
Status = Literal["building", "ready", "failed"]
"""Of a map or an index."""
Role = Literal["metrics", "read", "write", "admin"]
"""Of a key; each includes those before it."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """One object of an answer."""

    _times: ClassVar[tuple[str, ...]] = ()
    """Members that are moments."""

    document: Mapping[str, Any] = field(repr=False, compare=False)
    """The object as it came, with members that are newer than this client."""

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Self:
        """The record of a JSON object; a member that it lacks is None."""
        members: dict[str, Any] = {one.name: document.get(one.name) for one in fields(cls)}
        members |= cls._read(document)
        for name in cls._times:
            if members[name] is not None:
                members[name] = datetime.fromisoformat(members[name])
        return cls(**{**members, "document": document})

    @classmethod
    def _read(cls, document: Mapping[str, Any]) -> dict[str, Any]:
        """Members that are something else here than in JSON."""
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
    """A map: its spec with all defaults filled in, and what became of it."""

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
    """Seconds that it lives after its last use; None for ever."""
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
    """What a spec would make and cost, had it been put."""

    name: str
    exists: bool
    spec: dict[str, Any]
    at_once: bool
    """Whether it can be built within a request; else a job would build it, and sizes are the most they can become."""
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
    """A dataset. In lists `column_ranges` is None."""

    _times = ("created_at", "expires_at")

    name: str
    shape: tuple[int, int]
    dtype: str
    sparse: bool
    ids: Literal["int", "string"] | None
    """What the ids are that came with the rows."""
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
    """An index of vectors over a map."""

    _times = ("created_at", "expires_at")

    name: str
    status: Status
    error: JobError | None
    job: str | None
    """Link of the job that finds bands for its target, or could not."""
    map: str
    """Name of the map whose codes it keeps."""
    keep: Literal["codes", "vectors"]
    banding: Literal["bands", "scan"] | None
    """None before that job has found out which."""
    bands: int | None
    rows_per_band: int | None
    s: int
    """Codes of a vector."""
    bits: int
    """Of a code."""
    size: int
    """Vectors in it."""
    bytes: int
    created_at: datetime
    ttl: int | None
    """Seconds that it lives after its last use; None for ever."""
    expires_at: datetime | None

    @classmethod
    def _read(cls, document: Mapping[str, Any]) -> dict[str, Any]:
        return {"error": _error(document)}


@dataclass(frozen=True, kw_only=True)
class SearchResult(Record):
    """What was found for one row, best first."""

    ids: list[int | str]
    similarity: list[float]
    """Estimated from codes."""
    standard_error: list[float]
    """Of the estimates; 0 where all codes agree or none does, which is no certainty."""
    exact: list[float] | None
    """Of the vectors themselves, where they were compared."""
    candidates: int
    """How many vectors the row was compared with."""


@dataclass(frozen=True, kw_only=True)
class Duplicates(Record):
    """The duplicates in an index."""

    clusters: list[list[int | str]]
    """Ids of vectors that are joined by pairs of the similarity wanted or more; large clusters first."""
    size: int
    """How many vectors the index held."""
    min_similarity: float
    standard_error: float
    """Of estimates of that similarity: pairs that are within a few of it may be on either side."""
    compared: int
    """How often two vectors were compared."""


@dataclass(frozen=True, kw_only=True)
class JobRecord(Record):
    """A job."""

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
    """What it waits for while it is queued."""
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None

    @classmethod
    def _read(cls, document: Mapping[str, Any]) -> dict[str, Any]:
        return {"error": _error(document)}


@dataclass(frozen=True, kw_only=True)
class JobEvent(Record):
    """What a job is at, at one moment."""

    id: str
    """The id of the job."""
    state: State
    progress: float
    """From 0 to 1."""
    step: int | None
    of: int | None
    objective: float | None
    eta_seconds: float | None
    event_id: str
    """What to go on after, as `after` of `watch_job`."""
    last: bool
    """Whether the job has ended."""


@dataclass(frozen=True, kw_only=True)
class KeyRecord(Record):
    """A key without its text."""

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
    """To a minute."""
    bytes: int


@dataclass(frozen=True, kw_only=True)
class CreatedKey(KeyRecord):
    """A key that was made this moment."""

    key: str
    """The key itself, which is shown this once."""


@dataclass(frozen=True, kw_only=True)
class Info(Record):
    """Versions, limits, the store, and how much it keeps."""

    versions: dict[str, str]
    limits: dict[str, float]
    store: dict[str, Any]
    usage: dict[str, int]


def _error(document: Mapping[str, Any]) -> JobError | None:
    found = document.get("error")
    return None if found is None else JobError.read(found)
