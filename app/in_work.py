"""The request that is in work: whoever logs, counts or submits a job on its behalf finds it here.

Tasks and threads that a request begins see the same one.
"""

from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(slots=True)
class InWork:
    """A request, while it lasts."""

    request_id: str
    traceparent: str = ""
    """The header of the W3C that came with it, or that of its own span; empty where nobody traces it."""
    rows: int = 0
    """Rows that have passed a gate for it."""

    @property
    def trace_id(self) -> str:
        """The trace that it belongs to, empty for none."""
        return self.traceparent[3:35]


IN_WORK: ContextVar[InWork | None] = ContextVar("in_work", default=None)


def note_rows(rows: int) -> None:
    """Add rows to those of the request in work, if there is one: jobs are none."""
    request = IN_WORK.get()
    if request is not None:
        request.rows += rows
