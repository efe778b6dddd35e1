import asyncio
import gc
import threading
import time
from collections.abc import Iterator
from contextvars import Context
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from app.api.admission import Admission, Held, Readers, Senders
from app.api.interest import Shutdown
from app.api.middleware import Content, Delivery
from app.api.negotiation import streamed
from app.logs import ACCESS
from app.request_context import REQUEST, RequestContext
from app.settings import Settings
from service_tests.running import service
from service_tests.servers import until

QUEUED = {
    "input_dim": 3,
    "kernel": {"kind": "gaussian", "length_scale": 1.5},
    "sampler": {"kind": "weighted", "box": 1.0},
    "s": 1000,
}


def sent(app: Any, **scope: Any) -> list[Message]:
    """What a server is given to send by an application."""
    messages: list[Message] = []

    async def send(message: Message) -> None:
        messages.append(message)

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    asyncio.run(app({"type": "http", "method": "GET", "state": {}, "headers": [], **scope}, receive, send))
    return messages


def answering(*bodies: bytes) -> Any:
    """An application that answers in so many pieces."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        del receive
        await send({"type": "http.response.start", "status": 200, "headers": [(b"method", scope["method"].encode())]})
        for number, body in enumerate(bodies, 1):
            await send({"type": "http.response.body", "body": body, "more_body": number < len(bodies)})

    return app


@pytest.mark.parametrize(("size", "parts"), [(0, 1), (1 << 16, 1), ((1 << 16) + 1, 2)])
def test_an_answer_is_not_over_before_its_client_has_read_most_of_it(size: int, parts: int) -> None:
    """The server takes it as over once it has the last piece, and waits for its client before it takes that."""
    _, *bodies = sent(Delivery(answering(bytes(size)), 30.0, Shutdown(), Senders(0)))
    assert len(bodies) == parts
    assert sum(len(one["body"]) for one in bodies) == size
    assert [one["more_body"] for one in bodies] == [True] * (parts - 1) + [False]


def test_head_ends_with_the_head_of_the_answer() -> None:
    start, *bodies = sent(Content(answering(b"a", b"b", b"c"), Readers(0)), method="HEAD")
    assert start["headers"] == [(b"method", b"GET")]
    assert bodies == [{"type": "http.response.body", "body": b"", "more_body": False}]


@pytest.mark.nightly
def test_head_of_the_events_of_a_job_is_answered_and_over(tmp_path: Path) -> None:
    with service(tmp_path / "data", "--max-listeners", "1") as running, running.client() as http:
        job = http.put("/v1/maps/m", json=QUEUED, headers={"Prefer": "respond-async"}).json()["job"]

        def head() -> int:
            answer = http.head(f"{job}/events", timeout=20)
            assert not answer.content
            return answer.status_code

        for _ in range(3):
            until(lambda: head() == 200)  # the place of the one before is free at once, or nearly so
        with http.stream("GET", f"{job}/events") as stream:
            assert stream.status_code == 200
            assert head() == 503


def test_a_client_that_stops_reading_is_told_of_beside_the_log_of_requests(caplog: pytest.LogCaptureFixture) -> None:
    """Its lines have a form that no other message has."""
    aborted: list[bool] = []

    async def send(_: Message) -> None:
        await asyncio.Event().wait()

    delivery = Delivery(answering(b"a"), 0.01, Shutdown(), Senders(0))
    state = {"request_id": "abc", "abort": lambda: aborted.append(True)}
    scope: Scope = {"type": "http", "method": "GET", "state": state, "headers": []}
    asyncio.run(delivery(scope, lambda: asyncio.Event().wait(), send))  # type: ignore[arg-type, return-value]
    assert aborted
    told = [(record.name, record.getMessage()) for record in caplog.records]
    assert ("app.api.middleware", "request abc: the client stopped reading") in told
    assert not [name for name, _ in told if name == ACCESS]


def test_a_client_that_leaves_while_a_piece_waits_for_a_thread_leaves_no_failure_to_be_logged() -> None:
    failures, bodies = list[Any](), list[bytes]()

    async def play() -> None:
        loop, begun, goes_on = asyncio.get_running_loop(), threading.Event(), threading.Event()
        loop.set_exception_handler(lambda _, failure: failures.append(failure))
        admission, left, others = Admission(Settings(threads=1)), loop.create_future(), list[asyncio.Task[None]]()
        REQUEST.set(RequestContext("", left=left))
        gone = asyncio.Event()

        def work() -> None:
            begun.set()
            goes_on.wait()

        def make() -> Iterator[bytes]:
            loop.call_soon_threadsafe(
                lambda: others.append(asyncio.create_task(admission.compute(work), context=Context()))
            )
            while not admission.waiting["compute"]:
                time.sleep(0)
            yield b"a"
            yield b"b"

        async def receive() -> Message:
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.body":
                bodies.append(message["body"])
                await asyncio.to_thread(begun.wait)
                while not admission.waiting["compute"]:
                    await asyncio.sleep(0)
                gone.set()
                for _ in range(9):  # until the answer knows it
                    await asyncio.sleep(0)
                left.set_result(None)

        await streamed(make(), Held(0), {}, "text/plain", admission)({"type": "http", "state": {}}, receive, send)
        goes_on.set()
        await asyncio.gather(*others)

    asyncio.run(play())
    gc.collect()
    assert (bodies, failures) == ([b"a"], [])
