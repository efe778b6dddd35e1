import asyncio
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from starlette.types import Message, Receive, Scope, Send

from app.api.readers import HELD, NoRoom, Reader, Readers, counted
from service_tests.checks import NPY, npy, put
from service_tests.running import service

LONG = 1 << 20


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which stands still until a test changes it."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_answers_have_so_much_memory_together_and_one_always_has_room() -> None:
    readers = Readers(100)
    first, second = Reader(60, None), Reader(40, None)
    readers.enter(first)
    readers.enter(second)
    with pytest.raises(NoRoom, match="take 100 bytes"):
        readers.enter(Reader(1, None))
    readers.leave(first)
    readers.leave(first)
    with pytest.raises(NoRoom):
        readers.enter(Reader(61, None))
    readers.enter(Reader(60, None))
    alone = Readers(100)
    alone.enter(Reader(1000, None))
    with pytest.raises(NoRoom):
        alone.enter(Reader(1, None))


def test_who_reads_slowest_makes_room_and_who_reads_does_not(clock: list[float]) -> None:
    gone: list[str] = []
    readers = Readers(100)

    def reader(name: str, nbytes: int, since: float) -> Reader:
        made = Reader(nbytes, lambda: gone.append(name))
        readers.enter(made)
        made.waited_for_since = since
        return made

    reader("quick", 20, clock[0])
    slow = reader("slow", 40, clock[0] - 3)
    reader("slower", 40, clock[0] - 5)
    reader("new", 30, clock[0])
    assert gone == ["slower"]
    with pytest.raises(NoRoom):
        reader("too long", 90, clock[0])
    assert gone == ["slower", "slow"]
    readers.leave(slow)  # as it ends
    reader("newer", 50, clock[0])
    with pytest.raises(NoRoom):
        reader("one more", 1, clock[0])


def answered(readers: Readers, size: int, state: dict[str, Any], meanwhile: Callable[[], None]) -> list[Message]:
    """What is sent of an answer of so many bytes; something happens before its body is sent."""
    sent: list[Message] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive
        headers = [(b"content-length", str(size).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        meanwhile()
        await send({"type": "http.response.body", "body": bytes(size)})

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    scope = {"type": "http", "path": "/", "headers": [], "state": {"request_id": "an id", **state}}

    async def run() -> None:
        await counted(app, readers)(scope, receive, send)

    asyncio.run(run())
    return sent


@pytest.mark.parametrize(
    ("size", "state", "room"),
    [(LONG, {}, False), (1 << 16, {}, True), (LONG, {HELD: 1 << 16}, True), (10, {HELD: LONG}, False)],
    ids=["long", "short", "in blocks", "of an array"],
)
def test_long_answers_count_while_they_are_sent_by_what_they_hold(size: int, state: dict[str, Any], room: bool) -> None:
    readers, found = Readers(LONG), []

    def look() -> None:
        try:
            readers.enter(Reader(1, None))
            found.append(True)
        except NoRoom:
            found.append(False)

    assert [one["type"] for one in answered(readers, size, state, look)] == [
        "http.response.start",
        "http.response.body",
    ]
    look()
    assert found == [room, True]


def test_an_answer_without_room_is_refused_and_none_of_it_is_sent() -> None:
    readers = Readers(LONG)
    readers.enter(Reader(LONG, None))
    start, body = answered(readers, LONG, {}, pytest.fail)
    assert start["status"] == 503
    assert (b"retry-after") in dict(start["headers"])
    assert b'"setting":"BOCHNER_MAX_ANSWERS_BYTES"' in body["body"]


@pytest.mark.nightly
def test_answers_that_nobody_reads_make_room_for_others(tmp_path: Path) -> None:
    """Two answers of 36 MB fit: a third waits for nobody, and a second later takes the place of one."""
    with service(tmp_path / "data", "--max-answers-bytes", "80000000") as running, running.client() as http:
        spec = {"kernel": {"kind": "gaussian", "length_scale": 1.0}, "sampler": {"kind": "monte_carlo"}}
        assert put(http, "m", {**spec, "input_dim": 1, "s": 1}).status_code == 201
        body = npy(np.ones((3000, 1), np.float32))

        def ask() -> httpx.Response:
            return http.post("/v1/maps/m/kernel", content=body, headers={"Content-Type": NPY})

        assert len(ask().content) > 36_000_000
        with ExitStack() as lines:
            for _ in range(2):
                line = lines.enter_context(socket.socket())
                line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                line.connect(("127.0.0.1", httpx.URL(running.url).port))
                head = f"POST /v1/maps/m/kernel HTTP/1.1\r\nHost: here\r\nContent-Type: {NPY}\r\nContent-Length: "
                line.sendall(f"{head}{len(body)}\r\n\r\n".encode() + body)
                assert line.recv(12) == b"HTTP/1.1 200"
            refused = ask()
            assert (refused.status_code, refused.json()["limit"]) == (503, "max_answers_bytes")
            time.sleep(1.5)
            assert ask().status_code == 200
            assert ask().status_code == 200
            line.settimeout(10)
            assert line.recv(1) != b"", "only the one that waited longest is given up"
