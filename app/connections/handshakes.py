"""HTTPS: a connection counts from its first moment on, and its handshake has an end.

Left to itself, the event loop tells nobody of a connection before its handshake is over, and gives it a minute.
"""

import logging
import os
from asyncio import BaseTransport, Protocol, Transport
from collections.abc import Callable
from socket import socket
from ssl import SSLContext
from typing import Any, cast

import uvloop

from app.connections.protocol import Connection, Member, make_room, most_connections

logger = logging.getLogger(__name__)


class Loop(uvloop.Loop):
    """The event loop of a service."""

    async def create_server(self, protocol_factory: Callable[[], Any], *args: Any, **options: Any) -> Any:
        """Listen. With `ssl`, each connection begins with a `Handshake`."""
        context = options.pop("ssl", None)

        def begin() -> Handshake:
            return Handshake(self, protocol_factory(), context)

        return await super().create_server(begin if context else protocol_factory, *args, **options)


class Handshake(Protocol):
    """The beginning of a connection over TLS. It counts as a silent connection, and has the time of a head.

    Args:
        loop: that it runs in.
        connection: what goes on once the handshake is over, and then counts in its place.
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
        """Make room for this connection as for any other, and begin."""
        most = most_connections(self._connection.settings.max_connections)
        if len(self._others) >= most:
            # If all are at work, the connection says so: before the end of its handshake nobody could read it.
            make_room(self._others, most, self._loop.time())
        self._others.add(self)
        # The loop reads at once from what it has accepted, and would take the first bytes from the handshake.
        taken = socket(fileno=os.dup(transport.get_extra_info("socket").fileno()))
        taken.setblocking(False)
        cast(Transport, transport).abort()
        self._task = self._loop.create_task(self._shake_hands(taken))
        # Not at the end of the task itself: one that is cancelled before it begins has none.
        self._task.add_done_callback(lambda _: self._others.discard(self))

    def abort(self) -> None:
        """Hang up."""
        self._task.cancel()

    shutdown = abort
    """The server calls it so at its end."""

    async def _shake_hands(self, accepted: socket) -> None:
        patience = self._connection.settings.head_timeout
        try:
            await self._loop.connect_accepted_socket(
                lambda: self._connection, accepted, ssl=self._context, ssl_handshake_timeout=patience
            )
        except OSError as error:  # no TLS, too late, or hung up
            logger.debug("a handshake came to no end: %s", error)
