"""Sees every request and its answer, from outside: counts it, and writes its line of the log."""

from time import perf_counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.in_work import IN_WORK, InWork
from app.metrics.meters import Meters

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
        request = InWork(scope["state"]["request_id"])

        async def receive_counted() -> Message:
            nonlocal status, came
            message = await receive()
            came += len(message.get("body", b""))
            if message["type"] == "http.disconnect" and not has_begun:
                status = _NOBODY_WAITS
            return message

        async def send_counted(message: Message) -> None:
            nonlocal status, has_begun, sent
            await send(message)
            if message["type"] == "http.response.start":
                has_begun = True
                status = status or message["status"]
            else:
                sent += len(message.get("body", b""))

        token = IN_WORK.set(request)
        meters.in_flight += 1
        try:
            await app(scope, receive_counted, send_counted)
        except Exception:
            status = status or 500  # which is answered outside of all middleware
            raise
        finally:
            meters.in_flight -= 1
            IN_WORK.reset(token)
            took = perf_counter() - began
            meters.request(scope["method"], route_of(scope), status or _NOBODY_WAITS, took, request.rows, came, sent)

    return answered
