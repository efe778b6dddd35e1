"""Single flight of long work: it ends between two steps once no client waits for it, or the process ends."""

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
    """One piece of work: its clients, and the progress for each turn in which it may be done."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        """Held by the turn that does the work, if any."""
        self.turns: set[Turn] = set()
        self.progress: list[TimedProgress] = []

    def leave(self, turn: "Turn") -> None:
        """Remove a client, and abandon the work if it was the last."""
        self.turns.discard(turn)
        if not self.turns:
            for one in self.progress:
                one.abandoned = True


class Turn:
    """Turn of one client: it waits until others have done the same work, and for a place to do it itself."""

    def __init__(self, lock: asyncio.Lock) -> None:
        self.begun = False
        """Whether the work has begun in this turn."""
        self._lock = lock

    @asynccontextmanager
    async def alone(self, until: float) -> AsyncIterator[bool]:
        """Wait for clients that do the same work; yield whether they ended by `until`, a time of `time.monotonic`."""
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
    """Return when the client closes its connection. Call this once the whole body has arrived."""
    while (await receive())["type"] != "http.disconnect":
        pass


class Interest:
    """Registry of the clients that wait for each long-running computation.

    Several clients may want the same result, such as one map: each waits for its turn, the first computes it, and the
    others then find it done. The work continues while any of these clients is connected, whichever began it.
    """

    def __init__(self) -> None:
        self._works: dict[Hashable, _Work] = {}

    @asynccontextmanager
    async def of(self, client: Request, work: Hashable, progress: Sequence[TimedProgress]) -> AsyncIterator[Turn]:
        """Register a client for some work, and yield its turn. Work not yet begun is cancelled when the client goes.

        Args:
            client: its connection is watched; its whole body has arrived.
            work: key of the work, equal for all clients that want the same.
            progress: progress of the work, if it is done in this turn.

        Raises:
            ClientDisconnect: the client has disconnected, and the work has ended with it.
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
                await asyncio.sleep(0)  # lets `watch` notice a client that has gone already
                yield turn
        except Abandoned:
            raise ClientDisconnect from None
        finally:
            watching.cancel()
            wanted.progress = [one for one in wanted.progress if one not in progress]
            wanted.leave(turn)
            if not wanted.progress:  # no client is left
                del self._works[work]
        if scope.cancelled_caught:
            raise ClientDisconnect


class Shutdown:
    """Whether the process has been asked to end.

    The server waits until all answers are sent before it notifies the application. But the event stream of a running
    job is an answer that ends only with the job. So this class handles the signals itself.
    """

    def __init__(self) -> None:
        self.begun = False

    def notice(self) -> None:
        """Handle signals from now on, in the main thread, and then call the handlers that the server has set.

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
