"""Sees every request and its answer, from outside: counts it, and writes its line of the log."""

import logging
import re
from time import perf_counter
from urllib.parse import quote

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.middleware import MOST_LOGGED
from app.in_work import IN_WORK, InWork
from app.logs import ACCESS, FIELDS
from app.metrics.meters import Meters
from app.spans import Spans
from app.store.keys import hidden

logger = logging.getLogger(ACCESS)

_TRACEPARENT = re.compile(rb"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_NOBODY_WAITS = 499
"""What nginx logs for a client that left before its answer."""


def route_of(scope: Scope) -> str:
    """The address of the call that a request was led to, with names in the place of what differs; "" for none."""
    direct = scope.get("direct")
    if direct is not None:
        return f"/v1/maps/{{name}}/{direct[1]}"
    return getattr(scope.get("route"), "path", "")


def observed(app: ASGIApp, meters: Meters, spans: Spans) -> ASGIApp:
    """Observes the requests of an application, which have their ids already."""

    async def answered(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        began = perf_counter()
        request = InWork(scope["state"]["request_id"], _traceparent(scope))
        seen = _Seen(receive, send, request.traceparent)
        method: str = scope["method"]
        known = {"http.request.method": method, "url.path": hidden(scope["path"]), "url.scheme": scope["scheme"]}
        meters.in_flight += 1
        with spans.request(method, known, request) as tell:
            # To the end of its task: what fails is logged outside of this.
            IN_WORK.set(request)
            try:
                await app(scope, seen.receive, seen.send)
            except Exception:
                seen.status = seen.status or 500  # which is answered outside of all middleware
                raise
            finally:
                meters.in_flight -= 1
                took, route, status = perf_counter() - began, route_of(scope), seen.status or _NOBODY_WAITS
                meters.request(method, route, status, took, request.rows, seen.came, seen.sent)
                tell(known | _told(route, status))
                if logger.isEnabledFor(logging.INFO):
                    counts = {"route": route, "seconds": round(took, 6), "bytes_in": seen.came, "bytes_out": seen.sent}
                    _log(scope, status, counts | ({"rows": request.rows} if request.rows else {}))

    return answered


class _Seen:
    """Counts the bytes of a request and of its answer, and gives the answer the `traceparent` that came, if one did."""

    def __init__(self, receive: Receive, send: Send, traceparent: str) -> None:
        self._receive, self._send, self._traceparent = receive, send, traceparent
        self._has_begun = False
        self.status = self.came = self.sent = 0

    async def receive(self) -> Message:
        message = await self._receive()
        self.came += len(message.get("body", b""))
        if message["type"] == "http.disconnect" and not self._has_begun:
            self.status = _NOBODY_WAITS
        return message

    async def send(self, message: Message) -> None:
        if self._traceparent and message["type"] == "http.response.start":
            MutableHeaders(scope=message)["traceparent"] = self._traceparent
        await self._send(message)
        if message["type"] == "http.response.start":
            self._has_begun = True
            self.status = self.status or message["status"]
        else:
            self.sent += len(message.get("body", b""))


def _told(route: str, status: int) -> dict[str, str | int]:
    """Attributes of the span of an answer, by the names of OpenTelemetry."""
    told: dict[str, str | int] = {"http.response.status_code": status}
    if route:
        told["http.route"] = route
    if status >= 500:
        told["error.type"] = str(status)
    return told


def _traceparent(scope: Scope) -> str:
    """The header of this name; empty where none came that can be read."""
    came = [value for name, value in scope["headers"] if name == b"traceparent"]
    return came[0].decode() if len(came) == 1 and _TRACEPARENT.fullmatch(came[0]) else ""


def _log(scope: Scope, status: int, seen: dict[str, object]) -> None:
    """Write the line of a request that is over."""
    method, path, version = scope["method"], quote(scope["path"]), scope["http_version"]
    client = ":".join(map(str, scope["client"] or ()))
    key = scope["state"].get("key")
    fields = {"method": method, "path": path[:MOST_LOGGED], "status": status, **seen, "client": client}
    if key is not None:
        fields["key"] = key.name
    if scope["query_string"]:
        path += "?" + scope["query_string"].decode("ascii", "backslashreplace")
    logger.info('%s - "%s %s HTTP/%s" %d', client, method, path, version, status, extra={FIELDS: fields})
