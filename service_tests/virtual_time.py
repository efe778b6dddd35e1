"""Time that passes only while everybody waits: an hour of waiting takes no time, and a busy machine changes nothing."""

import asyncio
import selectors
import time
from collections.abc import Coroutine
from typing import Any, TypeVar
from unittest.mock import patch

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    """Where nothing is ready, lets the time pass until the next timer instead of waiting for it."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(None if timeout is None else 0)
        if not ready and timeout is not None:
            self.now += max(0.0, timeout)
        return ready


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._clock = _Selector()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now


def run(play: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in such time, which `time.monotonic` tells too. It must not wait for threads."""
    with asyncio.Runner(loop_factory=_Loop) as runner, patch.object(time, "monotonic", runner.get_loop().time):
        return runner.run(asyncio.wait_for(play, 7200))
