"""How many requests are let in, and how much is computed at the same time."""

import asyncio
import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TypeVar

import anyio
import anyio.to_thread

from app.api.problems import Refusal, limit
from app.api.readers import Readers
from app.api.senders import Senders
from app.settings import Settings

Result = TypeVar("Result")

# Threads for short calls to the store.
_STORE_THREADS = 32


class Places:
    """Places that requests hold while they last; entering raises Refusal when all are taken. Costs next to nothing.

    Args:
        setting: the one that says how many there are.
        most: its value.
        said: what holds them all when there is none.
        make_room: sees to it that one is given back soon, if it can; that one counts as free already.
    """

    def __init__(self, setting: str, most: int, said: str, make_room: Callable[[], bool] = lambda: False) -> None:
        self.most = self._free = most
        self._make_room = make_room
        self._refusal = f"{most} {said}", limit(setting, most)

    @property
    def taken(self) -> int:
        """How many are taken."""
        return self.most - self._free

    def __enter__(self) -> None:
        if self._free <= 0 and not self._make_room():
            detail, members = self._refusal
            raise Refusal("overloaded", detail, **members)
        self._free -= 1

    def __exit__(self, *_: object) -> None:
        self._free += 1


class Admission:
    """Lets requests in and computes for them, as much as one process can do at a time; refuses the others.

    `settings` say how many: `max_requests`, `max_builds`, `max_listeners`, `max_bodies_bytes`,
    `max_answers_bytes` and `threads`. `waited` is told how long work has waited for a thread, and for which;
    `part` is entered while something is computed.
    """

    def __init__(
        self,
        settings: Settings,
        waited: Callable[[str, float], None] = lambda *_: None,
        part: Callable[[str], AbstractContextManager[None]] = lambda _: nullcontext(),
    ) -> None:
        threads = settings.threads
        self._waited, self._part = waited, part
        self.senders = Senders(settings.max_bodies_bytes)
        """Those inside whose bodies have not come yet."""
        self.readers = Readers(settings.max_answers_bytes)
        """Those who are sent long answers."""
        self.inside = Places(
            "max_requests", settings.max_requests, "requests are in work or waiting", self.senders.make_room
        )
        """Places of requests, each of which may hold a body in memory."""
        self.builds = Places("max_builds", settings.max_builds, "maps are being built or wait to be")
        """Places of clients that wait for a map to be built, which take none of a request."""
        self.listening = Places("max_listeners", settings.max_listeners, "clients listen to jobs")
        """Places of clients that watch jobs, which take none of a request: they wait most of the time."""
        self.places = {"requests": self.inside, "builds": self.builds, "listeners": self.listening}
        """All of them by what they are for."""
        self._computing = anyio.CapacityLimiter(threads)
        # Threads of their own, so that what takes milliseconds does not wait for what takes longer.
        self._brief = anyio.CapacityLimiter(threads)
        # Threads of their own, so that calls to a store that hangs do not hold up the sending of answers.
        self._asking = anyio.CapacityLimiter(_STORE_THREADS)
        self.building = asyncio.Semaphore(1)
        """Places for building maps in `run_by`: one, as a map may take much memory."""
        self.measurements = asyncio.Semaphore(threads)
        """Places for diagnostics and recommendations in `run_by`."""
        self.patient = asyncio.Semaphore(threads)
        """Places in `run_by` for all work whose clients wait long, so that it keeps nobody else waiting."""
        # Threads of their own, so that jobs are submitted while others compute.
        self._submitting = anyio.CapacityLimiter(threads)
        self._long_work = anyio.CapacityLimiter(math.inf)
        self._limiters = {
            "compute": self._computing,
            "brief": self._brief,
            "store": self._asking,
            "submit": self._submitting,
        }

    @property
    def waiting(self) -> dict[str, int]:
        """How many requests wait for a thread, by what the thread is for."""
        return {waits_for: limiter.statistics().tasks_waiting for waits_for, limiter in self._limiters.items()}

    async def compute(self, work: Callable[[], Result], brief: bool = False) -> Result:
        """Run work on a thread; wait until one is free. What is brief waits for nothing else."""
        return await self._run("brief" if brief else "compute", partial(self.at_once, work))

    def at_once(self, work: Callable[[], Result]) -> Result:
        """Run work in the thread that calls this."""
        with self._part("compute"):
            return work()

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
            return await anyio.to_thread.run_sync(partial(self.at_once, work), limiter=self._long_work)
        finally:
            places.release()

    async def submit(self, work: Callable[[], Result]) -> Result:
        """Run on a thread what leaves work to a job; wait until one is free."""
        return await self._run("submit", work)

    async def ask(self, work: Callable[[], Result]) -> Result:
        """Run a short call to the store on a thread."""
        return await self._run("store", work)

    async def _run(self, waits_for: str, work: Callable[[], Result]) -> Result:
        asked = time.perf_counter()

        def begun() -> Result:
            self._waited(waits_for, time.perf_counter() - asked)
            return work()

        return await anyio.to_thread.run_sync(begun, limiter=self._limiters[waits_for])
