"""How many requests are let in, how much is computed at a time and together, and the memory of bodies and answers."""

import asyncio
import logging
import math
import time
from bisect import bisect_right
from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import AbstractContextManager, nullcontext, suppress
from contextvars import Context
from functools import partial
from itertools import accumulate
from math import inf
from typing import Any, Generic, NamedTuple, TypeVar

import anyio
import anyio.to_thread
import numpy as np
from starlette.requests import ClientDisconnect
from starlette.types import Message

from app.api.problems import Refusal, limit
from app.core.arrays import Array, Floats
from app.core.maps import FeatureMap
from app.request_context import REQUEST, current_owner
from app.settings import Settings

State = MutableMapping[str, Any]
"""The state in the scope of a request, which is kept as long as the request lasts."""

_TAKEN = "body_bytes"
# Seconds after which a client may not be slower than the least rate.
_SLOW_SECONDS = 10.0
# The same where others would be refused for want of its place.
_SLOW_IN_THE_WAY_SECONDS = 1.0


class Senders:
    """The clients whose bodies have not come yet, in the order in which they began, and the memory of all bodies.

    No key takes more of it than it leaves to others, but for a single body.

    Args:
        max_bodies_bytes: bytes of bodies that may be in memory. Each counts until its request is over.
    """

    def __init__(self, max_bodies_bytes: int) -> None:
        self.there: dict[Sender, None] = {}
        self._most = self._free = max_bodies_bytes
        self._of = Counter[str]()

    @property
    def taken(self) -> int:
        """Bytes of bodies that are in memory."""
        return self._most - self._free

    def take(self, state: State, size: int) -> None:
        """Take memory for so many bytes of the body of a request; Refusal if there is none, and nobody makes room."""
        owner, taken = current_owner(), state.get(_TAKEN, 0)
        own, members = self._of[owner], limit("max_bodies_bytes", self._most)
        if owner and own > taken and own + size > self._free > 0:
            detail = f"{own} bytes are in the bodies of this key; the {self._free} that are left are for others"
            raise Refusal("overloaded", detail, **members)
        if size > self._free and not self.make_room():
            raise Refusal("overloaded", f"the bodies of all requests take {self._most - self._free} bytes", **members)
        self._free -= size
        self._of[owner] += size
        state[_TAKEN] = taken + size

    def give_back(self, state: State) -> None:
        """Give back what a request has taken. Nothing happens if it has taken nothing."""
        taken = state.pop(_TAKEN, 0)
        self._free += taken
        self._of[current_owner()] -= taken

    def make_room(self) -> bool:
        """Give up the oldest of those that are slower than the least rate just now; False if none is."""
        for sender in self.there:
            if sender.is_in_the_way():
                sender.give_up()
                return True
        return False


