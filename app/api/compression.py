"""Answers are packed while they are sent, where their clients take that and they get shorter by it."""

import asyncio

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api import codings

# Shorter answers travel in one packet in any case.
_SHORTEST = 1 << 10
# What is packed to see whether that is worth it. Features are random numbers, of which a fourteenth is saved.
_SAMPLE = 1 << 14
_WORTH = 0.8
# Pieces that are packed without a change of thread: less than a millisecond.
_SHORT_PIECE = 1 << 14
# What must come at once, or is packed already.
_AS_IT_IS = ("text/event-stream", "image/png")
_NO_BODY = (204, 206, 304, 416)


def compressed(app: ASGIApp) -> ASGIApp:
    """Packs the answers of an application."""

    async def answered(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        await app(scope, receive, _Packing(Headers(scope=scope), send).send)

    return answered


class _Packing:
    """One answer. Its head waits for the first bytes of its body, as these decide."""

    def __init__(self, request: Headers, send: Send) -> None:
        self._send = send
        self._coding, self._insists = codings.wanted(",".join(request.getlist("accept-encoding")))
        # A part of an answer is a part of what is not packed.
        self._coding = codings.IDENTITY if "range" in request else self._coding
        self._start: Message | None = None
        self._held: list[bytes | memoryview] = []
        self._packer: codings.Packer | None = None

    async def send(self, message: Message) -> None:
        """Send on a message of the answer."""
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            if message["status"] == 304:  # it has the headers of what it stands for
                headers.add_vary_header("Accept-Encoding")
            if not _may_be_packed(message["status"], headers):
                await self._send(message)
                return
            headers.add_vary_header("Accept-Encoding")
            if self._coding == codings.IDENTITY:
                await self._send(message)
            else:
                self._start = message
        elif message["type"] != "http.response.body":
            await self._send(message)
        elif self._start is not None:
            await self._decide(message)
        else:
            await self._pass(message.get("body", b""), message.get("more_body", False))

    async def _decide(self, message: Message) -> None:
        """Hold the body back until there is a sample of it, and then send what there is."""
        more = message.get("more_body", False)
        self._held.append(message.get("body", b""))
        if self._start is None or (more and sum(map(len, self._held)) < _SAMPLE):
            return
        start, self._start, held, self._held = self._start, None, self._held, []
        sample = b"".join(bytes(piece[:_SAMPLE]) for piece in held)[-_SAMPLE:]
        if self._insists or self._is_worth(sample):
            headers = MutableHeaders(scope=start)
            headers["Content-Encoding"] = self._coding
            del headers["Content-Length"], headers["Accept-Ranges"]
            if headers.get("etag", "").endswith('"') and not headers["etag"].startswith("W/"):
                headers["ETag"] = f'{headers["etag"][:-1]}-{self._coding}"'
            self._packer = codings.PACKERS[self._coding]()
        await self._send(start)
        for piece in held[:-1]:
            await self._pass(piece, True)
        await self._pass(held[-1], more)

    def _is_worth(self, sample: bytes) -> bool:
        packer = codings.PACKERS[self._coding]()
        return len(sample) > 0 and len(packer.compress(sample) + packer.flush()) < _WORTH * len(sample)

    async def _pass(self, piece: bytes | memoryview, more: bool) -> None:
        """Send on a piece of the body."""
        if self._packer is not None:
            packer = self._packer

            def pack() -> bytes:
                return packer.compress(piece) + (b"" if more else packer.flush())

            piece = pack() if len(piece) <= _SHORT_PIECE else await asyncio.to_thread(pack)
        if piece or not more or self._packer is None:
            await self._send({"type": "http.response.body", "body": piece, "more_body": more})


def _may_be_packed(status: int, headers: Headers) -> bool:
    """Whether an answer is of a kind that is packed, if its client takes that."""
    length = headers.get("content-length", "")
    return (
        status not in _NO_BODY
        and "content-encoding" not in headers
        and not headers.get("content-type", "").startswith(_AS_IT_IS)
        and not (length.isdecimal() and int(length) < _SHORTEST)
    )
