"""Handlers of jobs: plain functions, by name."""

from collections.abc import Callable, Mapping
from typing import Any

from app.jobs.job_context import JobContext

Result = Mapping[str, bytes] | None
"""Bodies by media type, the first being the one to give where a client wants none before the others; or None, if what
was made is kept elsewhere."""

Handler = Callable[[Mapping[str, Any], JobContext], Result]
"""What a job does: from its payload, in a process of its own, which may be killed at any moment. It is then called
again, with the last checkpoint, and must give the same result as if nothing had happened.

InvalidInput and TooLarge fail the job with their detail; other exceptions are internal errors.
"""

Handlers = Mapping[str, Handler]
