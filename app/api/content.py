"""The content of answers: how much of it is sent, and the memory that it takes meanwhile."""

import time
from collections.abc import MutableMapping
from math import inf
from typing import Any

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.problems import limit, problem
from app.api.ranges import part_sender
from app.api.readers import HELD, NoRoom, Reader, Readers

# Shorter answers do not count: with as many connections as there may be, all together are less than a long one.
_SHORT_BYTES = 1 << 16


class Content:
    """Sends all content of an answer, the part that `Range` names, or none of it to HEAD, which is answered as GET.

    Long answers count while they are sent; those that there is no memory for are refused.
    """

    def __init__(self, app: ASGIApp, readers: Readers) -> None:
        self._app, self._readers = app, readers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on and send what its client wants of the answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif scope["method"] != "HEAD":
            await self._count(scope, receive, part_sender(scope, receive, send))
        else:
            as_get = {**scope, "method": "GET"}
            try:
                await self._count(as_get, receive, _head_sender(send))
            finally:
                scope["route"] = as_get.get("route")  # for those who look at requests from outside

    async def _count(self, scope: Scope, receive: Receive, send: Send) -> None:
        reader: Reader | None = None

        async def send_counted(message: Message) -> None:
            nonlocal reader
            if message["type"] == "http.response.start":
                held = _held(message, scope["state"])
                if held > _SHORT_BYTES:
                    entering = Reader(held, scope["state"].get("abort"))
                    self._readers.enter(entering)
                    reader = entering
            if reader is None:
                await send(message)
                return
            reader.waited_for_since = time.monotonic()
            await send(message)
            reader.waited_for_since = inf

        try:
            await self._app(scope, receive, send_counted)
        except NoRoom as full:
            most = limit("max_answers_bytes", self._readers.most)
            await problem(Request(scope), "overloaded", str(full), **most)(scope, receive, send)
        finally:
            if reader is not None:
                self._readers.leave(reader)


def _head_sender(send: Send) -> Send:
    """What sends the head of an answer, and then its end, which tells its maker that no more is wanted."""

    async def send_head(message: Message) -> None:
        if message["type"] == "http.response.start":
            await send(message)
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    return send_head


def _held(start: Message, state: MutableMapping[str, Any]) -> int:
    """The memory of the answer that begins so."""
    if HELD in state:
        return int(state[HELD])
    return next((int(value) for name, value in start["headers"] if name == b"content-length"), 0)
