"""What happens to every request before its route is called, and to its answer."""

import asyncio
import logging
import re
import secrets

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

logger = logging.getLogger(__name__)

_ACCEPTED = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}")


def request_id(app: ASGIApp) -> ASGIApp:
    """Gives every request an id, that of the client in X-Request-ID or a new one, and sends it back."""

    async def identified(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        came = Headers(scope=scope).get("x-request-id", "")
        given = came if _ACCEPTED.fullmatch(came) else secrets.token_hex(8)
        scope.setdefault("state", {})["request_id"] = given

        async def named(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["X-Request-ID"] = given
            await send(message)

        await app(scope, receive, named)

    return identified


def head_as_get(app: ASGIApp) -> ASGIApp:
    """Answers HEAD as GET. The server leaves out the body."""

    async def answered(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "HEAD":
            scope = {**scope, "method": "GET"}
        await app(scope, receive, send)

    return answered


def sent_in_time(app: ASGIApp, client_timeout: float) -> ASGIApp:
    """Breaks a connection off whose client takes more seconds to read a piece of its answer.

    Its place and its memory are then free: the answer ends as when a client hangs up. A server whose connections
    cannot be broken off gets TimeoutError.
    """

    async def answered(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_in_time(message: Message) -> None:
            try:
                async with asyncio.timeout(client_timeout):
                    await send(message)
            except TimeoutError:
                state = scope["state"]
                logger.warning("request %s: the client stopped reading", state["request_id"])
                if "abort" not in state:
                    raise
                state["abort"]()

        await app(scope, receive, send_in_time)

    return answered
