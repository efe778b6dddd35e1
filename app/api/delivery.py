"""The sending of answers: to whoever still reads, in parts, and only the head where that is asked for."""

import asyncio
import logging
import re
import time
from collections.abc import MutableMapping
from math import inf
from typing import Any

from fastapi import Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.admission import HELD, NoRoom, Reader, Readers, Senders
from app.api.bodies import UNCOMPRESSED
from app.api.etags import IF_NONE_MATCH, NOT_MODIFIED
from app.api.interest import Shutdown
from app.api.problems import limit, problem
from app.api.schemas import headers, taking

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


_RANGE = re.compile(r"bytes *= *(\d{0,30}) *- *(\d{0,30})", re.IGNORECASE)


PARTIAL = taking(
    {
        **IF_NONE_MATCH,
        "Range": "`bytes=first-last`, `bytes=first-` or `bytes=-last`: one part of the answer, for 206.",
        "If-Range": "ETag of the answer that the part is of; if it is another by now, all of it comes.",
    }
)
"""What the document says of a request whose answer may be kept, and may come in parts."""
PARTS: dict[int | str, dict[str, Any]] = {
    206: {"description": "The part that `Range` names.", **headers("ETag", "Content-Range", "Accept-Ranges", "Vary")},
    416: {"description": "`Range` names no part of the answer.", **headers("Content-Range")},
    **NOT_MODIFIED,
}
"""And of these answers."""


def part_sender(scope: Scope, receive: Receive, send: Send) -> Send:
    """What sends the part of an answer that its client asks for; `send` itself where it asks for none.

    Only answers that say in `Accept-Ranges` that they have parts are cut. What stands before the part is made too, and
    dropped; what stands behind it is not. Several parts at once are not sent: the answer comes whole then, as for a
    client whose `Range` cannot be read.
    """
    asked = Headers(scope=scope).get("range") if scope["method"] == "GET" else None
    found = _RANGE.fullmatch(asked.strip()) if asked else None
    if found is None or not any(found.groups()):
        return send
    first, last = (int(one) if one else None for one in found.groups())
    return _Part(scope, receive, send, first, last).send


class _Part:
    """One answer, of which a part is sent."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, first: int | None, last: int | None) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self._asked = first, last
        # Bytes that are still to be dropped, and then to be sent; None for all.
        self._before = 0
        self._left: int | None = None
        self._is_over = False

    async def send(self, message: Message) -> None:
        """Send on what belongs to the part."""
        if self._is_over:
            return
        if message["type"] == "http.response.start":
            await self._begin(message)
        elif self._left is None:
            await self._send(message)
        else:
            await self._cut(message)

    async def _begin(self, start: Message) -> None:
        told = MutableHeaders(scope=start)
        length = int(told.get("content-length", "0"))
        whole = start["status"] != 200 or told.get("accept-ranges") != "bytes" or not self._goes_on(told)
        first, last = _within(*self._asked, length)
        if not whole and first >= length:
            self._is_over = True
            detail = f"a part from byte {first} on is wanted; the answer has {length}" if length else "there is nothing"
            content_range = {"Content-Range": f"bytes */{length}"}
            refusal = problem(Request(self._scope), "range-not-satisfiable", detail, headers=content_range)
            await refusal(self._scope, self._receive, self._send)
            return
        if not whole and first <= last:
            start = {**start, "status": 206}
            told["Content-Range"] = f"bytes {first}-{last}/{length}"
            told["Content-Length"] = str(last - first + 1)
            self._before, self._left = first, last - first + 1
        await self._send({**start, "headers": told.raw})

    def _goes_on(self, told: Headers) -> bool:
        """Whether what the client has, if it says so, is a part of this answer as it is, and not of it compressed."""
        asked = Headers(scope=self._scope)
        if "if-range" not in asked:
            return True
        was_compressed = "gzip" in asked.get("accept-encoding", "") and told.get("content-type") not in UNCOMPRESSED
        return asked["if-range"] == told.get("etag") and not was_compressed

    async def _cut(self, message: Message) -> None:
        piece = memoryview(message.get("body", b""))
        dropped = min(self._before, len(piece))
        self._before -= dropped
        piece = piece[dropped : dropped + (self._left or 0)]
        self._left = (self._left or 0) - len(piece)
        # The end of an answer is what tells its maker that no more is wanted.
        self._is_over = self._left == 0 or not message.get("more_body", False)
        if piece or self._is_over:
            await self._send({"type": "http.response.body", "body": piece, "more_body": not self._is_over})


def _within(first: int | None, last: int | None, length: int) -> tuple[int, int]:
    """The first and last byte that are wanted of so many; a first one that is not there where there is no such part."""
    if first is None:
        return (max(0, length - (last or 0)), length - 1) if last else (length, length)
    return first, length - 1 if last is None else min(last, length - 1)


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
