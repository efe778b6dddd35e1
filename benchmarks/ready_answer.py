"""The least that a service can do: read a request, and answer it with bytes that are there. For what a network costs.

`uvicorn benchmarks.ready_answer:app`, with the size of the answer in the environment variable ANSWER_BYTES.
"""

import os

from starlette.types import Receive, Scope, Send

ANSWER = memoryview(bytes(int(os.environ["ANSWER_BYTES"])))
_BYTES_PER_SEND = 1 << 18


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer any request."""
    if scope["type"] != "http":
        return
    while (await receive()).get("more_body"):
        pass
    headers = [(b"content-length", str(len(ANSWER)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for start in range(0, len(ANSWER), _BYTES_PER_SEND):
        piece = ANSWER[start : start + _BYTES_PER_SEND]
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})
