"""Who may come in: a bound on requests in work, and on those computed at once."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TypeVar

import anyio
import anyio.to_thread

from app.api.problems import Refusal

Result = TypeVar("Result")

# Listeners of jobs, who wait most of the time.
_LISTENERS = 256
# Calls to the store that wait for it on threads of their own.
_CALLS_AT_ONCE = 32


class Admission:
    """Bounds for one process.

    Args:
        max_requests: requests that may be in work or waiting; each may hold a body in memory.
        threads: requests that may compute at once.
        client_timeout: seconds a client may pause while it sends or reads a body.
    """

    def __init__(self, max_requests: int, threads: int, client_timeout: float) -> None:
        self.client_timeout = client_timeout
        self._max_requests = max_requests
        self._inside = 0
        self._listeners = 0
        self._computing = anyio.CapacityLimiter(threads)
        # Apart from the rest, so that a large map under construction holds nobody up.
        self._building = anyio.CapacityLimiter(1)
        # Apart too, so that a store that hangs leaves threads to send answers with.
        self._asking = anyio.CapacityLimiter(_CALLS_AT_ONCE)

    @asynccontextmanager
    async def enter(self) -> AsyncIterator[None]:
        """Count a request in.

        Raises:
            Refusal: too many are inside.
        """
        if self._inside >= self._max_requests:
            raise Refusal("overloaded", f"{self._inside} requests are in work or waiting")
        self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1

    @contextmanager
    def listen(self) -> Iterator[None]:
        """Count a listener in, who takes no place of those that want work done.

        Raises:
            Refusal: too many listen.
        """
        if self._listeners >= _LISTENERS:
            raise Refusal("overloaded", f"{self._listeners} clients listen to jobs")
        self._listeners += 1
        try:
            yield
        finally:
            self._listeners -= 1

    async def compute(self, work: Callable[[], Result]) -> Result:
        """Run work on a thread, waiting for a free one."""
        return await anyio.to_thread.run_sync(work, limiter=self._computing)

    async def build(self, work: Callable[[], Result]) -> Result:
        """Run the building of a map on a thread, one at a time."""
        return await anyio.to_thread.run_sync(work, limiter=self._building)

    async def ask(self, work: Callable[[], Result]) -> Result:
        """Run a short call to the store on a thread."""
        return await anyio.to_thread.run_sync(work, limiter=self._asking)