class Sender:
    """A client that sends a body, within a with block. `came` is how many bytes of it have come, unpacked."""

    def __init__(self, senders: Senders, settings: Settings) -> None:
        self.came = 0
        self._senders, self._settings = senders, settings
        self._began = time.monotonic()
        # The last moment at which it was as fast as it must be, and what had come then.
        self._fast_at, self._fast_came = self._began, 0
        self._in_the_way = False
        self._waiting: asyncio.Timeout | None = None

    def __enter__(self) -> "Sender":
        self._senders.there[self] = None
        return self

    def __exit__(self, *_: object) -> None:
        self._senders.there.pop(self, None)

    async def waited_for(self, receive: Callable[[], Awaitable[Message]]) -> Message:
        """The next message of the client, a part of its body; Refusal if that takes too long."""
        settings, passed = self._settings, self._elapsed_seconds()
        rate = settings.min_body_rate
        # From its beginning on, after which what has come is too little.
        in_time = max(_SLOW_SECONDS, self.came / rate) if rate else inf
        seconds, name = min(
            (settings.client_timeout, "client_timeout"),
            (settings.body_timeout - passed, "body_timeout"),
            (in_time - passed, "min_body_rate"),
        )
        try:
            async with asyncio.timeout(seconds) as self._waiting:
                return await receive()
        except TimeoutError:
            raise self._refusal("min_body_rate" if self._in_the_way else name) from None

    def has_sent(self, size: int) -> None:
        """Note what has come."""
        self.came += size
        now, rate = time.monotonic(), self._settings.min_body_rate
        if self.came - self._fast_came >= rate * (now - self._fast_at):
            self._fast_at, self._fast_came = now, self.came

    def is_in_the_way(self) -> bool:
        """Whether it is slow enough to make room for others: not on the whole, but since it was fast."""
        rate = self._settings.min_body_rate
        patience = max(_SLOW_IN_THE_WAY_SECONDS, (self.came - self._fast_came) / rate) if rate else inf
        return time.monotonic() - self._fast_at > patience

    def give_up(self) -> None:
        """Wait for it no longer, as others need its place."""
        del self._senders.there[self]
        if self._waiting is not None and not self._waiting.expired():
            self._in_the_way = True
            self._waiting.reschedule(asyncio.get_running_loop().time())

    def _elapsed_seconds(self) -> float:
        return time.monotonic() - self._began

    def _refusal(self, name: str) -> Refusal:
        value = getattr(self._settings, name)
        wanted = {
            "client_timeout": f"then none for {value:g}",
            "body_timeout": f"and not all in {value:g}",
            "min_body_rate": f"fewer than {value:g} a second" + (", and others wait" if self._in_the_way else ""),
        }
        detail = f"{self.came} bytes came in {self._elapsed_seconds():.1f} seconds, {wanted[name]}"
        return Refusal("request-timeout", detail, **limit(name, value))


logger = logging.getLogger(__name__)

HELD = "answer_bytes"
"""In the state of a request: the memory that its answer takes while it is sent, where that is not its length."""
# Seconds that a client may take to read a piece where others would be refused for want of its memory.
_SLOW_READER_SECONDS = 1.0


class NoRoom(Exception):
    """Answers that are being sent take all memory there is for them."""


class Reader:
    """A client that reads an answer, which takes so much memory; `abort` breaks its connection off."""

    def __init__(self, nbytes: int, abort: Callable[[], None] | None) -> None:
        self.nbytes, self.abort, self.owner = nbytes, abort, current_owner()
        self.waited_for_since = inf
        """The moment from which on the next piece waits for it to read the one before; infinity while none does."""

    @property
    def is_in_the_way(self) -> bool:
        """Whether it reads so slowly that it is to make room for others."""
        return self.abort is not None and time.monotonic() - self.waited_for_since > _SLOW_READER_SECONDS


class Readers:
    """The clients that read long answers, and the memory of these answers.

    Args:
        max_answers_bytes: bytes of answers that may be in memory. A single one may always be.
    """

    def __init__(self, max_answers_bytes: int) -> None:
        self._there: dict[Reader, None] = {}
        self.most = self._free = max_answers_bytes
        self._of = Counter[str]()

    @property
    def taken(self) -> int:
        """Bytes of answers that are in memory."""
        return self.most - self._free

    def enter(self, reader: Reader) -> None:
        """Count an answer; NoRoom if there is no memory for it, and nobody makes room.

        With one answer in memory, a key may have more of them while it leaves as much to others.
        """
        while reader.nbytes > self._free and self._there:
            slow = [one for one in self._there if one.is_in_the_way]
            if not slow:
                raise NoRoom(f"the answers that are being sent take {self.most - self._free} bytes")
            slowest = min(slow, key=lambda one: one.waited_for_since)
            logger.warning("a client that reads %d bytes slowly makes room for others", slowest.nbytes)
            self.leave(slowest)
            if slowest.abort is not None:
                slowest.abort()
        own = self._of[reader.owner]
        if reader.owner and own and own + reader.nbytes > self._free:
            raise NoRoom(f"{own} bytes are in the answers of this key; the {self._free} that are left are for others")
        self._there[reader] = None
        self._free -= reader.nbytes
        self._of[reader.owner] += reader.nbytes

    def leave(self, reader: Reader) -> None:
        """Give its memory back. Nothing happens if it has been given up."""
        if reader in self._there:
            del self._there[reader]
            self._free += reader.nbytes
            self._of[reader.owner] -= reader.nbytes


