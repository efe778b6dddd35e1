"""How many requests are let in, and how much is computed at the same time."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
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
    """

    def __init__(self, max_requests: int, threads: int) -> None:
        self._max_requests = max_requests
        self._inside = asyncio.Semaphore(max_requests)
        self._listening = asyncio.Semaphore(_MOST_LISTENERS)
        self._computing = anyio.CapacityLimiter(threads)
        # Threads of their own, so that calls to a store that hangs do not hold up the sending of answers.
        self._asking = anyio.CapacityLimiter(_STORE_THREADS)
        self.building = asyncio.Semaphore(1)
        """Places for building maps in `run_by`: one, as a map may take much memory."""
        self.measurements = asyncio.Semaphore(threads)
        """Places for diagnostics and recommendations in `run_by`."""
        self.patient = asyncio.Semaphore(threads)
        """Places in `run_by` for all work whose clients wait long, so that it keeps nobody else waiting."""
        self._long_work = anyio.CapacityLimiter(math.inf)

    def enter(self) -> AbstractAsyncContextManager[None]:
        """Count a request as long as it lasts; raise Refusal if there are too many."""
        return _place(self._inside, f"{self._max_requests} requests are in work or waiting")

    def listen(self) -> AbstractAsyncContextManager[None]:
        """Count a client that watches a job, which takes no place of a request; raise Refusal if there are too many."""
        return _place(self._listening, f"{_MOST_LISTENERS} clients listen to jobs")

    async def compute(self, work: Callable[[], Result]) -> Result:
        """Run work on a thread; wait until one is free."""
        return await anyio.to_thread.run_sync(work, limiter=self._computing)

    async def run_by(self, ends_at: float, places: asyncio.Semaphore, work: Callable[[], Result]) -> Result | None:
        """Run long work on a thread, once there is one of its places; None if there was none in time.

        `ends_at` is the moment until which to wait for a place, as `time.monotonic` tells it. The work must end itself.
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


@asynccontextmanager
async def _place(places: asyncio.Semaphore, refusal: str) -> AsyncIterator[None]:
    if places.locked():
        raise Refusal("overloaded", refusal)
    async with places:
        yield
