"""When to read from a client."""

from collections.abc import Sized
from typing import Any

from uvicorn.protocols.http.flow_control import FlowControl


class PatientFlow(FlowControl):
    """Reads nothing more from a client while requests of it wait for the one in work.

    The server stops to read there too. But the request in work may go on with it, which looks for a hang-up.
    """

    def __init__(self, transport: Any, waiting: Sized) -> None:
        super().__init__(transport)
        self._waiting = waiting

    def resume_reading(self) -> None:
        """Read on, unless requests wait."""
        if not self._waiting:
            super().resume_reading()