Result = TypeVar("Result")

# Seconds of a thread that a key which comes anew may have before the others.
_AHEAD_SECONDS = 1.0
# So long after a key has worked a thread is kept for it.
_JUST_NOW_SECONDS = 10.0
# Threads for short calls to the store.
_STORE_THREADS = 32


class Places:
    """Places that requests hold while they last; entering raises Refusal when all are taken. Costs next to nothing.

    No key takes more of them than it leaves to others.

    Args:
        setting: the one that says how many there are.
        most: its value.
        said: what holds them all when there is none.
        make_room: sees to it that one is given back soon, if it can; that one counts as free already.
    """

    def __init__(self, setting: str, most: int, said: str, make_room: Callable[[], bool] = lambda: False) -> None:
        self.most = self._free = most
        self._make_room, self._of = make_room, Counter[str]()
        self._refusal = f"{most} {said}", limit(setting, most)

    @property
    def taken(self) -> int:
        """How many are taken."""
        return self.most - self._free

    def __enter__(self) -> None:
        owner, (detail, members) = current_owner(), self._refusal
        if owner and 0 < self._free <= self._of[owner]:
            detail = f"{self._of[owner]} places are this key's; the {self._free} that are left are for others"
            raise Refusal("overloaded", detail, **members)
        if self._free <= 0 and not self._make_room():
            raise Refusal("overloaded", detail, **members)
        self._free -= 1
        self._of[owner] += 1

    def __exit__(self, *_: object) -> None:
        self._free += 1
        self._of[current_owner()] -= 1


