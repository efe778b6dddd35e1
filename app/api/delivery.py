"""Sends answers, to clients that read them, until the service ends."""

import asyncio
import logging

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.problems import problem
from app.api.senders import Senders
from app.api.shutdown import Shutdown

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
