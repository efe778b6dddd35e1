"""Sees every request and its answer, from outside: gives it an id, counts it, and writes its line of the log."""

import asyncio
import logging
import re
import secrets
import time
from collections.abc import MutableMapping
from ipaddress import ip_address
from math import inf
from time import perf_counter
from typing import Any
from urllib.parse import quote

from fastapi import Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.admission import HELD, NoRoom, Reader, Readers, Senders
from app.api.interest import Shutdown
from app.api.problems import limit, problem
from app.logs import ACCESS, FIELDS
from app.metrics import Meters
from app.request_context import REQUEST, RequestContext, Spans
from app.settings import Settings
from app.store.keys import hidden

logger = logging.getLogger(ACCESS)

MOST_LOGGED = 300
"""Characters of anything in a line of the log."""
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}")
_TRACEPARENT = re.compile(rb"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_PROBED = ("/health/", "/v2/health/", "/metrics")
_NOBODY_WAITS = 499
"""What nginx logs for a client that left before its answer."""


def route_of(scope: Scope) -> str:
    """The address of the call that a request was led to, with names in the place of what differs; "" for none."""
    direct = scope.get("direct")
    if direct is not None:
        return f"/v1/maps/{{name}}/{direct[1]}"
    return getattr(scope.get("route"), "path", "")


def new_request_id() -> str:
    """An id for a request whose client gave none."""
    return secrets.token_hex(8)


def shorten_addresses(record: logging.LogRecord) -> bool:
    """Filter a log of requests: an address may have 64 KiB, and three times that when it is escaped.

    And a client may write its key into it by mistake.
    """
    if isinstance(record.args, tuple):
        record.args = tuple(hidden(one)[:MOST_LOGGED] if isinstance(one, str) else one for one in record.args)
    return True


class Observation:
    """Observes the requests of an application.

    Each has an id, that of its client in X-Request-ID or a new one, which its answer repeats. Caches are to ask again
    before they use what they keep, unless an answer says otherwise: names may stand for other things by now, and what
    one key may see is not for those without one. No page is shown within one of another site.
    """

    def __init__(self, app: ASGIApp, meters: Meters, spans: Spans, settings: Settings) -> None:
        self._app, self._meters, self._spans, self._settings = app, meters, spans, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on and count what comes of it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, meters = perf_counter(), self._meters
        request = RequestContext(_request_id(scope), _traceparent(scope), left=scope["state"].get("left"))
        request.prefix = scope["state"].get("prefix", self._settings.root_path)
        method: str = scope["method"]
        exchange = _Exchange(receive, send, request, method in ("GET", "HEAD"))
        known = {"http.request.method": method, "url.path": hidden(scope["path"]), "url.scheme": scope["scheme"]}
        meters.in_flight += 1
        with self._spans.request(method, known, request) as tell:
            # To the end of its task: what fails is logged outside of this.
            REQUEST.set(request)
            try:
                await self._app(scope, exchange.receive, exchange.send)
            except Exception:
                exchange.status = exchange.status or 500  # which is answered outside of all middleware
                raise
            finally:
                meters.in_flight -= 1
                took, route, status = perf_counter() - began, route_of(scope), exchange.status or _NOBODY_WAITS
                meters.request(method, route, status, took, request.rows, exchange.came, exchange.sent)
                tell(known | _answer_attributes(route, status))
                is_logged = self._settings.log_probes or status >= 400 or not scope["path"].startswith(_PROBED)
                if is_logged and logger.isEnabledFor(logging.INFO):
                    counts = {"route": route, "seconds": round(took, 6)}
                    counts |= {"bytes_in": exchange.came, "bytes_out": exchange.sent}
                    _log(scope, status, counts | ({"rows": request.rows} if request.rows else {}))


class _Exchange:
    """A request and its answer: counts their bytes, and adds the headers that every answer has."""

    def __init__(self, receive: Receive, send: Send, request: RequestContext, may_be_kept: bool) -> None:
        self._receive, self._send, self._request, self._may_be_kept = receive, send, request, may_be_kept
        self._has_begun = False
        self.status = self.came = self.sent = 0

    async def receive(self) -> Message:
        message = await self._receive()
        self.came += len(message.get("body", b""))
        if message["type"] == "http.disconnect" and not self._has_begun:
            self.status = _NOBODY_WAITS
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["X-Request-ID"] = self._request.request_id
            if headers.get("content-type", "").startswith("text/html"):
                headers.setdefault("Content-Security-Policy", "frame-ancestors 'none'")
            if self._may_be_kept:
                headers.setdefault("Cache-Control", "no-cache")
            if self._request.traceparent:
                headers["traceparent"] = self._request.traceparent
        await self._send(message)
        if message["type"] == "http.response.start":
            self._has_begun = True
            self.status = self.status or message["status"]
        else:
            self.sent += len(message.get("body", b""))


def _request_id(scope: Scope) -> str:
    """The id that came, or a new one; in the state of the request from here on."""
    came = Headers(scope=scope).get("x-request-id", "")
    given = came if _REQUEST_ID.fullmatch(came) else new_request_id()
    scope.setdefault("state", {})["request_id"] = given
    return given


def _answer_attributes(route: str, status: int) -> dict[str, str | int]:
    """Attributes of the span of an answer, by the names of OpenTelemetry."""
    failed = {"error.type": str(status)} if status >= 500 else {}
    return {"http.response.status_code": status, **({"http.route": route} if route else {}), **failed}


def _traceparent(scope: Scope) -> str:
    """The header of this name; empty where none came that can be read."""
    came = [value for name, value in scope["headers"] if name == b"traceparent"]
    return came[0].decode() if len(came) == 1 and _TRACEPARENT.fullmatch(came[0]) else ""


def address_of(scope: Scope) -> str:
    """The client's address and port. What a proxy that is trusted repeats of it, and is no address, is not believed."""
    host, port = scope["client"] or ("", 0)
    try:
        return f"{ip_address(host.partition('%')[0])}:{port}"  # behind the mark an address may have anything
    except ValueError:
        return "unknown"


def _log(scope: Scope, status: int, seen: dict[str, object]) -> None:
    """Write the line of a request that is over."""
    method, path, version = scope["method"], quote(scope["path"]), scope["http_version"]
    client = address_of(scope)
    key = scope["state"].get("key")
    fields = {"method": method, "path": path[:MOST_LOGGED], "status": status, **seen, "client": client}
    if key is not None:
        fields |= {"key": key.name, "key_id": key.id}
    if scope["query_string"]:
        path += "?" + scope["query_string"].decode("ascii", "backslashreplace")
    logger.info('%s - "%s %s HTTP/%s" %d', client, method, path, version, status, extra={FIELDS: fields})


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


# Shorter answers do not count: with as many connections as there may be, all together are less than a long one.
_SHORT_BYTES = 1 << 16


class Content:
    """Sends the content of an answer, or none of it to HEAD, which is answered as GET.

    Long answers count while they are sent; those that there is no memory for are refused.
    """

    def __init__(self, app: ASGIApp, readers: Readers) -> None:
        self._app, self._readers = app, readers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on and send what its client wants of the answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif scope["method"] != "HEAD":
            await self._count(scope, receive, send)
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
