"""Connections to clients."""

from asyncio import BaseTransport
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class Connection(HttpToolsProtocol):
    """A connection that requests may break off: `abort` in the state of their scope.

    Closing would first wait for a client to read what is sent already, and keep that in memory until then.
    """

    def connection_made(self, transport: BaseTransport) -> None:
        """Begin."""
        sending = cast("Any", transport)  # sockets' transports are no subclass of asyncio's
        self.app_state = {**self.app_state, "abort": sending.abort}
        super().connection_made(sending)
