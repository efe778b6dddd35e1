"""Large answers, made block by block while they are sent."""

import asyncio
import http.client
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse

from app.api.admission import Admission, Held
from app.api.negotiation import Wanted, array_response, streamed
from app.core.arrays import Array, RowBlocks
from app.formats import FORMATS
from app.settings import Settings
from app.store.errors import Gone
from service_tests.checks import NPY
from service_tests.running import Running


def made(blocks: int, made: list[int], fails_at: int | None = None) -> StreamingResponse:
    """An answer in blocks, which are counted as they are made."""

    def make(block: slice) -> Array:
        if block.start == fails_at:
            raise MemoryError
        made.append(block.start)
        return np.full((1, 1 << 17), block.start, np.float32)

    rows = RowBlocks((blocks, 1 << 17), np.dtype(np.float32), [slice(i, i + 1) for i in range(blocks)], make)
    response = array_response({"features": rows}, Wanted("*/*", (FORMATS[NPY],)), Admission(Settings(threads=1)))
    assert isinstance(response, StreamingResponse)
    return response


def test_a_reader_that_pauses_has_two_blocks_made_and_no_more() -> None:
    count: list[int] = []

    async def read_slowly() -> int:
        pieces = aiter(made(10, count).body_iterator)
        for _ in range(2):  # the header, and a block
            await anext(pieces)
        await asyncio.sleep(0.3)
        return len(count)

    assert asyncio.run(read_slowly()) == 2


def test_a_client_that_leaves_has_no_more_blocks_made() -> None:
    count: list[int] = []

    async def leave() -> int:
        left = asyncio.Event()

        async def receive() -> dict[str, str]:
            await left.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if len(message.get("body", b"")) > 1000:
                left.set()
            await asyncio.sleep(0.01)

        await made(100, count)({"type": "http", "state": {}}, receive, send)
        there = len(count)
        await asyncio.sleep(0.2)
        assert len(count) <= there + 1
        return there

    assert 1 <= asyncio.run(leave()) <= 4


def test_an_answer_breaks_off_with_one_line_in_the_log_when_its_source_is_deleted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sent = list[Any]()

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> None:
        await asyncio.Event().wait()

    def blocks() -> Iterator[bytes]:
        yield b"first"
        raise Gone("map 'm' was deleted")

    response = streamed(blocks(), Held(1), {}, "text/plain", Admission(Settings(threads=1)))
    asyncio.run(response({"type": "http", "state": {}}, receive, send))  # type: ignore[arg-type]
    assert [bytes(one["body"]) for one in sent[1:]] == [b"first"]
    assert sent[-1]["more_body"], "nobody is told that this is all"
    assert caplog.messages == ["an answer ends before its end: map 'm' was deleted"]


def test_a_client_that_leaves_before_a_block_has_its_turn_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    count, sent, compute = list[int](), list[Any](), Admission.compute

    async def give_up(admission: Admission, work: Any) -> Any:
        if len(count) == 3:
            raise ClientDisconnect
        return await compute(admission, work)

    monkeypatch.setattr(Admission, "compute", give_up)

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(made(10, count)({"type": "http", "state": {}}, receive, send))
    assert len(count) == 3
    assert len(sent) > 3
    assert all(message["more_body"] for message in sent[1:])


def opened(running: Running) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(running.url.removeprefix("http://"), timeout=60)
