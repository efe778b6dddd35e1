import asyncio
import tracemalloc
import zlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import Request
from starlette.requests import ClientDisconnect
from starlette.types import Message

from app.api import admission
from app.api.admission import Sender, Senders
from app.api.bodies import read
from app.api.problems import Refusal
from app.settings import Settings
from service_tests import virtual_time
from service_tests.api.test_admission import of
from service_tests.running import Running, service

PLACES, CLIENTS, BODY_SECONDS = 4, 8, 3
KERNEL = {"kind": "gaussian", "length_scale": 1.0}
SPEC = {"input_dim": 2, "kernel": KERNEL, "sampler": {"kind": "sobol"}, "s": 4}
ROWS = b'{"vectors": [[1, 2]]}'


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service of few places."""
    options = ("--max-requests", str(PLACES), "--body-timeout", str(BODY_SECONDS))
    with service(tmp_path_factory.mktemp("narrow") / "data", *options) as running:
        with running.client() as http:
            http.put("/v1/maps/m", json=SPEC).raise_for_status()
        yield running


def after(seconds: float, **settings: Any) -> Refusal:
    """Why a client is refused of which nothing comes for so long, though it has begun."""

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(seconds)
        return {}

    async def run() -> None:
        with Sender(Senders(0), Settings(**settings)) as sender:
            sender.has_sent(10)
            await sender.waited_for(receive)

    with pytest.raises(Refusal) as refused:
        virtual_time.run(run())
    return refused.value


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"client_timeout": 0.1}, "client_timeout"),
        ({"body_timeout": 0.1}, "body_timeout"),
        ({"min_body_rate": 100}, "min_body_rate"),
        ({"min_body_rate": 100, "client_timeout": 0.05}, "client_timeout"),
    ],
)
def test_a_refusal_names_the_setting(settings: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "_SLOW_SECONDS", 0.3)
    refusal = after(30, **settings)
    assert refusal.slug == "request-timeout"
    assert refusal.members["limit"] == name
    assert refusal.members["setting"] == f"BOCHNER_{name.upper()}"
    assert str(refusal).startswith("10 bytes came in 0.")


@pytest.mark.parametrize(
    ("sizes", "makes_room"),
    [([0] * 10, True), ([1] * 10, True), ([1_000_000] + [0] * 9, True), ([1000] * 10, False)],
    ids=["nothing comes", "little comes", "much has come, and then nothing", "much comes"],
)
def test_only_who_is_slow_just_now_makes_room(
    sizes: list[int], makes_room: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "_SLOW_IN_THE_WAY_SECONDS", 0.5)
    there = Senders(0)

    async def never() -> dict[str, Any]:
        await asyncio.sleep(30)
        return {}

    async def send() -> str:
        with Sender(there, Settings(min_body_rate=1000)) as sender:
            for size in sizes:
                sender.has_sent(size)
                await asyncio.sleep(0.06)
            try:
                await asyncio.wait_for(sender.waited_for(never), 1)
            except Refusal as refusal:
                return str(refusal.members["limit"])
            except TimeoutError:
                return "none"
        return "received"

    async def run() -> tuple[bool, str]:
        sending = asyncio.create_task(send())
        await asyncio.sleep(0.75)
        made = there.make_room()
        assert not there.make_room(), "each makes room once"
        return made, await sending

    assert virtual_time.run(run()) == (makes_room, "min_body_rate" if makes_room else "none")
    assert not there.there


def test_no_key_has_more_memory_of_bodies_than_it_leaves_to_others_but_for_one_body() -> None:
    there, bodies = Senders(10), [dict[str, Any]() for _ in range(4)]
    a, b = of("a"), of("b")
    a.run(there.take, bodies[0], 3)
    a.run(there.take, bodies[1], 2)
    with pytest.raises(Refusal, match="5 bytes are in the bodies of this key; the 5 that are left are for others"):
        a.run(there.take, bodies[2], 1)
    a.run(there.give_back, bodies[0])
    b.run(there.take, bodies[3], 4)
    b.run(there.take, bodies[3], 4)  # a single body may have all that is left
    with pytest.raises(Refusal, match="the bodies of all requests take 10 bytes"):
        a.run(there.take, bodies[2], 1)
    for owner, body in ((a, bodies[1]), (b, bodies[3])):
        owner.run(there.give_back, body)
    a.run(there.take, bodies[0], 10)
    assert there.taken == 10


def test_what_comes_packed_and_stands_for_nothing_is_no_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = list[int]()
    monkeypatch.setattr(Sender, "has_sent", lambda _, size: counted.append(size))
    settings = Settings()
    context: Any = SimpleNamespace(admission=admission.Admission(settings), settings=settings)
    packing = zlib.compressobj()
    rows = [packing.compress(bytes(1000)) + packing.flush(zlib.Z_FULL_FLUSH), b"\0\0\0\xff\xff" * 100, packing.flush()]

    def sent(coding: bytes, pieces: list[bytes]) -> int:
        left = [*pieces]

        async def receive() -> Message:
            return {"type": "http.request", "body": left.pop(0), "more_body": bool(left)}

        scope = {"type": "http", "headers": [(b"content-encoding", coding)], "state": {}}
        counted.clear()
        asyncio.run(read(Request(scope, receive), context, lambda _: None))
        return sum(counted)

    assert sent(b"deflate", rows) == 1000
    assert sent(b"identity", rows) == sum(map(len, rows))


def test_what_is_announced_takes_no_memory_before_it_comes() -> None:
    settings = Settings()
    context: Any = SimpleNamespace(admission=admission.Admission(settings), settings=settings)
    left: list[Message] = [{"type": "http.request", "body": b"abc", "more_body": True}, {"type": "http.disconnect"}]

    async def receive() -> Message:
        return left.pop(0)

    scope = {"type": "http", "headers": [(b"content-length", b"60000000")], "state": {}}
    tracemalloc.start()
    try:
        with pytest.raises(ClientDisconnect):
            asyncio.run(read(Request(scope, receive), context, lambda _: None))
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_the_memory_of_bodies_counts_until_their_requests_are_over() -> None:
    there = Senders(10)
    first: dict[str, Any] = {}
    second: dict[str, Any] = {}
    there.take(first, 2)
    there.take(first, 4)
    there.take(second, 4)
    with pytest.raises(Refusal) as refused:
        there.take(second, 1)
    assert refused.value.slug == "overloaded"
    assert refused.value.members == {"limit": "max_bodies_bytes", "value": 10, "setting": "BOCHNER_MAX_BODIES_BYTES"}
    there.give_back(first)
    there.give_back(first)  # it has nothing any more
    there.take(second, 6)
    with pytest.raises(Refusal):
        there.take(first, 1)
