"""Limits on requests, concurrent computations, and memory of bodies and answers; batching of small requests."""

import asyncio
import logging
import math
import time
from bisect import bisect_right
from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from contextlib import AbstractContextManager, nullcontext, suppress
from contextvars import Context
from functools import partial
from itertools import accumulate
from math import inf
from types import MappingProxyType
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
"""State in the scope of a request; it exists as long as the request."""

_TAKEN = "body_bytes"
# Seconds after which a client must have reached the minimum rate.
_SLOW_SECONDS = 10.0
# The same limit where other requests would be refused for lack of memory or a place.
_SLOW_IN_THE_WAY_SECONDS = 1.0


class Senders:
    """Clients whose bodies are still arriving, in the order in which they began, and the memory of all bodies.

    While memory is free, a key with another body in memory gets more only if its bodies then take no more than is free
    now. So memory is left for others.

    Args:
        max_bodies_bytes: bytes of bodies that may be in memory. Each body counts until its request is over.
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
        """Reserve `size` bytes for a request's body; raise Refusal if there are not enough and no client gives way."""
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
        """Release the memory that a request has reserved, if any."""
        taken = state.pop(_TAKEN, 0)
        self._free += taken
        self._of[current_owner()] -= taken

    def make_room(self) -> bool:
        """Give up the oldest client that is currently slower than the minimum rate; return False if there is none."""
        for sender in self.there:
            if sender.is_in_the_way():
                sender.give_up()
                return True
        return False


class Sender:
    """A client that sends a body, used as a context manager. `came` is the number of bytes received, decompressed."""

    def __init__(self, senders: Senders, settings: Settings) -> None:
        self.came = 0
        self._senders, self._settings = senders, settings
        self._began = time.monotonic()
        # The last moment at which the client was fast enough, and the number of bytes received by then.
        self._fast_at, self._fast_came = self._began, 0
        self._in_the_way = False
        self._waiting: asyncio.Timeout | None = None

    def __enter__(self) -> "Sender":
        self._senders.there[self] = None
        return self

    def __exit__(self, *_: object) -> None:
        self._senders.there.pop(self, None)

    async def waited_for(self, receive: Callable[[], Awaitable[Message]]) -> Message:
        """Return the client's next message, a part of its body; raise Refusal if that takes too long."""
        settings, passed = self._settings, self._elapsed_seconds()
        rate = settings.min_body_rate
        # Seconds since the beginning after which the bytes received so far are too few.
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
        """Record the number of bytes received."""
        self.came += size
        now, rate = time.monotonic(), self._settings.min_body_rate
        if self.came - self._fast_came >= rate * (now - self._fast_at):
            self._fast_at, self._fast_came = now, self.came

    def is_in_the_way(self) -> bool:
        """Return whether the client is slow enough to make room for others, measured since it was last fast enough."""
        rate = self._settings.min_body_rate
        patience = max(_SLOW_IN_THE_WAY_SECONDS, (self.came - self._fast_came) / rate) if rate else inf
        return time.monotonic() - self._fast_at > patience

    def give_up(self) -> None:
        """Stop waiting for the client, as others need its place."""
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
"""Key in the state of a request: the memory that the answer holds while it is sent, if that is not its length."""


class Held(NamedTuple):
    """Memory that an answer holds while it is sent, in bytes."""

    own: int
    shared: Mapping[int, int] = MappingProxyType({})
    """Memory of maps and of datasets' rows, by their identities: it counts once, however many answers hold it."""

    @property
    def total(self) -> int:
        """All this memory."""
        return self.own + sum(self.shared.values())


# Seconds that a client may take to read a piece if other requests would be refused for lack of the memory it holds.
_SLOW_READER_SECONDS = 1.0


class NoRoom(Exception):
    """The answers being sent take all the memory reserved for answers."""


class Reader:
    """A client that reads an answer that holds memory; `abort` breaks its connection off."""

    def __init__(self, held: Held, abort: Callable[[], None] | None) -> None:
        self.held, self.abort, self.owner = held, abort, current_owner()
        self.waited_for_since = inf
        """Time since which the next piece waits for the client to read the previous one; infinity if none waits."""

    @property
    def is_in_the_way(self) -> bool:
        """Whether the client reads so slowly that it must make room for others."""
        return self.abort is not None and time.monotonic() - self.waited_for_since > _SLOW_READER_SECONDS


