"""Whether a service is ready, and what its log says of that."""

import asyncio
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
import redis

from app.api import context
from app.api.problems import Refusal
from app.api.routes.service import check_ready
from app.container import Container
from app.services import status
from app.services.status import Readiness, Status
from app.services.warm_up import cold
from app.settings import Settings
from app.store.errors import StoreUnavailable
from app.store.servers import StoreInfo
from service_tests.servers import until

STORE = StoreInfo(server="valkey 8", durability="always", maxmemory_policy="noeviction", warnings=[])


class Ended(Exception):
    """The last of the moments is over."""


@pytest.fixture
def _starting() -> Iterator[None]:
    """A process in which loops are still compiled, unless a test takes them away."""
    before = [*cold]
    cold[:] = ["features", "hashes"]
    yield
    cold[:] = before


@pytest.mark.usefixtures("_starting")
def test_the_log_has_each_change_and_what_lasts(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = 0.0
    caplog.set_level(logging.INFO)

    def keeping() -> StoreInfo:
        if 20 <= now < 150:
            raise StoreUnavailable("the store does not answer")
        return STORE.model_copy(update={"warnings": [f"{now} bytes are free"] if now >= 160 else []})

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        if now >= 4:
            cold.clear()
        if now > 165:
            raise Ended

    monkeypatch.setattr(status, "time", SimpleNamespace(monotonic=lambda: now, sleep=sleep))
    with pytest.raises(Ended):
        Status(keeping, list, False).watch()
    away = "; the store does not answer"
    assert [record.getMessage() for record in caplog.records] == [
        "starting for 0.0 s; loops are being loaded, or compiled: features, hashes",
        "ready after 4.0 s of starting",
        f"store-unavailable after 20.0 s of ready{away}",
        f"store-unavailable for 61.0 s{away}",
        f"store-unavailable for 122.0 s{away}",
        "ready after 126.0 s of store-unavailable",
        "ready for 10.0 s; 160.0 bytes are free",
    ]


@pytest.mark.usefixtures("_starting")
def test_a_process_that_starts_says_what_it_waits_for() -> None:
    async def readiness() -> Readiness:
        return Status(lambda: STORE, list, False).readiness()

    of: Any = SimpleNamespace(readiness=readiness)
    with pytest.raises(Refusal) as refused:
        asyncio.run(check_ready(of))
    assert (refused.value.slug, refused.value.members) == ("starting", {"waiting_for": ["features", "hashes"]})
    cold.clear()
    assert asyncio.run(check_ready(of)) == []


def test_a_store_that_takes_long_leaves_what_was_seen_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "_LOOK_SECONDS", 0.01)

    async def look(_: str) -> Readiness:
        await asyncio.sleep(3600)
        raise AssertionError

    seen = Readiness("ready", "", ("some warning",))
    of: Any = SimpleNamespace(_look=look, status=SimpleNamespace(seen=seen))
    assert asyncio.run(context.Context.readiness(of)) is seen


def test_a_thread_that_waits_for_the_store_at_shutdown_is_answered(client: redis.Redis, store_url: str) -> None:
    service = Container(Settings(redis_url=store_url))
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(service._client.blpop, ["left"], 60)
        until(lambda: client.info("clients")["blocked_clients"])
        asyncio.run(service.close())
        client.rpush("left", "answer")
        assert waiting.result() == (b"left", b"answer")
