"""What happens to every request before its route is called, and to its answer."""

import asyncio
import logging
import re
import secrets

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.problems import problem
from app.api.senders import Senders
from app.api.shutdown import Shutdown

logger = logging.getLogger(__name__)

# What of an answer may still have to be read when its request is over.
_UNREAD_BYTES = 1 << 16
MOST_LOGGED = 300
"""Characters of anything in a line of the log."""
_ACCEPTED = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}")


def shortened(record: logging.LogRecord) -> bool:
    """Filter a log of requests: an address may have 64 KiB, and three times that when it is escaped."""
    if isinstance(record.args, tuple):
        record.args = tuple(one[:MOST_LOGGED] if isinstance(one, str) else one for one in record.args)
    return True


def new_request_id() -> str:
    """An id for a request whose client gave none."""
    return secrets.token_hex(8)


def request_id(app: ASGIApp) -> ASGIApp:
    """Gives every request an id, that of the client in X-Request-ID or a new one, and sends it back."""

    async def identified(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        came = Headers(scope=scope).get("x-request-id", "")
        given = came if _ACCEPTED.fullmatch(came) else new_request_id()
        scope.setdefault("state", {})["request_id"] = given

        async def named(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["X-Request-ID"] = given
            await send(message)

        await app(scope, receive, named)

    return identified


def asked_again(app: ASGIApp) -> ASGIApp:
    """Has caches ask again before they use what they have kept, unless the answer itself says what they may do.

    Names may stand for other things by now, and what one key may see is not for who has none.
    """

    async def answered(scope: Scope, receive: Receive, send: Send) -> None:
        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).setdefault("Cache-Control", "no-cache")
            await send(message)

        is_kept = scope["type"] == "http" and scope["method"] in ("GET", "HEAD")
        await app(scope, receive, told if is_kept else send)

    return answered


def head_as_get(app: ASGIApp) -> ASGIApp:
    """Answers HEAD as GET, without the body: the answer ends with its head, and nothing more of it is made."""

    async def answered(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_head(message: Message) -> None:
            if message["type"] == "http.response.start":
                await send(message)
                # The end of an answer is what tells its maker that its client wants no more.
                await send({"type": "http.response.body", "body": b"", "more_body": False})

        if scope["type"] == "http" and scope["method"] == "HEAD":
            as_get = {**scope, "method": "GET"}
            try:
                await app(as_get, receive, send_head)
            finally:
                scope["route"] = as_get.get("route")  # for those who look at requests from outside
        else:
            await app(scope, receive, send)

    return answered


def ended_in_time(app: ASGIApp, shutdown: Shutdown) -> ASGIApp:
    """Answers by a problem document what the server gives up when the process is to end and the time for it is over."""

    async def answered(scope: Scope, receive: Receive, send: Send) -> None:
        has_begun = False

        async def noted(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await app(scope, receive, noted)
        except asyncio.CancelledError:
            if not shutdown.begun:
                raise
            if has_begun:
                scope["state"]["abort"]()
            else:
                refusal = problem(Request(scope), "shutting-down", "the service ended before the answer was ready")
                await refusal(scope, receive, send)

    return answered


def given_back(app: ASGIApp, senders: Senders) -> ASGIApp:
    """Gives back the memory of the body of each request that is over."""

    async def answered(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)
        finally:
            senders.give_back(scope["state"])

    return answered


def sent_in_time(app: ASGIApp, client_timeout: float) -> ASGIApp:
    """Breaks a connection off whose client takes more seconds to read a piece of its answer.

    Its place and its memory are then free: the answer ends as when a client hangs up. A server whose connections
    cannot be broken off gets TimeoutError.
    """

    async def answered(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_in_time(message: Message) -> None:
            if len(message.get("body", b"")) > _UNREAD_BYTES and not message.get("more_body", False):
                # The server waits for a client before it sends, and not after. So the end comes by itself.
                await send_in_time({**message, "more_body": True})
                message = {"type": "http.response.body", "body": b"", "more_body": False}
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