class Readers:
    """Clients that read long answers, and the memory of these answers.

    Args:
        most: bytes that all answers may have of their own, and as many that they may share. One is always allowed.
    """

    def __init__(self, most: int) -> None:
        self._there: dict[Reader, None] = {}
        self.most = most

    @property
    def taken(self) -> int:
        """Bytes that answers hold."""
        return sum(self._held)

    def enter(self, reader: Reader) -> None:
        """Reserve memory for an answer; raise NoRoom if there is not enough and no client gives way.

        A key that has an answer in memory gets more only if its answers then take no more than is free now.
        """
        while not self._has_room(reader):
            slow = [one for one in self._there if one.is_in_the_way]
            if not slow:
                raise NoRoom(f"the answers that are being sent take {self.taken} bytes")
            slowest = min(slow, key=lambda one: one.waited_for_since)
            logger.warning("a client that reads %d bytes slowly makes room for others", slowest.held.total)
            self.leave(slowest)
            if slowest.abort is not None:
                slowest.abort()
        if reader.owner:
            self._leave_some(reader)
        self._there[reader] = None

    def leave(self, reader: Reader) -> None:
        """Release the memory of an answer, unless that has happened already."""
        self._there.pop(reader, None)

    def _has_room(self, reader: Reader) -> bool:
        with_it = _held_by([*self._there, reader])
        return all(
            before in (0, after) or after <= self.most for before, after in zip(self._held, with_it, strict=True)
        )

    def _leave_some(self, reader: Reader) -> None:
        """Raise NoRoom if this key, which has an answer in memory, leaves too little to others."""
        of_key = [one for one in self._there if one.owner == reader.owner]
        mine, ours, after = map(_held_by, (of_key, [*of_key, reader], [*self._there, reader]))
        for n, with_it, taken, more in zip(mine, ours, self._held, after, strict=True):
            if n and more > taken and with_it > self.most - taken:
                left = f"the {self.most - taken} that are left are for others"
                raise NoRoom(f"{n} bytes are in the answers of this key; {left}")

    @property
    def _held(self) -> tuple[int, int]:
        return _held_by(self._there)


def _held_by(readers: Iterable[Reader]) -> tuple[int, int]:
    """Return the memory that answers have of their own, and that which they share or might share."""
    own, shared = 0, dict[int, int]()
    for reader in readers:
        own += reader.held.own
        shared.update(reader.held.shared)
    return own, sum(shared.values())


Result = TypeVar("Result")

# Seconds of thread time by which a key that newly begins to wait may be ahead of the others.
_AHEAD_SECONDS = 1.0
# Seconds after a key's last work during which a thread is kept free for that key.
_JUST_NOW_SECONDS = 10.0
# Threads for short calls to the store.
_STORE_THREADS = 32