class Turns:
    """Threads for work of one kind. Where work waits for one, it is given to the key that has had least of them.

    The last one that is free is kept for other keys, if some have worked just now and this key works already: they wait
    for nothing that it has asked for.
    """

    def __init__(self, most: int) -> None:
        self._free = most
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self.waiting = 0
        """How many wait. Other threads read it."""
        # Of each key: works that run, seconds since work began to wait, and the moment when the last one ended.
        self._running = Counter[str]()
        self._used = defaultdict[str, float](float)
        self._ended = dict[str, float]()

    async def run(self, work: Callable[[], Awaitable[Result]], left: "asyncio.Future[None] | None" = None) -> Result:
        """Run work as soon as its turn has come; ClientDisconnect if `left` is done before, as nobody waits for it."""
        owner = current_owner()
        if self._has_one_for(owner):
            self._take(owner)
        else:
            turn = asyncio.get_running_loop().create_future()
            if owner not in self._waiting:  # who comes is not behind the others, nor before them for long
                there = [self._used[one] for one in {*self._waiting, *+self._running} - {owner}]
                self._used[owner] = max([self._used[owner], *([min(there) - _AHEAD_SECONDS] if there else [])])
            self._waiting.setdefault(owner, deque()).append(turn)
            self.waiting += 1

            def give_up(_: object) -> None:
                turn.cancel()

            if left is not None:
                left.add_done_callback(give_up)
            try:
                await turn
            except asyncio.CancelledError:
                if not turn.cancelled():  # its turn had just come
                    self._give_back(owner)
                elif left is not None and left.done():
                    raise ClientDisconnect from None
                raise
            finally:
                self.waiting -= 1
                if left is not None:
                    left.remove_done_callback(give_up)
        began = time.monotonic()
        try:
            return await work()
        finally:
            self._ended[owner] = time.monotonic()
            self._used[owner] += self._ended[owner] - began
            self._give_back(owner)

    def _has_one_for(self, owner: str) -> bool:
        if self._free != 1 or not self._running[owner]:
            return self._free > 0
        since = time.monotonic() - _JUST_NOW_SECONDS
        return not any(ended > since for other, ended in self._ended.items() if other != owner)

    def _take(self, owner: str) -> None:
        self._free -= 1
        self._running[owner] += 1

    def _give_back(self, owner: str) -> None:
        self._free += 1
        self._running[owner] -= 1
        for next_owner in sorted(self._waiting, key=lambda one: self._used[one]):
            turns = self._waiting[next_owner]
            while turns and self._has_one_for(next_owner):
                turn = turns.popleft()
                if not turn.done():  # its client is there
                    self._take(next_owner)
                    turn.set_result(None)
            if not turns:
                del self._waiting[next_owner]
        if not self._waiting:
            self._used.clear()


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
        quarter = max(1, settings.max_requests // 4)
        self._files = Places("max_requests", quarter, "files are being read or wait to be, a quarter of max_requests")
        half = max(1, settings.max_connections // 2)
        # Those on whose connections nothing waits are what makes room for others.
        self._asking = Places("max_connections", half, "calls to the store run or wait, half of max_connections")
        # Each has threads of its own: what takes milliseconds does not wait for what takes longer, calls to a store
        # that hangs do not hold up the sending of answers, and jobs are submitted while others compute.
        self._turns = {waits_for: Turns(threads) for waits_for in ("compute", "brief", "submit")}
        self._turns |= {"store": Turns(_STORE_THREADS), "file": Turns(1)}
        self._threads = anyio.CapacityLimiter(math.inf)
        self.building = Turns(1)
        """Places for building maps in `run_by`: one, as a map may take much memory."""
        self.measurements = Turns(threads)
        """Places for diagnostics and recommendations in `run_by`."""
        self.patient = Turns(threads)
        """Places in `run_by` for all work whose clients wait long, so that it keeps nobody else waiting."""

    @property
    def waiting(self) -> dict[str, int]:
        """How many requests wait for a thread, by what the thread is for."""
        return {waits_for: turns.waiting for waits_for, turns in self._turns.items()}

    async def compute(self, work: Callable[[], Result], brief: bool = False) -> Result:
        """Run work on a thread; wait until one is free. What is brief waits for nothing else."""
        return await self._run("brief" if brief else "compute", partial(self.at_once, work))

    async def read_file(self, work: Callable[[], Result]) -> Result:
        """Run on a thread what waits for a process that reads a file, one at a time; Refusal where too many wait."""
        with self._files:
            return await self._run("file", work)

    def at_once(self, work: Callable[[], Result]) -> Result:
        """Run work in the thread that calls this."""
        with self._part("compute"):
            return work()

    async def run_by(self, ends_at: float, places: Turns, work: Callable[[], Result]) -> Result | None:
        """Run long work on a thread, once there is one of its places; None if there was none in time.

        `ends_at` is the moment until which to wait for a place, as `time.monotonic` tells it. The work must end itself.
        """
        waiting = asyncio.timeout(ends_at - time.monotonic())

        async def begin() -> Result:
            waiting.reschedule(None)
            return await anyio.to_thread.run_sync(partial(self.at_once, work), limiter=self._threads)

        try:
            async with waiting:
                return await places.run(begin)
        except TimeoutError:
            if not waiting.expired():  # it is of the work
                raise
            return None

    async def submit(self, work: Callable[[], Result]) -> Result:
        """Run on a thread what leaves work to a job; wait until one is free."""
        return await self._run("submit", work)

    async def ask(self, work: Callable[[], Result]) -> Result:
        """Run a short call to the store on a thread; Refusal where too many run or wait.

        Raises:
            ClientDisconnect: the client has gone before its turn came.
        """
        request = REQUEST.get()
        with self._asking:
            return await self._run("store", work, request.left if request else None)

    async def _run(
        self, waits_for: str, work: Callable[[], Result], left: "asyncio.Future[None] | None" = None
    ) -> Result:
        asked = time.perf_counter()

        def begin() -> Result:
            self._waited(waits_for, time.perf_counter() - asked)
            return work()

        return await self._turns[waits_for].run(partial(anyio.to_thread.run_sync, begin, limiter=self._threads), left)


Answer = TypeVar("Answer")

AT_ONCE = 1 << 19
"""Multiplications that may be done on the event loop: 0.3 ms or less."""
BRIEF = 1 << 26
"""Multiplications that take some milliseconds."""


class Asked(Generic[Answer]):
    """A question. Those who ask it in the same turn of the event loop, and so before it is put, share the answer.

    With `one_at_a_time`, so do those who ask before the answer comes; it is put for nobody in particular then.
    """

    def __init__(self, ask: Callable[[str], Awaitable[Answer]], one_at_a_time: bool = False) -> None:
        self._ask, self._one_at_a_time = ask, one_at_a_time
        self._coming: dict[str, asyncio.Task[Answer]] = {}

    async def __call__(self, about: str) -> Answer:
        """The answer to a question that is put after this call, unless one at a time is."""
        coming = self._coming.get(about)
        if coming is None:
            coming = self._coming[about] = asyncio.create_task(
                self._ask_soon(about), context=Context() if self._one_at_a_time else None
            )
            coming.add_done_callback(_hear)
        return await asyncio.shield(coming)  # who leaves takes it from nobody

    async def _ask_soon(self, about: str) -> Answer:
        await asyncio.sleep(0)
        if not self._one_at_a_time:
            del self._coming[about]
            return await self._ask(about)
        try:
            return await self._ask(about)
        finally:
            del self._coming[about]


def _hear(done: "asyncio.Future[Any]") -> None:
    """Keep a failure out of the log that nobody waits for any more."""
    if not done.cancelled():
        done.exception()


class _Request(NamedTuple):
    rows: Floats
    steps: int
    features: asyncio.Future[Array]


class Together:
    """Computes features of small requests, those that wait for the same map together.

    A request waits for one computation at most that has begun before. It gets the bits, or the refusal, that it would
    get alone. `batched` is told how many requests and rows were computed together.
    """

    def __init__(self, admission: Admission, batched: Callable[[int, int], None] = lambda *_: None) -> None:
        self._admission, self._batched = admission, batched
        self._waiting: dict[tuple[FeatureMap, str], list[_Request]] = {}
        """Of each map at work, and each key, those who wait for their turn."""
        self._work: set[asyncio.Task[None]] = set()

    async def features(self, feature_map: FeatureMap, rows: Floats, steps: int) -> Array:
        """The features of rows behind the gate, which take so many multiplications, no more than `BRIEF`."""
        request = _Request(rows, steps, asyncio.get_running_loop().create_future())
        of = feature_map, current_owner()
        if of in self._waiting:
            self._waiting[of].append(request)
        else:
            self._waiting[of] = [request]
            work = asyncio.create_task(self._serve(*of))
            self._work.add(work)
            work.add_done_callback(self._work.discard)
        return await request.features

    async def _serve(self, feature_map: FeatureMap, owner: str) -> None:
        """Compute until nobody of this key waits for this map."""
        waiting = self._waiting[feature_map, owner]
        try:
            await asyncio.sleep(0)  # others begin in this turn
            while waiting:
                steps = list(accumulate(one.steps for one in waiting))
                n = max(1, bisect_right(steps, BRIEF))
                self._batched(n, sum(len(one.rows) for one in waiting[:n]))
                compute = partial(_compute, feature_map, waiting[:n])
                admission, at_once = self._admission, steps[n - 1] <= AT_ONCE
                found = admission.at_once(compute) if at_once else await admission.compute(compute, brief=True)
                for one, features in zip(waiting[:n], found, strict=True):
                    if one.features.done():  # its client has gone
                        continue
                    if isinstance(features, Exception):
                        one.features.set_exception(features)
                    else:
                        one.features.set_result(features)
                del waiting[:n]
        finally:
            del self._waiting[feature_map, owner]
            for one in waiting:  # none, unless this was ended from outside
                one.features.cancel()


def _compute(feature_map: FeatureMap, batch: list[_Request]) -> list[Array | Exception]:
    """The features of each request, or why there are none."""
    if len(batch) > 1:
        ends = np.cumsum([len(one.rows) for one in batch])
        with suppress(Exception):  # that of one request; below, each gets its own
            features = feature_map.transform(np.concatenate([one.rows for one in batch]))
            return [*np.split(features, ends[:-1])]
    return [_alone(feature_map, one.rows) for one in batch]


def _alone(feature_map: FeatureMap, rows: Floats) -> Array | Exception:
    try:
        return feature_map.transform(rows)
    except Exception as error:  # raised again in the request that it belongs to
        return error
