"""Outermost layers around the application: request ids, counts, the request log, delivery and counting of answers."""

import asyncio
import logging
import re
import secrets
import time
from collections.abc import MutableMapping
from ipaddress import ip_address
from math import inf
from time import perf_counter
from typing import Any, cast
from urllib.parse import quote

from fastapi import Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.admission import HELD, Held, NoRoom, Reader, Readers, Senders
from app.api.interest import Shutdown
from app.api.problems import limit, problem
from app.logs import ACCESS, FIELDS
from app.metrics import Meters
from app.request_context import REQUEST, RequestContext, Spans
from app.settings import Settings
from app.store.keys import hidden

logger = logging.getLogger(__name__)
_access = logging.getLogger(ACCESS)  # whose lines have a form of their own

MOST_LOGGED = 300
"""Most characters of any value in a line of the log."""
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}")
_TRACEPARENT = re.compile(rb"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_PROBED = ("/health/", "/v2/health/", "/metrics")
_NOBODY_WAITS = 499
"""Status for a client that disconnected before its answer, as logged by nginx."""


def route_of(scope: Scope) -> str:
    """Return the path template of the route of a request, such as /v1/maps/{name}; "" if there is no route."""
    direct = scope.get("direct")
    if direct is not None:
        return f"/v1/maps/{{name}}/{direct[1]}"
    return getattr(scope.get("route"), "path", "")


def new_request_id() -> str:
    """Return an id for a request whose client sent none."""
    return secrets.token_hex(8)


def shorten_addresses(record: logging.LogRecord) -> bool:
    """Truncate addresses in a log of requests: an address may have 64 KiB, and three times as much when it is escaped.

    Keys are hidden too, as a client may write its key into an address by mistake.
    """
    if isinstance(record.args, tuple):
        record.args = tuple(hidden(one)[:MOST_LOGGED] if isinstance(one, str) else one for one in record.args)
    return True


class Observation:
    """Observes the requests of an application: identifies, counts and logs them.

    Each request has an id, sent by its client in X-Request-ID or new, which its answer repeats. Caches must revalidate
    what they store, unless an answer says otherwise: a name may refer to a new thing by now, and an answer for one key
    must not reach clients without it. No page may be embedded in a page of another site.
    """

    def __init__(self, app: ASGIApp, meters: Meters, spans: Spans, settings: Settings) -> None:
        self._app, self._meters, self._spans, self._settings = app, meters, spans, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and record its outcome."""
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
            # Set until the end of the task, as failures are logged outside of this block.
            REQUEST.set(request)
            try:
                await self._app(scope, exchange.receive, exchange.send)
            except Exception:
                exchange.status = exchange.status or 500  # failures are answered outside of all middleware
                raise
            finally:
                meters.in_flight -= 1
                took, route, status = perf_counter() - began, route_of(scope), exchange.status or _NOBODY_WAITS
                meters.request(method, route, status, took, request.rows, exchange.came, exchange.sent)
                tell(known | _answer_attributes(route, status))
                is_logged = self._settings.log_probes or status >= 400 or not scope["path"].startswith(_PROBED)
                if is_logged and _access.isEnabledFor(logging.INFO):
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
    """Return the request id that was sent, or a new one, and store it in the state of the request."""
    came = Headers(scope=scope).get("x-request-id", "")
    given = came if _REQUEST_ID.fullmatch(came) else new_request_id()
    scope.setdefault("state", {})["request_id"] = given
    return given


def _answer_attributes(route: str, status: int) -> dict[str, str | int]:
    """Return attributes of the span of an answer, by their OpenTelemetry names."""
    failed = {"error.type": str(status)} if status >= 500 else {}
    return {"http.response.status_code": status, **({"http.route": route} if route else {}), **failed}


def _traceparent(scope: Scope) -> str:
    """Return the header `traceparent`; empty if there is none or it is malformed."""
    came = [value for name, value in scope["headers"] if name == b"traceparent"]
    return came[0].decode() if len(came) == 1 and _TRACEPARENT.fullmatch(came[0]) else ""


def address_of(scope: Scope) -> str:
    """Return the client's address and port; "unknown" if a trusted proxy forwards something that is not an address."""
    host, port = scope["client"] or ("", 0)
    try:
        return f"{ip_address(host.partition('%')[0])}:{port}"  # a zone id, after the mark %, may be any text
    except ValueError:
        return "unknown"


def _log(scope: Scope, status: int, seen: dict[str, object]) -> None:
    """Write the log line of a finished request."""
    method, path, version = scope["method"], quote(scope["path"]), scope["http_version"]
    client = address_of(scope)
    key = scope["state"].get("key")
    fields = {"method": method, "path": path[:MOST_LOGGED], "status": status, **seen, "client": client}
    if key is not None:
        fields |= {"key": key.name, "key_id": key.id}
    if scope["query_string"]:
        path += "?" + scope["query_string"].decode("ascii", "backslashreplace")
    _access.info('%s - "%s %s HTTP/%s" %d', client, method, path, version, status, extra={FIELDS: fields})


# Bytes of an answer that may be unread when its request is over.
_UNREAD_BYTES = 1 << 16


class Delivery:
    """Sends the answers of an application, and releases the memory of bodies when their requests are over.

    If a client takes more than `client_timeout` seconds to read a piece, its connection is aborted, so that its place
    and memory are free: the answer ends as if the client had disconnected. If the server's connections cannot be
    aborted, TimeoutError is raised. A request that the server cancels when the process ends is answered by a problem
    document, or its connection is aborted if the answer has begun.
    """

    def __init__(self, app: ASGIApp, client_timeout: float, shutdown: Shutdown, senders: Senders) -> None:
        self._app, self._client_timeout, self._shutdown, self._senders = app, client_timeout, shutdown, senders

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and send its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state, has_begun = scope["state"], False

        async def deliver(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            if len(message.get("body", b"")) > _UNREAD_BYTES and not message.get("more_body", False):
                # The server waits for the client before it sends, not afterwards. So the end of the answer is sent
                # separately.
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


# Shorter answers do not count: on all connections together they take less memory than one long answer.
_SHORT_BYTES = 1 << 16


class Content:
    """Sends the content of an answer, or only its head for HEAD, which is handled as GET.

    Long answers count while they are sent; an answer for which there is no memory is refused.
    """

    def __init__(self, app: ASGIApp, readers: Readers) -> None:
        self._app, self._readers = app, readers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and send the content of the answer unless the method is HEAD."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif scope["method"] != "HEAD":
            await self._count(scope, receive, send)
        else:
            as_get = {**scope, "method": "GET"}
            try:
                await self._count(as_get, receive, _head_sender(send))
            finally:
                scope["route"] = as_get.get("route")  # for code outside that reads the route of a request

    async def _count(self, scope: Scope, receive: Receive, send: Send) -> None:
        reader: Reader | None = None

        async def count_and_send(message: Message) -> None:
            nonlocal reader
            if message["type"] == "http.response.start":
                held = _answer_memory(message, scope["state"])
                if held.total > _SHORT_BYTES:
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
    """Return a sender of the head of an answer and then its end; the application's further messages are dropped."""

    async def send_head(message: Message) -> None:
        if message["type"] == "http.response.start":
            await send(message)
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    return send_head


def _answer_memory(start: Message, state: MutableMapping[str, Any]) -> Held:
    """Return the memory, in bytes, of the answer that begins with this message."""
    if HELD in state:
        return cast(Held, state[HELD])
    return Held(next((int(value) for name, value in start["headers"] if name == b"content-length"), 0))
