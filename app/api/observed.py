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


def observed(app: ASGIApp, meters: Meters) -> ASGIApp:
    """Observes the requests of an application, which have their ids already."""

    async def answered(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        began = perf_counter()
        status, has_begun = 0, False
        came = sent = 0
        request = InWork(scope["state"]["request_id"], _traceparent(scope))

        async def receive_counted() -> Message:
            nonlocal status, came
            message = await receive()
            came += len(message.get("body", b""))
            if message["type"] == "http.disconnect" and not has_begun:
                status = _NOBODY_WAITS
            return message

        async def send_counted(message: Message) -> None:
            nonlocal status, has_begun, sent
            if request.traceparent and message["type"] == "http.response.start":
                MutableHeaders(scope=message)["traceparent"] = request.traceparent
            await send(message)
            if message["type"] == "http.response.start":
                has_begun = True
                status = status or message["status"]
            else:
                sent += len(message.get("body", b""))

        # To the end of its task: what fails is logged outside of this.
        IN_WORK.set(request)
        meters.in_flight += 1
        try:
            await app(scope, receive_counted, send_counted)
        except Exception:
            status = status or 500  # which is answered outside of all middleware
            raise
        finally:
            meters.in_flight -= 1
            took, route, status = perf_counter() - began, route_of(scope), status or _NOBODY_WAITS
            meters.request(scope["method"], route, status, took, request.rows, came, sent)
            if logger.isEnabledFor(logging.INFO):
                seen = {"route": route, "seconds": round(took, 6), "bytes_in": came, "bytes_out": sent}
                _log(scope, status, seen | ({"rows": request.rows} if request.rows else {}))

    return answered


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
