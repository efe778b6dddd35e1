"""Who waits for long work: it ends between two steps once none is left who wants it, or the process is about to end."""

import asyncio
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable, Hashable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from types import FrameType
from typing import Any

import anyio
from fastapi import Request
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from app.core.progress import Abandoned, TimedProgress


class _Work:
    """One piece of work: its clients, and the progress of each turn in which it may be done."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        """Held by the turn that does it, if one does."""
        self.turns: set[Turn] = set()
        self.progress: list[TimedProgress] = []

    def leave(self, turn: "Turn") -> None:
        """Count a client out, and let the work end if it was the last."""
        self.turns.discard(turn)
        if not self.turns:
            for one in self.progress:
                one.abandoned = True


class Turn:
    """The turn of one client, who waits for others to have the same done, and for a place to have it done itself."""

    def __init__(self, lock: asyncio.Lock) -> None:
        self.begun = False
        """Set once the work is being done."""
        self._lock = lock

    @asynccontextmanager
    async def alone(self, until: float) -> AsyncIterator[bool]:
        """Wait for others who do the same work; gives whether they have ended at that time of `time.monotonic`."""
        try:
            async with asyncio.timeout(until - time.monotonic()):
                await self._lock.acquire()
        except TimeoutError:
            yield False
        else:
            try:
                yield True
            finally:
                self._lock.release()


async def hung_up(receive: Receive) -> None:
    """Return when the client closes its connection. Call it when the whole body has come."""
    while (await receive())["type"] != "http.disconnect":
        pass


class Interest:
    """Who wants which long work.

    Several clients may want the same, such as one map: each waits for a place, the first does it, and the others then
    find it done. So work goes on while any of them is there, whoever has begun it.
    """

    def __init__(self) -> None:
        self._works: dict[Hashable, _Work] = {}

    @asynccontextmanager
    async def of(self, client: Request, work: Hashable, progress: Sequence[TimedProgress]) -> AsyncIterator[Turn]:
        """The turn of a client that wants some work. Once the client has gone, what was not begun is not begun.

        Args:
            client: whose connection is watched; its whole body has come.
            work: what it is, the same for all who want the same.
            progress: of the work, if it is done in this turn.

        Raises:
            ClientDisconnect: the client has gone, and the work has ended with it.
        """
        wanted, scope = self._works.setdefault(work, _Work()), anyio.CancelScope()
        turn = Turn(wanted.lock)
        wanted.turns.add(turn)
        wanted.progress += progress

        async def watch() -> None:
            await hung_up(client.receive)
            wanted.leave(turn)
            if not turn.begun:
                scope.cancel()

        watching = asyncio.create_task(watch())
        try:
            with scope:
                await asyncio.sleep(0)  # who has gone already is seen now
                yield turn
        except Abandoned:
            raise ClientDisconnect from None
        finally:
            watching.cancel()
            wanted.progress = [one for one in wanted.progress if one not in progress]
            wanted.leave(turn)
            if not wanted.progress:  # nobody is left in it
                del self._works[work]
        if scope.cancelled_caught:
            raise ClientDisconnect


class Shutdown:
    """Whether the process has been told to end.

    The server waits until all answers are sent before it tells the application. The events of a running job are an
    answer that ends only with the job. So this class listens to the signals itself.
    """

    def __init__(self) -> None:
        self.begun = False

    def notice(self) -> None:
        """Listen to signals from now on, in the main thread, beside the handlers that the server has set before.

        The server removes these handlers together with its own.
        """
        if threading.current_thread() is not threading.main_thread():
            return
        for number in (signal.SIGINT, signal.SIGTERM):
            served = signal.getsignal(number)
            if callable(served):
                signal.signal(number, partial(self._begin, served))

    def _begin(self, served: Callable[[int, FrameType | None], Any], number: int, frame: FrameType | None) -> None:
        self.begun = True
        served(number, frame)
