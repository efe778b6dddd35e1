"""Arrays as responses."""

from collections.abc import Mapping

from fastapi import Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from app.formats import Answer, Format

# Sent at a time, so that a client that reads slowly holds back the rest.
_BYTES_PER_SEND = 1 << 20
# Below this, encoding at once beats handing pieces from thread to thread.
_WHOLE_BELOW = 1 << 18


def array_response(answer: Answer, form: Format, headers: Mapping[str, str] | None = None) -> Response:
    """A response with the arrays.

    What takes encoding is encoded piece by piece while it is sent, unless it is small, so a response takes little more
    memory than its arrays.
    """
    encoded = form.encode(answer)
    if not isinstance(encoded, list) and sum(array.nbytes for array in answer.values()) < _WHOLE_BELOW:
        encoded = [b"".join(encoded)]
    if isinstance(encoded, list):
        return _BufferResponse(encoded, form.media_type, headers)
    return StreamingResponse(encoded, headers=headers, media_type=form.media_type)


class _BufferResponse(Response):
    """Buffers sent as they lie in memory, with their length announced."""

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
