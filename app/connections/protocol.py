"""The protocol of a connection: the server's own, with an end to all that it would read or wait for without one.

What is refused is told by a problem document, and by the end of the connection.
"""

import logging
from asyncio import BaseTransport
from collections import deque
from math import inf
from typing import Any, cast

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from app.api.observation import new_request_id
from app.api.problems import Refusal, limit, written
from app.connections import crowd, heads
from app.connections.flow import PatientFlow
from app.metrics.meters import Meters
from app.settings import Settings

logger = logging.getLogger(__name__)

# Requests that a client may send ahead of the one in work. Each takes some kilobytes, and 18 bytes to send.
_MOST_AHEAD = 16
# Seconds in which a client that was refused may read why, while what it sends is thrown away.
_LEAVE_SECONDS = 2.0
# Seconds for which a client may stop reading its answer before it makes room for others.
_STALL_SECONDS = 1.0
_MOST_CHARACTERS = 200


class Connection(HttpToolsProtocol):
    """A connection to a client.

    Requests may break it off: `abort` in the state of their scope. Closing would first wait for the client to read what
    is sent already, and keep that in memory until then.
    """

    handshake: crowd.Member | None = None
    """Over TLS: the handshake that held its place in the crowd until now."""

    @property
    def settings(self) -> Settings:
        """Those of the service."""
        return cast(Settings, self.app_state["settings"])

    @property
    def meters(self) -> Meters:
        """Those of the process."""
        return cast(Meters, self.app_state["meters"])

    def connection_made(self, transport: BaseTransport) -> None:
        """Wait for a request, if there is room for one more connection."""
        sending = cast("Any", transport)  # sockets' transports are no subclass of asyncio's
        self.app_state = {**self.app_state, "abort": sending.abort}
        self._unanswered: deque[RequestResponseCycle] = deque()
        # Whether what comes next belongs to the head of a request, or to its body.
        self._in_head = True
        # Bytes of a head; then of what frames the pieces of its body, less those of the body itself.
        self._unused = 0
        self.has_asked, self.is_leaving = False, False
        # Whether all that comes is thrown away.
        self._is_deaf = False
        self._last_words: Refusal | None = None
        self.url = b""
        self.connections.discard(cast("Any", self.handshake))
        super().connection_made(sending)
        self.meters.connections = len(self.connections)
        self.flow = PatientFlow(sending, self.pipeline)
        self._wait(self.settings.idle_timeout)
        # What it says is heard in the next turn of the loop. Until then it is not silent, and makes no room for others.
        self.waits_since = inf
        self.loop.call_soon(self.loop.call_soon, self._begin_to_count)
        most = crowd.most_connections(self.settings.max_connections)
        if len(self.connections) > most:
            others = cast("set[Connection]", self.connections) - {self}
            if not crowd.make_room(others, most, self.loop.time()):
                said = f"all of {most} connections are at work"
                self._refuse(Refusal("overloaded", said, **limit("max_connections", most)))

    def connection_lost(self, exc: Exception | None) -> None:
        """Let every request on it know. The server tells only the last."""
        self._work()
        for cycle in self._unanswered:
            _abandon(cycle)
        super().connection_lost(exc)
        self.meters.connections = len(self.connections)

    def eof_received(self) -> None:
        """Close, without waiting for ever for the client to read what is sent already."""
        super().eof_received()
        self._wait(self.settings.client_timeout)

    def shutdown(self) -> None:
        """Close as soon as nothing is in work, without waiting likewise."""
        super().shutdown()
        if self.transport.is_closing():
            self._wait(self.settings.client_timeout)

    def data_received(self, data: bytes) -> None:
        """Parse what came. Refuse heads without end, and bodies that are mostly something else."""
        if self._is_deaf:
            return
        begins = self._in_head and not self._unused
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
            self._refuse(heads.too_large(len(self.url), self._unused, most))
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
                # A server may ignore the wish for another protocol. The parser does not: it leaves the body out.
                rest = data[upgrade.args[0] :]
                line = b"%s %s HTTP/%s\r\n" % (
                    self.parser.get_method(),
                    self.url,
                    self.parser.get_http_version().encode(),
                )
                fields = b"".join(b"%s: %s\r\n" % field for field in self.headers if field[0] != b"upgrade")
                data = line + fields + b"\r\n" + rest

    def on_message_begin(self) -> None:
        """Begin with a request, unless too many wait already."""
        if len(self._unanswered) > _MOST_AHEAD:
            raise Refusal("overloaded", f"more than {_MOST_AHEAD} requests came ahead of the one in work")
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a field of the head. Those behind a body are of no use to anybody here."""
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begin to answer a request, unless its head is refused."""
        most = self.settings.max_head_bytes
        heads.check(self.parser.get_method(), self.parser.get_http_version(), self.url, self.headers, most)
        if self.parser.should_upgrade():
            return
        self.url = heads.with_path(self.url)
        super().on_headers_complete()
        if not self.cycle.keep_alive:
            self.cycle.transport = cast("Any", _Last(self))
        self._unanswered.append(self.cycle)
        self._in_head, self.has_asked = False, True
        self._work()

    def on_body(self, body: bytes) -> None:
        """Take a piece of a body."""
        self._unused -= 2 * len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """A head comes next."""
        if self.parser.should_upgrade():
            return
        super().on_message_complete()
        self._in_head, self._unused = True, 0
        if not self._unanswered and not self.transport.is_closing():  # the rest of a body that nobody wanted
            self._wait(self.settings.idle_timeout)

    def on_response_complete(self) -> None:
        """Go on with the next request that came, or wait for one."""
        self._unanswered.popleft()
        super().on_response_complete()
        if self.transport.is_closing():  # once the client has read all
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
        """Note that the client does not read."""
        super().pause_writing()
        self.waits_since = self.loop.time() + _STALL_SECONDS

    def resume_writing(self) -> None:
        """Note that it does."""
        super().resume_writing()
        if self._unanswered:
            self.waits_since = inf

    def timeout_keep_alive_handler(self) -> None:
        """End the wait for a client that has taken too long."""
        if self._in_head and self._unused and not self._is_deaf and not self.transport.is_closing():
            patience = self.settings.head_timeout
            detail = f"{self._unused} bytes of a head came in {patience:g} seconds, and not its end"
            self._refuse(Refusal("request-timeout", detail, **limit("head_timeout", patience)))
        else:
            self.transport.abort()

    def _wait(self, seconds: float) -> None:
        """Wait for the client, so many seconds at most. There is one timer, that of the server for idle connections."""
        self._work()
        self.waits_since = self.loop.time()
        self.timeout_keep_alive_task = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

    def _begin_to_count(self) -> None:
        if not self.has_asked:
            self.waits_since = min(self.waits_since, self.loop.time())

    def _work(self) -> None:
        """Wait no longer for the client: it is the service's turn."""
        self.waits_since = inf
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
            self.timeout_keep_alive_task = None

    def _refuse(self, refusal: Refusal) -> None:
        """Refuse what is being read, once the requests before it are answered, and read nothing more."""
        self._is_deaf = True
        if not self._in_head and self._unanswered:  # it is the body of the last of them
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
        answer = written(refusal.slug, str(refusal), request_id, **refusal.members)
        headers = {**answer.headers, "x-request-id": request_id, "connection": "close"}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        is_head = self.url and self.parser.get_method() == b"HEAD"  # without a url, it is the method of the one before
        body = b"" if is_head else bytes(answer.body)
        self.transport.write(STATUS_LINE[answer.status_code] + lines.encode() + b"\r\n" + body)
        self._leave()

    def close_behind(self) -> None:
        """Close behind an answer. What is still to come of the body is thrown away, so that the answer is read."""
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
            # Closing at once would reset the connection, and the client might never read why.
            self.transport.write_eof()
        else:
            self.transport.close()


class _Last:
    """What the last request on a connection sends its answer to. Many proxies let each request be the last."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection.transport, name)

    def close(self) -> None:
        """End the connection once its client has read the answer, or has had the time to."""
        self._connection.close_behind()


def _abandon(cycle: RequestResponseCycle) -> None:
    """Let a request know that nobody waits for its answer any more."""
    cycle.disconnected = True
    cycle.message_event.set()
