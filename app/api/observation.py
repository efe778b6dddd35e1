"""Sees every request and its answer, from outside: gives it an id, counts it, and writes its line of the log."""

import logging
import re
import secrets
from ipaddress import ip_address
from time import perf_counter
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.in_work import IN_WORK, InWork
from app.logs import ACCESS, FIELDS
from app.metrics.meters import Meters
from app.settings import Settings
from app.spans import Spans
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
        request = InWork(_request_id(scope), _traceparent(scope), left=scope["state"].get("left"))
        request.prefix = scope["state"].get("prefix", self._settings.root_path)
        method: str = scope["method"]
        exchange = _Exchange(receive, send, request, method in ("GET", "HEAD"))
        known = {"http.request.method": method, "url.path": hidden(scope["path"]), "url.scheme": scope["scheme"]}
        meters.in_flight += 1
        with self._spans.request(method, known, request) as tell:
            # To the end of its task: what fails is logged outside of this.
            IN_WORK.set(request)
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

    def __init__(self, receive: Receive, send: Send, request: InWork, may_be_kept: bool) -> None:
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
