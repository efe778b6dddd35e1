"""Who may come in: a bound on requests in work, and on those computed at once."""

import asyncio
import math
import time
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
        # Apart, so that a store that hangs leaves threads to send answers with.
        self._asking = anyio.CapacityLimiter(_CALLS_AT_ONCE)
        self.building = asyncio.Semaphore(1)
        """For `run_by`: maps are built one at a time, as they may be large."""
        self.measuring = asyncio.Semaphore(threads)
        """For `run_by`: diagnostics and recommendations."""
        self.patient = asyncio.Semaphore(threads)
        """For `run_by`: work whose clients wait long. Others must not become jobs because of it."""
        self._long_work = anyio.CapacityLimiter(math.inf)

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

    async def run_by(self, ends_at: float, places: asyncio.Semaphore, work: Callable[[], Result]) -> Result | None:
        """Run long work on a thread, which must see to its end itself.

        Args:
            ends_at: the moment by which it must have begun, as `time.monotonic` tells it.
            places: how much of this work may be done at once: one of those above.
            work: what is done.

        Returns:
            What the work gives; None if no place was free by that moment.
        """
        try:
            async with asyncio.timeout(ends_at - time.monotonic()):
                await places.acquire()
        except TimeoutError:
            return None
        try:
            return await anyio.to_thread.run_sync(work, limiter=self._long_work)
        finally:
            places.release()

    async def ask(self, work: Callable[[], Result]) -> Result:
        """Run a short call to the store on a thread."""
        return await anyio.to_thread.run_sync(work, limiter=self._asking)
