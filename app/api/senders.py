"""Clients that send bodies: how long each may take, and who makes room for others."""

import asyncio
import time
from collections.abc import Awaitable, Callable, MutableMapping
from math import inf
from typing import Any

from starlette.types import Message

from app.api.problems import Refusal, limit
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

    Args:
        max_bodies_bytes: bytes of bodies that may be in memory. Each counts until its request is over.
    """

    def __init__(self, max_bodies_bytes: int) -> None:
        self.there: dict[Sender, None] = {}
        self._most = self._free = max_bodies_bytes

    @property
    def taken(self) -> int:
        """Bytes of bodies that are in memory."""
        return self._most - self._free

    def take(self, state: State, size: int) -> None:
        """Take memory for so many bytes of the body of a request; Refusal if there is none, and nobody makes room."""
        if size > self._free and not self.make_room():
            detail = f"the bodies of all requests take {self._most - self._free} bytes"
            raise Refusal("overloaded", detail, **limit("max_bodies_bytes", self._most))
        self._free -= size
        state[_TAKEN] = state.get(_TAKEN, 0) + size

    def give_back(self, state: State) -> None:
        """Give back what a request has taken. Nothing happens if it has taken nothing."""
        self._free += state.pop(_TAKEN, 0)

    def make_room(self) -> bool:
        """Give up the oldest of those that are slower than the least rate just now; False if none is."""
        for sender in self.there:
            if sender.is_in_the_way():
                sender.give_up()
                return True
        return False


class Sender:
    """A client that sends a body, within a with block. `came` is how many bytes of it have come."""

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
        settings, passed = self._settings, self._passed()
        seconds, name = min(
            (settings.client_timeout, "client_timeout"),
            (settings.body_timeout - passed, "body_timeout"),
            (self._in_time() - passed, "min_body_rate"),
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

    def _passed(self) -> float:
        return time.monotonic() - self._began

    def _in_time(self) -> float:
        """Seconds from its beginning after which what has come is too little."""
        rate = self._settings.min_body_rate
        return max(_SLOW_SECONDS, self.came / rate) if rate else inf

    def _refusal(self, name: str) -> Refusal:
        value = getattr(self._settings, name)
        wanted = {
            "client_timeout": f"then none for {value:g}",
            "body_timeout": f"and not all in {value:g}",
            "min_body_rate": f"fewer than {value:g} a second" + (", and others wait" if self._in_the_way else ""),
        }
        detail = f"{self.came} bytes came in {self._passed():.1f} seconds, {wanted[name]}"
        return Refusal("request-timeout", detail, **limit(name, value))
