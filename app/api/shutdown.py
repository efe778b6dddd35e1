"""Tells long answers that the process is about to end."""

import signal
import threading
from collections.abc import Callable
from functools import partial
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
        """Listen to signals from now on, in the main thread, beside the handlers that the server has set before.

        The server removes these handlers together with its own.
        """
        if threading.current_thread() is not threading.main_thread():
            return
        for number in (signal.SIGINT, signal.SIGTERM):
            served = signal.getsignal(number)
            if callable(served):
                signal.signal(number, partial(self._begin, served))

    def _begin(self, served: Callable[[int, FrameType | None], Any], number: int, frame: FrameType | None) -> None:
        self.begun = True
        served(number, frame)
