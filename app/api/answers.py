"""Responses that carry arrays."""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack

from fastapi import Response
from fastapi.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from app.core.arrays import Answer
from app.formats import Format

logger = logging.getLogger(__name__)

# Sent in one piece, so that the rest waits while a client reads slowly.
_BYTES_PER_SEND = 1 << 20
# Smaller answers are encoded whole: that is faster than handing pieces from thread to thread.
_WHOLE_BELOW = 1 << 18


def array_response(answer: Answer, form: Format, headers: Mapping[str, str] | None = None) -> Response:
    """A response with the arrays in a format.

    A large answer is encoded piece by piece while it is sent, so that it takes little more memory than its arrays.
    """
    encoded = form.encode(answer)
    if not isinstance(encoded, list) and sum(array.nbytes for array in answer.values()) < _WHOLE_BELOW:
        encoded = [b"".join(encoded)]
    if isinstance(encoded, list):
        return _BufferResponse(encoded, form.media_type, headers)
    return StreamingResponse(encoded, headers=headers, media_type=form.media_type)


class HeldResponse(Response):
    """Sends another response. Its request counts in `Admission` until everything is sent.

    Args:
        response: what to send.
        held: what to close once it is sent, or once the client has paused too long.
        client_timeout: seconds that the client may take to read a piece.
    """

    def __init__(self, response: Response, held: AsyncExitStack, client_timeout: float) -> None:
        super().__init__()
        self._response = response
        self._held = held
        self._client_timeout = client_timeout

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the other response."""

        async def send_in_time(message: Message) -> None:
            async with asyncio.timeout(self._client_timeout):
                await send(message)

        async with self._held:
            try:
                await self._response(scope, receive, send_in_time)
            except TimeoutError:
                logger.warning("request %s: the client stopped reading", scope["state"]["request_id"])


class _BufferResponse(Response):
    """Sends buffers without copying them, with `Content-Length`."""

    def __init__(
        self, buffers: list[bytes | memoryview], media_type: str, headers: Mapping[str, str] | None = None
    ) -> None:
        length = sum(len(buffer) for buffer in buffers)
        super().__init__(None, headers={**(headers or {}), "Content-Length": str(length)}, media_type=media_type)
        self._buffers = buffers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send headers, then the buffers."""
        del scope, receive
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        for buffer in self._buffers:
            for start in range(0, len(buffer), _BYTES_PER_SEND):
                piece = buffer[start : start + _BYTES_PER_SEND]
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