class Places:
    """Places that requests hold while they last; entering raises Refusal if all are taken. Costs next to nothing.

    While places are free, a key gets one only if it holds fewer than are free. So places are left for others.

    Args:
        setting: name of the setting that limits the number of places.
        most: value of that setting.
        said: text of the refusal: what holds all places if none is free.
        make_room: makes one place free soon, if possible, and returns whether it did; that place counts as free
            already.
    """

    def __init__(self, setting: str, most: int, said: str, make_room: Callable[[], bool] = lambda: False) -> None:
        self.most = self._free = most
        self._make_room, self._of = make_room, Counter[str]()
        self._refusal = f"{most} {said}", limit(setting, most)

    @property
    def taken(self) -> int:
        """Number of places taken."""
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
    """Threads for work of one kind. A free thread goes to the waiting key that has used the least thread time.

    The last free thread is kept for other keys if the key that asks has work running and some other key worked
    recently. So other keys need not wait for this key's work. Beyond that, `spare` threads, which share the processors
    with the others, are for keys that have no work running: one that comes after a pause finds a thread at once.
    """

    def __init__(self, most: int, spare: int = 0) -> None:
        self._free, self._spare = most + spare, spare
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self.waiting = 0
        """Number of calls that wait. Read by other threads."""
        # For each key: number of running calls, seconds of thread time since work began to wait, and the time at which
        # its last call ended.
        self._running = Counter[str]()
        self._used = defaultdict[str, float](float)
        self._ended = dict[str, float]()

    async def run(self, work: Callable[[], Awaitable[Result]], left: "asyncio.Future[None] | None" = None) -> Result:
        """Run work once its turn comes; raise ClientDisconnect if `left` is done first: the client no longer waits."""
        owner = current_owner()
        if left is not None and left.done():
            raise ClientDisconnect
        if self._has_one_for(owner):
            self._take(owner)
        else:
            turn = asyncio.get_running_loop().create_future()
            if owner not in self._waiting:  # a new key is not behind the others, nor ahead for long
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
        if not self._running[owner]:
            return self._free > 0
        if self._free != self._spare + 1:
            return self._free > self._spare
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
    """Admits requests and computes for them, up to what one process can do at a time; refuses all further requests.

    The limits are `max_requests`, `max_builds`, `max_listeners`, `max_bodies_bytes`, `max_answers_bytes` and `threads`
    of `settings`. `waited` is called with the kind of thread and the seconds that work has waited for it; `part` is
    entered while something is computed.
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
        """Clients of admitted requests whose bodies are still arriving."""
        self.readers = Readers(settings.max_answers_bytes)
        """Clients that are being sent long answers."""
        self.inside = Places(
            "max_requests", settings.max_requests, "requests are in work or waiting", self.senders.make_room
        )
        """Places of requests, each of which may hold a body in memory."""
        self.builds = Places("max_builds", settings.max_builds, "maps are being built or wait to be")
        """Places of clients that wait for a map to be built; such clients take no place of a request."""
        self.listening = Places("max_listeners", settings.max_listeners, "clients listen to jobs")
        """Places of clients that watch jobs; they wait most of the time, so they take no place of a request."""
        self.places = {"requests": self.inside, "builds": self.builds, "listeners": self.listening}
        """All places, by purpose."""
        quarter = max(1, settings.max_requests // 4)
        self._files = Places("max_requests", quarter, "files are being read or wait to be, a quarter of max_requests")
        half = max(1, settings.max_connections // 2)
        # Connections on which no request waits are the ones that can make room for others, so these calls may take half
        # of them.
        self._asking = Places("max_connections", half, "calls to the store run or wait, half of max_connections")
        # Each kind has its own threads: short work does not wait for long work, calls to a store that hangs do not
        # delay the sending of answers, and jobs are submitted while others compute.
        self._turns = {waits_for: Turns(threads, spare=1) for waits_for in ("compute", "brief", "submit")}
        self._turns |= {"store": Turns(_STORE_THREADS), "file": Turns(1)}
        self._threads = anyio.CapacityLimiter(math.inf)
        self.building = Turns(1)
        """Turns to build maps in `run_by`: one at a time, as a map may take much memory."""
        self.measurements = Turns(threads)
        """Turns for diagnostics and recommendations in `run_by`."""
        self.patient = Turns(threads)
        """Turns in `run_by` for all work whose clients accept a long wait, so that it delays no other client."""

    @property
    def waiting(self) -> dict[str, int]:
        """Number of requests that wait for a thread, by the kind of thread."""
        return {waits_for: turns.waiting for waits_for, turns in self._turns.items()}

    async def compute(self, work: Callable[[], Result], brief: bool = False) -> Result:
        """Run work on a thread, once one is free. Brief work has threads of its own and never waits for long work.

        Raises:
            ClientDisconnect: the client disconnected before its turn came. Brief work is done nevertheless: it may be
                for several clients.
        """
        request, compute = REQUEST.get(), partial(self.at_once, work)
        if brief:
            return await self._run("brief", compute)
        return await self._run("compute", compute, request.left if request else None)

    async def read_file(self, work: Callable[[], Result]) -> Result:
        """Run work that waits for a process reading a file, one at a time; raise Refusal if too many wait.

        Raises:
            ClientDisconnect: the client disconnected before its turn came.
        """
        request = REQUEST.get()
        with self._files:
            return await self._run("file", partial(self.at_once, work), request.left if request else None)

    def at_once(self, work: Callable[[], Result]) -> Result:
        """Run work in the calling thread."""
        with self._part("compute"):
            return work()

    async def run_by(self, ends_at: float, places: Turns, work: Callable[[], Result]) -> Result | None:
        """Run long work on a thread, once it is its turn in `places`; return None if its turn does not come in time.

        `ends_at` is the time, on the clock `time.monotonic`, until which to wait for the turn. The work must end by
        itself.
        """
        waiting = asyncio.timeout(ends_at - time.monotonic())

        async def begin() -> Result:
            waiting.reschedule(None)
            return await anyio.to_thread.run_sync(partial(self.at_once, work), limiter=self._threads)

        try:
            async with waiting:
                return await places.run(begin)
        except TimeoutError:
            if not waiting.expired():  # the timeout comes from the work itself
                raise
            return None

    async def submit(self, work: Callable[[], Result]) -> Result:
        """Run work that hands over to a job on a thread, once one is free."""
        return await self._run("submit", work)

    async def ask(self, work: Callable[[], Result]) -> Result:
        """Run a short call to the store on a thread; raise Refusal if too many run or wait.

        Raises:
            ClientDisconnect: the client disconnected before its turn came.
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
"""Multiplications that may be done on the event loop: they take 0.3 ms or less."""
BRIEF = 1 << 26
"""Multiplications that take some milliseconds."""


