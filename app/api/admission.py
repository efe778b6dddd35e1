"""How many requests are let in, and how much is computed at the same time."""

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

# Clients that may watch jobs at the same time. They wait most of the time.
_MOST_LISTENERS = 256
# Threads for short calls to the store.
_STORE_THREADS = 32


class Admission:
    """What one process takes on at the same time. Requests that find no place are refused.

    Args:
        max_requests: requests that may be in work or wait. Each may hold a body in memory.
        threads: requests that may compute at the same time.
        client_timeout: seconds a client may pause while it sends or reads a body.
    """

    def __init__(self, max_requests: int, threads: int, client_timeout: float) -> None:
        self.client_timeout = client_timeout
        self._max_requests = max_requests
        self._inside = 0
        self._listeners = 0
        self._computing = anyio.CapacityLimiter(threads)
        # Threads of their own, so that calls to a store that hangs do not hold up the sending of answers.
        self._asking = anyio.CapacityLimiter(_STORE_THREADS)
        self.building = asyncio.Semaphore(1)
        """Places for building maps in `run_by`: one, as a map may take much memory."""
        self.measuring = asyncio.Semaphore(threads)
        """Places for diagnostics and recommendations in `run_by`."""
        self.patient = asyncio.Semaphore(threads)
        """Places in `run_by` for all work whose clients wait long, so that it keeps nobody else waiting."""
        self._long_work = anyio.CapacityLimiter(math.inf)

    @asynccontextmanager
    async def enter(self) -> AsyncIterator[None]:
        """Count a request as long as it lasts.

        Raises:
            Refusal: there are too many.
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
        """Count a client that watches a job. It takes no place of a request.

        Raises:
            Refusal: there are too many.
        """
        if self._listeners >= _MOST_LISTENERS:
            raise Refusal("overloaded", f"{self._listeners} clients listen to jobs")
        self._listeners += 1
        try:
            yield
        finally:
            self._listeners -= 1

    async def compute(self, work: Callable[[], Result]) -> Result:
        """Run work on a thread; wait until one is free."""
        return await anyio.to_thread.run_sync(work, limiter=self._computing)

    async def run_by(self, ends_at: float, places: asyncio.Semaphore, work: Callable[[], Result]) -> Result | None:
        """Run long work on a thread, once there is a place for it. The work must end itself in time.

        Args:
            ends_at: the moment until which to wait for a place, as `time.monotonic` tells it.
            places: one of those above.
            work: what to do.

        Returns:
            What the work gives; None if there was no place in time.
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
