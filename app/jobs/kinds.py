"""Kinds of jobs: plain functions, by name."""

from collections.abc import Callable, Mapping
from typing import Any

from app.jobs.attempt import Attempt

Result = Mapping[str, bytes] | None
"""Bodies by media type, the first being the one to give where a client wants none before the others; or None, if what
was made is kept elsewhere."""

Task = Callable[[Mapping[str, Any], Attempt], Result]
"""What a job does: from its payload, in a process of its own, which may be killed at any moment. It is then called
again, with the last checkpoint, and must give the same result as if nothing had happened.

InvalidInput and TooLarge fail the job with their detail; other exceptions are internal errors.
"""

Kinds = Mapping[str, Task]
