"""Protocol of a client connection: the server's own HTTP protocol, with limits on all that it reads or waits for.

A refused request is answered by a problem document, and the connection is then closed.
"""

import asyncio
import logging
import os
import resource
import select
from asyncio import BaseTransport, Transport
from collections import deque
from collections.abc import Callable, Collection, Sequence, Sized
from math import inf
from socket import socket
from ssl import SSLContext
from typing import Any, Protocol, cast

import httptools
import uvloop
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from app.api.middleware import new_request_id
from app.api.problems import Refusal, limit, problem_response
from app.metrics import Meters
from app.settings import ROOT_PATH, Settings

# Files of a process that are not connections to clients.
_OTHER_FILES = 128
# Most connections that may be closing while their clients still read. Further ones are aborted at once.
_MOST_LEAVING = 64


class Member(Protocol):
    """A client connection, as `make_room` sees it."""

    transport: Any
    has_asked: bool
    """Whether a request has arrived on the connection."""
    waits_since: float
    """Time at which the connection began to wait for its client; infinity while it does not wait."""
    is_leaving: bool
    """Whether the connection is closing, and so no longer counts towards the connection limit."""


def most_connections(wanted: int) -> int:
    """Return `wanted`, or fewer connections if the process may not open that many files; at least 1."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if files == resource.RLIM_INFINITY else max(1, min(wanted, files - _OTHER_FILES))


def make_room(others: Collection[Member], most: int, now: float) -> bool:
    """Close the connection that has waited longest for its client if there are `most`; return False if none waits.

    Connections on which no request has arrived go first. So a client that opens connections and sends nothing keeps
    nobody out.
    """
    leaving = [one for one in others if one.is_leaving]
    if len(leaving) > _MOST_LEAVING:
        min(leaving, key=lambda one: one.waits_since).transport.abort()
    if len(others) - len(leaving) < most:
        return True
    waiting = [one for one in others if not one.is_leaving and one.waits_since <= now]
    if not waiting:
        return False
    longest = min(waiting, key=lambda one: (one.has_asked, one.waits_since))
    longest.is_leaving = True
    longest.transport.abort()
    return True


class PatientFlow(FlowControl):
    """Flow control that stops reading from a client while its further requests wait for the one being processed.

    The server stops reading there too. But the request being processed may resume reading, as it looks for a
    disconnect.
    """

    def __init__(self, transport: Any, waiting: Sized) -> None:
        super().__init__(transport)
        self._waiting = waiting

    def resume_reading(self) -> None:
        """Resume reading, unless requests wait."""
        if not self._waiting:
            super().resume_reading()


Fields = Sequence[tuple[bytes, bytes]]


def check_head(method: bytes, version: str, address: bytes, fields: Fields, most: int) -> None:
    """Refuse a request head that is not HTTP/1.1 or 1.0, or that leaves in doubt where its body ends.

    Args:
        method: method in the request line.
        version: HTTP version in the request line, such as "1.1".
        address: target in the request line.
        fields: header names in lower case, and values.
        most: bytes of the largest head that is accepted.
    """
    size = len(address) + sum(len(name) + len(value) for name, value in fields)
    if size > most:
        raise too_large(len(address), size, most)
    if version not in ("1.0", "1.1") or method == b"CONNECT":
        raise Refusal("bad-request", f"expected HTTP/1.1, got {method.decode()} in HTTP/{version}")
    hosts = [name for name, _ in fields].count(b"host")
    if hosts > 1 or (hosts == 0 and version == "1.1"):
        raise Refusal("bad-request", f"expected one field Host, got {hosts}")
    codings = [value.strip().lower() for name, value in fields if name == b"transfer-encoding"]
    if codings not in ([], [b"chunked"]) or (codings and version == "1.0"):
        came = b", ".join(codings)[:80].decode("latin-1")
        raise Refusal("bad-request", f"Transfer-Encoding {came} came in HTTP/{version}; only chunked is read, in 1.1")


def with_path(address: bytes) -> bytes:
    """Return an address that has a path: `http://host` without a path means the same as with `/` (RFC 9112, 3.2.2)."""
    if address.startswith(b"/"):
        return address
    parsed = httptools.parse_url(address)
    return address if parsed.path else b"/" + (b"?" + parsed.query if parsed.query else b"")


def too_large(address_bytes: int, size: int, most: int) -> Refusal:
    """Return the refusal of a head of `size` bytes or more, `address_bytes` of which are the address."""
    members = limit("max_head_bytes", most)
    if address_bytes > most:
        return Refusal(
            "uri-too-long", f"expected up to {most} bytes of address, got {address_bytes} or more", **members
        )
    return Refusal("head-too-large", f"expected a head of up to {most} bytes, got {size} or more", **members)


logger = logging.getLogger(__name__)

# Requests that a client may send ahead of the one being processed. Each takes some kilobytes of memory, but only 18
# bytes to send.
_MOST_AHEAD = 16
# Seconds in which a refused client may read the refusal, while everything it sends is discarded.
_LEAVE_SECONDS = 2.0
# Seconds for which a client may stop reading its answer before its connection may be closed to make room for others.
_STALL_SECONDS = 1.0
_MOST_CHARACTERS = 200
# That a client has closed its side; where a system has no such event, that both sides are closed.
_HANGS_UP = getattr(select, "POLLRDHUP", select.POLLHUP)


class Connection(HttpToolsProtocol):
    """A connection to a client.

    A request can abort its connection: by `abort`, in the state of its scope. Closing would first wait for the client
    to read what has been sent, and keep that in memory until then. The future `left`, in the same state, is done once
    the connection is lost.
    """

    handshake: Member | None = None
    """Over TLS: the handshake that counted towards the connection limit in place of this connection until now."""

    @property
    def settings(self) -> Settings:
        """Settings of the service."""
        return cast(Settings, self.app_state["settings"])

    @property
    def meters(self) -> Meters:
        """Meters of the process."""
        return cast(Meters, self.app_state["meters"])

    def connection_made(self, transport: BaseTransport) -> None:
        """Wait for a request, if the connection limit leaves room for this connection."""
        sending = cast("Any", transport)  # transports of sockets are not subclasses of asyncio's
        self._left = self.loop.create_future()
        self._ends = select.poll()
        self._ends.register(sending.get_extra_info("socket").fileno(), _HANGS_UP)
        self.app_state = {**self.app_state, "abort": sending.abort, "left": self._left}
        self._unanswered: deque[RequestResponseCycle] = deque()
        # Whether the next bytes belong to the head of a request, or to its body.
        self._in_head = True
        # Bytes of a head; within a body, bytes of chunk framing minus bytes of the body itself.
        self._unused = 0
        self.has_asked, self.is_leaving = False, False
        # Whether all further input is discarded.
        self._is_deaf = False
        self._last_words: Refusal | None = None
        self.url = b""
        self.connections.discard(cast("Any", self.handshake))
        super().connection_made(sending)
        self.meters.connections = len(self.connections)
        self.flow = PatientFlow(sending, self.pipeline)
        self._wait(self.settings.idle_timeout)
        # What the client has sent already is read in the next turn of the loop. Until then the connection does not
        # count as silent, and is not closed to make room for others.
        self.waits_since = inf
        self.loop.call_soon(self.loop.call_soon, self._begin_to_count)
        most = most_connections(self.settings.max_connections)
        if len(self.connections) > most:
            others = cast("set[Connection]", self.connections) - {self}
            if not make_room(others, most, self.loop.time()):
                said = f"all of {most} connections are at work"
                self._refuse(Refusal("overloaded", said, **limit("max_connections", most)))

    def connection_lost(self, exc: Exception | None) -> None:
        """Notify every request on the connection. The server notifies only the last one."""
        self._work()
        self._left.set_result(None)
        for cycle in self._unanswered:
            _abandon(cycle)
        super().connection_lost(exc)
        self.meters.connections = len(self.connections)

    def eof_received(self) -> None:
        """Close, but limit the wait for the client to read what has been sent."""
        super().eof_received()
        self._wait(self.settings.client_timeout)

    def shutdown(self) -> None:
        """Close as soon as no request is being processed, with the same limit on the wait."""
        super().shutdown()
        if self.transport.is_closing():
            self._wait(self.settings.client_timeout)

    def data_received(self, data: bytes) -> None:
        """Parse input. Refuse heads that are too long, and bodies that are mostly chunk framing."""
        if self._is_deaf:
            return
        begins = self._in_head and not self._unused
        if begins and self._ends.poll(0):  # nobody waits for an answer, and others wait for their connections
            self.transport.abort()
            return
        self._unused += len(data)
        try:
            self._parse(data)
        except httptools.HttpParserError as error:
            reason = error.__context__ or error
            said = f"what came cannot be read as HTTP: {reason}"[:_MOST_CHARACTERS]
            self._refuse(reason if isinstance(reason, Refusal) else Refusal("bad-request", said))
            return
        most = self.settings.max_head_bytes
        if self._in_head and self._unused > most:
            self._refuse(too_large(len(self.url), self._unused, most))
        elif self._unused > 2 * most:
            self._refuse(Refusal("bad-request", "most of the body is not its own bytes, but what frames its pieces"))
        elif begins and self._in_head and self._unused and not self._unanswered:
            self._wait(self.settings.head_timeout)

    def _parse(self, data: bytes) -> None:
        while data:
            try:
                self.parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as upgrade:
                # A server may ignore a request to change the protocol. The parser does not: it leaves the body out. So
                # parse the request again without its `Upgrade` header.
                rest = data[upgrade.args[0] :]
                line = b"%s %s HTTP/%s\r\n" % (
                    self.parser.get_method(),
                    self.url,
                    self.parser.get_http_version().encode(),
                )
                fields = b"".join(b"%s: %s\r\n" % field for field in self.headers if field[0] != b"upgrade")
                data = line + fields + b"\r\n" + rest

    def on_message_begin(self) -> None:
        """Begin a request, unless too many wait already."""
        if len(self._unanswered) > _MOST_AHEAD:
            raise Refusal("overloaded", f"more than {_MOST_AHEAD} requests came ahead of the one in work")
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store a header field of the head. Trailers, fields after a body, are ignored: nothing here uses them.

        So are cookies: the framework would take seconds to parse malicious ones.
        """
        if self._in_head and name.lower() != b"cookie":
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begin to answer a request, unless its head is refused."""
        most = self.settings.max_head_bytes
        check_head(self.parser.get_method(), self.parser.get_http_version(), self.url, self.headers, most)
        if self.parser.should_upgrade():
            return
        self.url = with_path(self.url)
        # Trust X-Forwarded-Prefix only from the proxies that the server's own layer trusts for X-Forwarded-For; that
        # layer exists only if there are any.
        if self.client is not None and self.client[0] in getattr(self.app, "trusted_hosts", ()):
            came = dict(self.headers).get(b"x-forwarded-prefix", b"").decode("latin1").rstrip("/")
            if came and ROOT_PATH.fullmatch(came):
                self.scope["state"]["prefix"] = came
        super().on_headers_complete()
        if not self.cycle.keep_alive:
            self.cycle.transport = cast("Any", _Last(self))
        self._unanswered.append(self.cycle)
        self._in_head, self.has_asked = False, True
        self._work()
        if len(self._unanswered) > 1:  # clients that send requests ahead make room for clients that do not
            self.waits_since = self.loop.time()

    def on_body(self, body: bytes) -> None:
        """Receive a piece of a body."""
        self._unused -= 2 * len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Expect a new head."""
        if self.parser.should_upgrade():
            return
        super().on_message_complete()
        # The server stops reading at a large piece of a body until more is asked for, which may be never. But whether
        # the client leaves is seen only by reading.
        self.flow.resume_reading()
        self._in_head, self._unused = True, 0
        if not self._unanswered and not self.transport.is_closing():  # the answer did not need this body
            self._wait(self.settings.idle_timeout)

    def on_response_complete(self) -> None:
        """Continue with the next request that has arrived, or wait for one."""
        self._unanswered.popleft()
        super().on_response_complete()
        if self.transport.is_closing():  # closing, once the client has read everything
            self._wait(self.settings.client_timeout)
        elif self.is_leaving:
            self._wait(_LEAVE_SECONDS)
        elif self._unanswered:
            return
        elif self._last_words is not None:
            self._tell(self._last_words)
        else:
            self._wait(self.settings.idle_timeout if self._in_head else self.settings.body_timeout)

    def pause_writing(self) -> None:
        """Note that the client has stopped reading."""
        super().pause_writing()
        self.waits_since = self.loop.time() + _STALL_SECONDS

    def resume_writing(self) -> None:
        """Note that the client reads again."""
        super().resume_writing()
        if self._unanswered:
            self.waits_since = inf

    def timeout_keep_alive_handler(self) -> None:
        """Refuse a head that is not complete in time; otherwise abort the connection of a client that took too long."""
        if self._in_head and self._unused and not self._is_deaf and not self.transport.is_closing():
            patience = self.settings.head_timeout
            detail = f"{self._unused} bytes of a head came in {patience:g} seconds, and not its end"
            self._refuse(Refusal("request-timeout", detail, **limit("head_timeout", patience)))
        else:
            self.transport.abort()

    def _wait(self, seconds: float) -> None:
        """Wait at most this many seconds for the client, with the only timer: the server's for idle connections."""
        self._work()
        self.waits_since = self.loop.time()
        self.timeout_keep_alive_task = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

    def _begin_to_count(self) -> None:
        if not self.has_asked:
            self.waits_since = min(self.waits_since, self.loop.time())

    def _work(self) -> None:
        """Stop waiting for the client: the service has to act next."""
        self.waits_since = inf
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
            self.timeout_keep_alive_task = None

    def _refuse(self, refusal: Refusal) -> None:
        """Refuse the request being read, once the requests before it are answered, and read nothing more."""
        self._is_deaf = True
        if not self._in_head and self._unanswered:  # the body being read belongs to the last of these requests
            if len(self._unanswered) > 1:
                self.pipeline.popleft()
                self._unanswered.pop()
            elif not self._unanswered[0].response_started:
                _abandon(self._unanswered.pop())
            else:
                self._unanswered[0].keep_alive = False
                return
        if self._unanswered:
            self._last_words = refusal
        else:
            self._tell(refusal)

    def _tell(self, refusal: Refusal) -> None:
        if self.transport.is_closing():
            return
        request_id = new_request_id()
        self.meters.unread(refusal.slug)
        logger.info("request %s: %s", request_id, refusal)
        answer = problem_response(refusal.slug, str(refusal), request_id, **refusal.members)
        headers = {**answer.headers, "x-request-id": request_id, "connection": "close"}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        is_head = self.url and self.parser.get_method() == b"HEAD"  # without a URL, the previous request's method
        body = b"" if is_head else bytes(answer.body)
        self.transport.write(STATUS_LINE[answer.status_code] + lines.encode() + b"\r\n" + body)
        self._leave()

    def close_behind(self) -> None:
        """Close after an answer. The rest of the body is discarded, so that the client can read the answer."""
        if self._in_head or self.transport.is_closing():
            self.transport.close()
        else:
            self._is_deaf = True
            self._leave()

    def _leave(self) -> None:
        self.flow.resume_reading()
        self.is_leaving = True
        self._wait(_LEAVE_SECONDS)
        if self.transport.can_write_eof():
            # Closing at once would reset the connection, and the client might never read the answer.
            self.transport.write_eof()
        else:
            self.transport.close()


