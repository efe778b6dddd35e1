"""Knowing that the process is to end, while there are still answers being sent."""

import signal
import threading
from types import FrameType
from typing import Any


class Shutdown:
    """Whether the process has been told to end.

    The server waits for open answers before it tells the application anything, and the stream of a job that runs ends
    of itself only with the job. So the signal is noticed here, on its way to the server.
    """

    def __init__(self) -> None:
        self.begun = False

    def notice(self) -> None:
        """Notice signals from now on; call it once the server has put its own handlers in place.

        The server removes these together with its own. Without a server, or outside of the main thread, there are no
        signals to notice.
        """
        if threading.current_thread() is not threading.main_thread():
            return
        for number in (signal.SIGINT, signal.SIGTERM):
            served = signal.getsignal(number)
            if callable(served):
                signal.signal(number, self._before(served))

    def _before(self, served: Any) -> Any:
        def handle(number: int, frame: FrameType | None) -> None:
            self.begun = True
            served(number, frame)

        return handle
