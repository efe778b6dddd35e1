"""The request that is in work, or has led to the job in work: who logs, counts, submits or links for it finds it.

Tasks and threads that a request begins see the same one, and so does the process of a job.
"""

from asyncio import Future
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(slots=True)
class InWork:
    """A request, while it lasts, or while a job does what it has asked for."""

    request_id: str
    """Empty for that of a job which an earlier version has stored."""
    traceparent: str = ""
    """The header of the W3C that came with it, or that of its own span; empty where nobody traces it."""
    job_id: str = ""
    """Empty for a request."""
    rows: int = 0
    """Rows that have passed a gate for it."""
    owner: str = ""
    """Whose it is: the id of its key; empty without one."""
    prefix: str = ""
    """What a proxy has stripped from its address."""
    left: "Future[None] | None" = None
    """Done once the connection of its client is lost; None for a job."""

    @property
    def ids(self) -> dict[str, str]:
        """The ids of its request, trace and job, as far as it has some; each line of the log has them."""
        every = {"request_id": self.request_id, "trace_id": self.trace_id, "job_id": self.job_id}
        return {name: one for name, one in every.items() if one}

    @property
    def trace_id(self) -> str:
        """The trace that it belongs to, empty for none."""
        return self.traceparent[3:35]


IN_WORK: ContextVar[InWork | None] = ContextVar("in_work", default=None)


def owner_in_work() -> str:
    """Whose request is in work; empty for nobody's."""
    request = IN_WORK.get()
    return "" if request is None else request.owner


def link_to(path: str) -> str:
    """A path of the service as the client of the request in work reaches it, behind what a proxy strips."""
    request = IN_WORK.get()
    return path if request is None else request.prefix + path


def note_rows(rows: int) -> None:
    """Add rows to those of the request in work, if there is one: jobs are none."""
    request = IN_WORK.get()
    if request is not None:
        request.rows += rows
