"""Arrays as answers: whole where they are small, else in pieces, each of which is made while the one before is sent."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from functools import partial

from fastapi import Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from app.api.admission import HELD, Admission
from app.api.interest import hung_up
from app.api.negotiation import Wanted
from app.core.answers import Answer, dtype_of, held_bytes
from app.formats.base import Encoded

WARNING = "Bochner-Warning"
"""The header of an answer that tells what is doubtful about it."""

Piece = bytes | memoryview

# Sent in one piece, each of which a client has time for: who reads slowly but steadily is not given up.
_BYTES_PER_SEND = 1 << 18
# Smaller answers are encoded whole: that is faster than handing pieces from thread to thread.
_WHOLE_BELOW = 1 << 18


def array_response(
    answer: Answer, wanted: Wanted, admission: Admission, warnings: Sequence[str] = (), tag: str = ""
) -> Response:
    """A response with the arrays, in the format and dtype that the client wants, warnings about them, and their ETag.

    A large answer is encoded while it is sent, so that it takes little more memory than its arrays, or than two blocks
    where these are made while they are sent. When the client leaves, the rest is not made. Should making it fail, the
    connection is closed before the answer is whole.

    Raises:
        Refusal: the client takes no dtype that there is.
        OutOfRange: numbers are too large for the dtype that the client takes.
    """
    form, dtype = wanted.choose(dtype_of(answer))
    encoded, headers = form.encode(answer, dtype, warnings), {"Vary": "Accept"} | warning_headers(warnings)
    if tag:
        headers["ETag"] = tag
    return encoded_response(encoded, answer, form.media_type, headers, admission)


def encoded_response(
    encoded: Encoded, answer: Answer, media_type: str, headers: dict[str, str], admission: Admission
) -> Response:
    """A response with arrays that are encoded, whole or in pieces as `array_response` sends them."""
    is_small = sum(array.nbytes for array in answer.values()) < _WHOLE_BELOW
    if headers.get("ETag", "").startswith('"') and (is_small or encoded.nbytes is not None):
        headers["Accept-Ranges"] = "bytes"
    if is_small:
        return Response(b"".join(encoded.pieces), headers=headers, media_type=media_type)
    if encoded.nbytes is not None:
        headers["Content-Length"] = str(encoded.nbytes)
    held = held_bytes(answer)
    if isinstance(encoded.pieces, list):
        return _Ready(encoded.pieces, held, headers, media_type)
    return _Streamed(_made(encoded.pieces, admission), held, headers, media_type)


def warning_headers(warnings: Sequence[str]) -> dict[str, str]:
    """The header that tells warnings, which are lines of ASCII; none if there are none."""
    return {WARNING: "; ".join(warnings)} if warnings else {}


class _Ready(Response):
    """Pieces that are there, sent without a copy. Unlike `StreamingResponse` it watches for no hang-up."""

    def __init__(self, pieces: list[Piece], held: int, headers: dict[str, str], media_type: str) -> None:
        super().__init__(headers=headers, media_type=media_type)
        self._pieces, self._held = pieces, held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del receive
        scope["state"][HELD] = self._held
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        for piece in self._pieces:
            for part in _cut(piece):
                await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


class _Streamed(StreamingResponse):
    """Pieces that are made while others are sent, and let go of as soon as the client has gone.

    The way in which `StreamingResponse` ends then leaves exceptions and frames that refer to each other, and through
    them to the last pieces and the request.
    """

    def __init__(self, pieces: AsyncGenerator[Piece], held: int, headers: dict[str, str], media_type: str) -> None:
        super().__init__(pieces, headers=headers, media_type=media_type)
        self._pieces, self._held = pieces, held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"][HELD] = self._held
        gone = asyncio.create_task(hung_up(receive))
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            async for piece in self._pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
                if gone.done():
                    return
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            gone.cancel()
            await self._pieces.aclose()


async def _made(pieces: Iterator[Piece], admission: Admission) -> AsyncGenerator[Piece]:
    """The pieces, each of which is made on a thread while the one before is sent."""
    make = partial(admission.compute, partial(next, pieces, None))
    coming = asyncio.create_task(make())
    try:
        while (piece := await coming) is not None:
            coming = asyncio.create_task(make())
            for part in _cut(piece):
                yield part
    finally:
        coming.cancel()


def _cut(piece: Piece) -> Iterator[Piece]:
    """A piece in smaller ones, none of which is copied."""
    whole = memoryview(piece)
    return (whole[start : start + _BYTES_PER_SEND] for start in range(0, len(whole), _BYTES_PER_SEND))