def end_if_left() -> None:
    """Raise ClientDisconnect if the client of this context's request has left; a pause of work that nobody shares."""
    request = REQUEST.get()
    if request and request.left and request.left.done():
        raise ClientDisconnect


class Asked(Generic[Answer]):
    """A question whose answer is shared by all callers that ask it in one turn of the event loop, before it is sent.

    With `one_at_a_time`, callers that ask before the answer arrives share it too; the question then runs outside the
    context of any request.
    """

    def __init__(self, ask: Callable[[str], Awaitable[Answer]], one_at_a_time: bool = False) -> None:
        self._ask, self._one_at_a_time = ask, one_at_a_time
        self._coming: dict[str, asyncio.Task[Answer]] = {}

    async def __call__(self, about: str) -> Answer:
        """Return the answer about `about`; without `one_at_a_time`, the question is sent after this call."""
        coming = self._coming.get(about)
        if coming is None:
            coming = self._coming[about] = asyncio.create_task(
                self._ask_soon(about), context=Context() if self._one_at_a_time else None
            )
            coming.add_done_callback(retrieve_failure)
        return await asyncio.shield(coming)  # a caller that is cancelled does not cancel the question for others

    async def _ask_soon(self, about: str) -> Answer:
        await asyncio.sleep(0)
        if not self._one_at_a_time:
            del self._coming[about]
            return await self._ask(about)
        try:
            return await self._ask(about)
        finally:
            del self._coming[about]


def retrieve_failure(done: "asyncio.Future[Any]") -> None:
    """Retrieve the failure of a task that nobody may wait for any more, so that it is not logged."""
    if not done.cancelled():
        done.exception()


class _Request(NamedTuple):
    rows: Floats
    steps: int
    features: asyncio.Future[Array]


class Together:
    """Batcher: computes the features of small requests, in one batch those that wait for the same map.

    A request waits for at most one computation that has begun before it. It gets exactly the bits, or the refusal, that
    it would get alone. `batched` is called with the number of requests and of rows in each batch.
    """

    def __init__(self, admission: Admission, batched: Callable[[int, int], None] = lambda *_: None) -> None:
        self._admission, self._batched = admission, batched
        self._waiting: dict[tuple[FeatureMap, str], list[_Request]] = {}
        """Requests that wait for their turn, for each map and key that a batch is computed for."""
        self._work: set[asyncio.Task[None]] = set()

    async def features(self, feature_map: FeatureMap, rows: Floats, steps: int) -> Array:
        """Return the features of gated rows; `steps` is the number of multiplications they take, at most `BRIEF`."""
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
        """Compute batches until no request of this key waits for this map."""
        waiting = self._waiting[feature_map, owner]
        try:
            await asyncio.sleep(0)  # other requests of the same loop turn join the batch
            while waiting:
                steps = list(accumulate(one.steps for one in waiting))
                n = max(1, bisect_right(steps, BRIEF))
                self._batched(n, sum(len(one.rows) for one in waiting[:n]))
                compute = partial(_compute, feature_map, waiting[:n])
                admission, at_once = self._admission, steps[n - 1] <= AT_ONCE
                found = admission.at_once(compute) if at_once else await admission.compute(compute, brief=True)
                for one, features in zip(waiting[:n], found, strict=True):
                    if one.features.done():  # its client has disconnected
                        continue
                    if isinstance(features, Exception):
                        one.features.set_exception(features)
                    else:
                        one.features.set_result(features)
                del waiting[:n]
        finally:
            del self._waiting[feature_map, owner]
            for one in waiting:  # none, unless this task was cancelled
                one.features.cancel()


def _compute(feature_map: FeatureMap, batch: list[_Request]) -> list[Array | Exception]:
    """Return the features of each request, or the exception that prevented them."""
    if len(batch) > 1:
        ends = np.cumsum([len(one.rows) for one in batch])
        with suppress(Exception):  # the failure comes from one request; below, each request gets its own result
            features = feature_map.transform(np.concatenate([one.rows for one in batch]))
            return [*np.split(features, ends[:-1])]
    return [_alone(feature_map, one.rows) for one in batch]


def _alone(feature_map: FeatureMap, rows: Floats) -> Array | Exception:
    try:
        return feature_map.transform(rows)
    except Exception as error:  # raised again in the request that it belongs to
        return error
