import asyncio
import time
from collections.abc import Coroutine
from typing import Any

import pytest

from app.api.access import Rates
from app.store.errors import StoreUnavailable
from app.store.keys import Key, Role, Taken, draw_key
from service_tests import virtual_time


class Bucket:
    """A bucket as the store has it, shared by all processes, and how often it was asked."""

    def __init__(self, holds: float) -> None:
        self.holds = holds
        self.at = 0.0
        self.asked = 0

    async def take(self, _: str, rate: float, burst: int, wanted: int) -> Taken:
        self.asked += 1
        now = time.monotonic()
        self.holds = min(burst, self.holds + (now - self.at) * rate)
        self.at = now
        requests = min(wanted, int(self.holds))
        self.holds -= requests
        await asyncio.sleep(0.001)
        return Taken(requests, max(0.0, 1 - self.holds) / rate)


def key(rate: float | None, burst: int | None = None) -> Key:
    return draw_key(rate, burst, name="k", role=Role.read, quota=None).key


def run(play: Coroutine[Any, Any, None]) -> None:
    virtual_time.run(play)


def test_a_burst_comes_in_and_what_follows_is_told_when_to_come_again() -> None:
    bucket, one = Bucket(5), key(0.1, 5)

    async def play() -> None:
        rates = Rates(bucket.take)
        waits = await asyncio.gather(*(rates.wait(one) for _ in range(8)))
        assert sorted(waits)[:5] == [0] * 5
        assert all(5 < wait <= 10 for wait in sorted(waits)[5:])
        asked = bucket.asked
        assert await rates.wait(one) > 5
        assert bucket.asked == asked  # a refusal needs no question as long as it is certain

    run(play())


@pytest.mark.parametrize("n_processes", [1, 3])
def test_all_processes_together_let_in_what_the_rate_allows(n_processes: int) -> None:
    bucket, one = Bucket(20), key(200, 20)
    let_in = 0

    async def ask(rates: Rates, until: float) -> None:
        nonlocal let_in
        while time.monotonic() < until:
            wait = await rates.wait(one)
            let_in += wait == 0
            await asyncio.sleep(min(wait, 0.005))

    async def play() -> None:
        began = time.monotonic()
        clients = [Rates(bucket.take) for _ in range(n_processes)]
        await asyncio.gather(*(ask(rates, began + 1) for rates in clients for _ in range(4)))
        seconds = time.monotonic() - began
        assert 20 + 200 * 0.9 < let_in <= 20 + 200 * seconds + 20 * n_processes

    run(play())


def test_a_store_that_is_away_lets_nobody_in_and_is_asked_again() -> None:
    async def away(*_: object) -> Taken:
        raise StoreUnavailable("away")

    async def play() -> None:
        rates = Rates(away)
        for _ in range(2):
            with pytest.raises(StoreUnavailable):
                await rates.wait(key(1))

    run(play())
