"""The sending of answers: to clients that still read, and only the head for HEAD."""

import asyncio
import logging
import time
from collections.abc import MutableMapping
from math import inf
from typing import Any

from fastapi import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.admission import HELD, NoRoom, Reader, Readers, Senders
from app.api.interest import Shutdown
from app.api.problems import limit, problem

logger = logging.getLogger(__name__)

# What of an answer may still have to be read when its request is over.
_UNREAD_BYTES = 1 << 16


class Delivery:
    """Sends the answers of an application, and gives the memory of bodies back when their requests are over.

    A client that takes more than `client_timeout` seconds to read a piece has its connection broken off, so that its
    place and memory are free: the answer ends as when a client hangs up. A server whose connections cannot be broken
    off gets TimeoutError. What the server gives up when the process ends is answered by a problem document.
    """

    def __init__(self, app: ASGIApp, client_timeout: float, shutdown: Shutdown, senders: Senders) -> None:
        self._app, self._client_timeout, self._shutdown, self._senders = app, client_timeout, shutdown, senders

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on and send its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state, has_begun = scope["state"], False

        async def deliver(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            if len(message.get("body", b"")) > _UNREAD_BYTES and not message.get("more_body", False):
                # The server waits for a client before it sends, and not after. So the end comes by itself.
                await deliver({**message, "more_body": True})
                message = {"type": "http.response.body", "body": b"", "more_body": False}
            try:
                async with asyncio.timeout(self._client_timeout):
                    await send(message)
            except TimeoutError:
                logger.warning("request %s: the client stopped reading", state["request_id"])
                if "abort" not in state:
                    raise
                state["abort"]()

        try:
            await self._app(scope, receive, deliver)
        except asyncio.CancelledError:
            if not self._shutdown.begun:
                raise
            if has_begun:
                state["abort"]()
            else:
                refusal = problem(Request(scope), "shutting-down", "the service ended before the answer was ready")
                await refusal(scope, receive, send)
        finally:
            self._senders.give_back(state)


# Shorter answers do not count: with as many connections as there may be, all together are less than a long one.
_SHORT_BYTES = 1 << 16


class Content:
    """Sends the content of an answer, or none of it to HEAD, which is answered as GET.

    Long answers count while they are sent; those that there is no memory for are refused.
    """

    def __init__(self, app: ASGIApp, readers: Readers) -> None:
        self._app, self._readers = app, readers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on and send what its client wants of the answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif scope["method"] != "HEAD":
            await self._count(scope, receive, send)
        else:
            as_get = {**scope, "method": "GET"}
            try:
                await self._count(as_get, receive, _head_sender(send))
            finally:
                scope["route"] = as_get.get("route")  # for those who look at requests from outside

    async def _count(self, scope: Scope, receive: Receive, send: Send) -> None:
        reader: Reader | None = None

        async def count_and_send(message: Message) -> None:
            nonlocal reader
            if message["type"] == "http.response.start":
                held = _answer_memory(message, scope["state"])
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
            await self._app(scope, receive, count_and_send)
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


def _answer_memory(start: Message, state: MutableMapping[str, Any]) -> int:
    """The memory of the answer that begins so."""
    if HELD in state:
        return int(state[HELD])
    return next((int(value) for name, value in start["headers"] if name == b"content-length"), 0)
