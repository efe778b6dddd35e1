import asyncio

import pytest
import redis

from app.store.connection import connect_loop
from app.store.keys import RateStore, Taken

pytestmark = pytest.mark.usefixtures("client")  # which empties the store


def takes(url: str, *asked: tuple[str, float, int, int]) -> list[Taken]:
    async def take() -> list[Taken]:
        client = connect_loop(url, 5)
        try:
            return [await RateStore(client).take(*one) for one in asked]
        finally:
            await client.aclose()

    return asyncio.run(take())


def test_a_bucket_holds_its_burst_and_then_refuses(url: str) -> None:
    first, second, third = takes(url, ("k", 0.01, 5, 3), ("k", 0.01, 5, 3), ("k", 0.01, 5, 1))
    assert (first.requests, second.requests, third.requests) == (3, 2, 0)
    assert first.wait == 0
    assert 50 < third.wait <= 100


def pass_time(client: redis.Redis, seconds: float) -> None:
    """Let a bucket be so much older than it is."""
    kept = client.get("bochner:rate:k")
    assert isinstance(kept, bytes)
    had, at = map(float, kept.split())
    client.set("bochner:rate:k", f"{had:.6f} {at - seconds:.6f}")


def test_a_bucket_fills_with_its_rate_and_no_further_than_its_burst(url: str, client: redis.Redis) -> None:
    assert takes(url, ("k", 0.001, 4, 4))[0].requests == 4
    pass_time(client, 2500)
    assert takes(url, ("k", 0.001, 4, 100))[0].requests == 2
    pass_time(client, 100_000)
    assert takes(url, ("k", 0.001, 4, 100))[0].requests == 4


def test_a_bucket_that_is_full_again_is_not_kept_and_a_refusal_writes_nothing(url: str, client: redis.Redis) -> None:
    takes(url, ("k", 0.01, 2, 2))
    assert 100_000 < client.pttl("bochner:rate:k") <= 200_000
    takes(url, ("slow", 0.001, 1, 1))
    written = client.get("bochner:rate:slow")
    assert takes(url, ("slow", 0.001, 1, 1))[0].requests == 0
    assert client.get("bochner:rate:slow") == written


def test_a_bucket_fills_although_the_clock_was_set_back(url: str, client: redis.Redis) -> None:
    assert takes(url, ("k", 0.01, 2, 2))[0].requests == 2
    pass_time(client, -1_000_000)
    assert takes(url, ("k", 0.01, 2, 1))[0].requests == 0
    pass_time(client, 150)
    assert takes(url, ("k", 0.01, 2, 1))[0].requests == 1
