import asyncio
import time
from collections.abc import Callable
from contextvars import Context
from typing import Any

import numpy as np
import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from app.api.admission import HELD, Admission, Held, NoRoom, Reader, Readers
from app.api.middleware import Content
from app.api.negotiation import encoded_response
from app.formats.open_inference import Output, encode
from app.settings import Settings
from service_tests.api.test_admission import of

LONG = 1 << 20


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which stands still until a test changes it."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_who_reads_slowest_makes_room_and_who_reads_does_not(clock: list[float]) -> None:
    gone: list[str] = []
    readers = Readers(100)

    def reader(name: str, nbytes: int, since: float) -> Reader:
        made = Reader(Held(nbytes), lambda: gone.append(name))
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


def test_no_key_has_more_memory_of_answers_than_it_leaves_to_others_but_for_one_answer() -> None:
    readers, a = Readers(100), of("a")
    first = a.run(Reader, Held(30), None)
    a.run(readers.enter, first)
    a.run(readers.enter, a.run(Reader, Held(20), None))
    with pytest.raises(NoRoom, match="50 bytes are in the answers of this key; the 50 that are left are for others"):
        a.run(readers.enter, a.run(Reader, Held(1), None))
    of("b").run(readers.enter, of("b").run(Reader, Held(50), None))
    readers.leave(first)
    a.run(readers.enter, a.run(Reader, Held(5), None))
    assert readers.taken == 75


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

    scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "state": {"request_id": "an id", **state}}

    async def run() -> None:
        await Content(app, readers)(scope, receive, send)

    asyncio.run(run())
    return sent


@pytest.mark.parametrize(
    ("size", "state", "room"),
    [(LONG, {}, False), (1 << 16, {}, True), (LONG, {HELD: Held(1 << 16)}, True), (10, {HELD: Held(LONG)}, False)],
    ids=["long", "short", "in blocks", "of an array"],
)
def test_long_answers_count_while_they_are_sent_by_what_they_hold(size: int, state: dict[str, Any], room: bool) -> None:
    readers, found = Readers(LONG), []

    def look() -> None:
        try:
            readers.enter(Reader(Held(1), None))
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
    readers.enter(Reader(Held(LONG), None))
    start, body = answered(readers, LONG, {}, pytest.fail)
    assert start["status"] == 503
    assert (b"retry-after") in dict(start["headers"])
    assert b'"setting":"BOCHNER_MAX_ANSWERS_BYTES"' in body["body"]


def test_maps_and_rows_of_datasets_count_once_until_no_answer_holds_them() -> None:
    """Whether the cache still has them or not, and apart from what answers have of their own."""
    readers, rows = Readers(100), Held(10, {1: 80})
    first, second = Reader(rows, None), Reader(rows, None)
    for one, taken in ((first, 90), (second, 100)):
        readers.enter(one)
        assert readers.taken == taken
    with pytest.raises(NoRoom):
        readers.enter(Reader(Held(1, {2: 40}), None))
    ordinary, large = Reader(Held(80), None), Reader(Held(1, {2: 999}), None)
    readers.enter(ordinary)
    with pytest.raises(NoRoom):
        readers.enter(Reader(Held(1, {1: 80}), None))
    readers.leave(ordinary)
    readers.leave(first)
    assert readers.taken == 90
    readers.leave(second)
    assert readers.taken == 0
    readers.enter(Reader(Held(90), None))
    readers.enter(large)  # as nothing else is shared
    readers.enter(Reader(Held(1, {2: 999}), None))


def test_a_key_that_holds_a_map_gets_another_only_if_as_much_is_left_to_others() -> None:
    readers, a = Readers(100), of("a")

    def enter(owner: Context, held: Held) -> None:
        owner.run(readers.enter, owner.run(Reader, held, None))

    enter(a, Held(1, {1: 40}))
    enter(a, Held(1, {1: 40}))
    enter(a, Held(1, {2: 20}))
    with pytest.raises(NoRoom, match="60 bytes are in the answers of this key; the 40 that are left are for others"):
        enter(a, Held(1, {3: 1}))
    enter(of("b"), Held(1, {3: 40}))
    enter(a, Held(1, {3: 40}))


def test_text_that_goes_before_binary_tensors_counts_beside_them() -> None:
    rows = np.full((1 << 15, 8), 1 / 3)
    outputs = [(Output("features", False), rows), (Output("codes", True), rows)]
    encoded, text_bytes = encode(None, "a map", outputs)
    assert text_bytes is not None
    assert text_bytes > 16 * rows.size
    state: dict[str, Any] = {}

    async def run() -> None:
        response = encoded_response(encoded, {"features": rows, "codes": rows}, "x", {}, Admission(Settings(threads=1)))

        async def forever() -> Message:
            return await asyncio.Future()

        async def leave(_: Message) -> None:
            raise ClientDisconnect

        await response({"type": "http", "state": state}, forever, leave)

    asyncio.run(run())
    assert state[HELD].own == 2 * rows.nbytes + text_bytes
