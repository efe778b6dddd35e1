"""Tells long answers that the process is about to end."""

import signal
import threading
from types import FrameType
from typing import Any


class Shutdown:
    """Whether the process has been told to end.

    The server waits until all answers are sent before it tells the application. The events of a running job are an
    answer that ends only with the job. So this class listens to the signals itself.
    """

    def __init__(self) -> None:
        self.begun = False

    def notice(self) -> None:
        """Listen to signals from now on. Call it after the server has set its own handlers.

        The server removes these handlers together with its own. Outside of the main thread this does nothing.
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
