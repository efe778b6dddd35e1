"""Record of a job, as stored and as clients see it; and the errors of jobs, independent of HTTP."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NamedTuple

from pydantic_core import from_json

from app.core.model import Described
from app.request_context import link_to


class JobState(StrEnum):
    """State of a job: queued, running, queued again if its process dies; finally succeeded, failed or cancelled."""

    queued = "queued"
    running = "running"
    succeeded = "succeeded"
    failed = "failed"
    cancelled = "cancelled"

    @property
    def ended(self) -> bool:
        """Whether the state is final."""
        return self not in (JobState.queued, JobState.running)


class JobError(Described):
    """Why a job failed."""

    reason: str
    """Kind of failure: invalid-input, too-large, quota (the store has no room for the result), time, memory, died (the
    job's process died repeatedly), newer-version (the job's data were stored by a newer version of the service) or
    internal-error.
    """
    detail: str
    """Explanation in one sentence."""
    pointer: str | None = None
    """For invalid-input: JSON pointer into the body that was sent."""


class JobRecord(Described):
    """Job that runs in the background: its state, progress and result."""

    id: str
    """Id of the job."""
    kind: str
    """Kind of work that the job does."""
    subject: dict[str, str]
    """Object that the job works on, such as {"map": "letters"}."""
    state: JobState
    """State of the job; succeeded, failed and cancelled are final."""
    progress: float
    """Share of the steps that are done, from 0 to 1."""
    step: int | None
    """Number of steps done."""
    of: int | None
    """Total number of steps."""
    objective: float | None
    """Current value of the quantity that an optimisation minimises."""
    eta_seconds: float | None
    """Estimated seconds until the job ends; given while it runs."""
    result: str | None
    """Link to the result, once the job has succeeded."""
    error: JobError | None
    """Reason why the job failed."""
    waiting_for: str | None = None
    """Reason why a queued job waits."""
    created_at: datetime
    """Time when the job was submitted."""
    started_at: datetime | None
    """Time when a worker first took the job; null before."""
    ended_at: datetime | None
    """Time when the job ended; null before."""


class Body(NamedTuple):
    """Stored body of a result: its media type, the prefix of its chunks' keys, and the number of chunks."""

    media_type: str
    prefix: str
    pieces: int


def link(job_id: str) -> str:
    """Return the address of a job for clients."""
    return link_to(f"/v1/jobs/{job_id}")


def bodies(fields: dict[str, str]) -> list[Body]:
    """Return the bodies of the result of a job that has succeeded."""
    return [Body(*one) for one in from_json(fields.get("bodies") or "[]")]


def record(fields: dict[str, str]) -> JobRecord:
    """Return a job's record from the fields of its hash in the store; a field not known yet is absent or empty."""
    state = JobState(fields["state"])
    return JobRecord(
        id=fields["id"],
        kind=fields["kind"],
        subject=from_json(fields["subject"]),
        result=_result(fields) if state is JobState.succeeded else None,
        error=JobError.model_validate_json(fields["error"]) if fields.get("error") else None,
        created_at=_time(fields["created"]),
        started_at=_time(fields["started"]) if fields.get("started") else None,
        ended_at=_time(fields["ended"]) if fields.get("ended") else None,
        **progress(fields),
    )


def progress(fields: dict[str, str]) -> dict[str, Any]:
    """Return the state and progress of a job, from its hash or from one of its events."""
    return {
        "state": JobState(fields["state"]),
        "progress": float(fields.get("progress") or 0),
        "step": int(fields["step"]) if fields.get("step") else None,
        "of": int(fields["of"]) if fields.get("of") else None,
        "objective": float(fields["objective"]) if fields.get("objective") else None,
        "eta_seconds": float(fields["eta"]) if fields.get("eta") and fields["state"] == "running" else None,
    }


def _result(fields: dict[str, str]) -> str | None:
    if bodies(fields):
        return f"{link(fields['id'])}/result"
    return link_to(fields["result_link"]) if fields.get("result_link") else None


def _time(seconds: str) -> datetime:
    return datetime.fromtimestamp(float(seconds), UTC).replace(microsecond=0)


class JobNotFound(Exception):
    """There is no job with this id, or it has expired."""

    def __init__(self, job_id: str) -> None:
        super().__init__(f"there is no job {job_id!r}; ended jobs are kept for a time only")


class JobHasNoResult(Exception):
    """The job has not succeeded, or has no result of its own."""


class JobHasEnded(Exception):
    """The job can no longer be cancelled."""


class TooManyJobs(Exception):
    """A job is refused: `max_queued_jobs` jobs wait, or `own` jobs of its owner leave too little room for others."""

    limit = "max_queued_jobs"

    def __init__(self, waiting: int, allowed: int, own: int = 0) -> None:
        left = f", and {own} jobs of this key wait or run: the other places are for others" if own else ""
        super().__init__(f"{waiting} jobs wait; max_queued_jobs is {allowed}{left}")
        self.allowed = allowed


class NotMine(Exception):
    """The job was cancelled or given to another process; all further work of this process is discarded."""


class ResultElsewhere(Exception):
    """The result of a job is at another address, which is the only argument."""
