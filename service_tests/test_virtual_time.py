"""An hour passes at once, in order."""

import asyncio
import time

from service_tests import virtual_time


def test_timers_end_in_their_order_and_clocks_agree() -> None:
    ended: list[tuple[str, float]] = []

    async def wait(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        ended.append((name, round(time.monotonic(), 3)))

    async def play() -> float:
        began = time.monotonic()
        await asyncio.gather(wait("late", 900), wait("early", 0.5), wait("middle", 60))
        return time.monotonic() - began

    assert virtual_time.run(play()) == 900
    assert ended == [("early", 0.5), ("middle", 60), ("late", 900)]
