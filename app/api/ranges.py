"""Parts of answers (RFC 9110, 14): who has lost the connection goes on from where it was."""

import re
from typing import Any

from fastapi import Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import Message, Receive, Scope, Send

from app.api.answer_headers import headers
from app.api.codings import UNCOMPRESSED
from app.api.problems import problem

_RANGE = re.compile(r"bytes *= *(\d{0,30}) *- *(\d{0,30})", re.IGNORECASE)


def _parameter(name: str, described: str) -> dict[str, Any]:
    return {"name": name, "in": "header", "required": False, "description": described, "schema": {"type": "string"}}


PARTIAL: dict[str, Any] = {
    "parameters": [
        _parameter("Range", "`bytes=first-last`, `bytes=first-` or `bytes=-last`: one part of the answer, for 206."),
        _parameter("If-Range", "ETag of the answer that the part is of; if it is another by now, all of it comes."),
    ]
}
"""What the document says of a request whose answer may come in parts."""
PARTS: dict[int | str, dict[str, Any]] = {
    206: {"description": "The part that `Range` names.", **headers("ETag", "Content-Range", "Accept-Ranges", "Vary")},
    416: {"description": "`Range` names no part of the answer.", **headers("Content-Range")},
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