class _Last:
    """Transport for the answer to the last request on a connection. Many proxies make each request the last."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection.transport, name)

    def close(self) -> None:
        """Close the connection once its client has read the answer, or has had the time to."""
        self._connection.close_behind()


def _abandon(cycle: RequestResponseCycle) -> None:
    """Notify a request that its client no longer waits for the answer."""
    cycle.disconnected = True
    cycle.message_event.set()


class Loop(uvloop.Loop):
    """Event loop of a service."""

    async def create_server(self, protocol_factory: Callable[[], Any], *args: Any, **options: Any) -> Any:
        """Listen for connections. With `ssl`, each connection begins with a `Handshake`."""
        context = options.pop("ssl", None)

        def begin() -> Handshake:
            return Handshake(self, protocol_factory(), context)

        return await super().create_server(begin if context else protocol_factory, *args, **options)


class Handshake(asyncio.Protocol):
    """TLS handshake of a connection. It counts as a silent connection, and must end within `head_timeout`.

    Args:
        loop: event loop that it runs in.
        connection: the connection that continues after the handshake, and then counts in its place.
        context: certificate and key.
    """

    has_asked = False
    is_leaving = False

    def __init__(self, loop: Loop, connection: Connection, context: SSLContext) -> None:
        self._loop, self._connection, self._context = loop, connection, context
        self._others = cast("set[Member]", connection.connections)
        connection.handshake = self
        self.transport = self
        self.waits_since = loop.time()

    def connection_made(self, transport: BaseTransport) -> None:
        """Make room for this connection as for any other, and begin the handshake."""
        most = most_connections(self._connection.settings.max_connections)
        if len(self._others) >= most:
            # If all connections are busy, `connection` sends the refusal: a client cannot read one before its handshake
            # ends.
            make_room(self._others, most, self._loop.time())
        self._others.add(self)
        # The loop reads from an accepted socket at once, and would take the first bytes from the handshake. So the
        # handshake uses a duplicate of the socket.
        taken = socket(fileno=os.dup(transport.get_extra_info("socket").fileno()))
        taken.setblocking(False)
        cast(Transport, transport).abort()
        self._task = self._loop.create_task(self._shake_hands(taken))
        # In a callback rather than at the end of the task: a task that is cancelled before it begins does not run at
        # all.
        self._task.add_done_callback(lambda _: self._others.discard(self))

    def abort(self) -> None:
        """Abort the handshake."""
        self._task.cancel()

    shutdown = abort
    """Abort under another name: the server calls `shutdown` when it ends."""

    async def _shake_hands(self, accepted: socket) -> None:
        patience = self._connection.settings.head_timeout
        try:
            await self._loop.connect_accepted_socket(
                lambda: self._connection, accepted, ssl=self._context, ssl_handshake_timeout=patience
            )
        except OSError as error:  # no TLS, a timeout, or a disconnect
            logger.debug("a handshake came to no end: %s", error)
