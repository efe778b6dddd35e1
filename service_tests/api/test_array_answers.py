"""Large answers, made block by block while they are sent."""

import asyncio
import http.client
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from starlette.responses import StreamingResponse

from app.api.admission import Admission
from app.api.array_answers import array_response
from app.api.negotiation import Wanted
from app.core.answers import RowBlocks
from app.core.arrays import Array
from app.formats import FORMATS
from app.settings import Settings
from service_tests.checks import NPY, array, npy, post_npy, put
from service_tests.running import Running, service


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


def test_pieces_are_small_enough_for_slow_readers() -> None:
    """A client has `client_timeout`, 30 seconds, for each: 9 kB a second are enough."""

    async def longest() -> int:
        return max([len(piece) async for piece in made(3, []).body_iterator])

    assert asyncio.run(longest()) == 1 << 18


def test_a_failure_halfway_is_no_end() -> None:
    async def read() -> None:
        async for _ in made(5, [], fails_at=3).body_iterator:
            pass

    with pytest.raises(MemoryError):
        asyncio.run(read())


def opened(running: Running) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(running.url.removeprefix("http://"), timeout=60)


@pytest.mark.nightly
def test_a_large_answer_takes_little_memory_while_it_is_read_and_while_nobody_reads_it(tmp_path: Path) -> None:
    """200 MB and more, of which a service holds two blocks."""
    columns, n = 2048, 25_000
    with service(tmp_path / "data") as running, running.client() as client:
        spec = {"input_dim": 8, "kernel": {"kind": "gaussian", "length_scale": 1.0}, "sampler": {"kind": "sobol"}}
        assert put(client, "large", {**spec, "s": columns // 2}).status_code == 201
        rows = np.random.default_rng(0).standard_normal((n, 8)).astype(np.float32)
        assert post_npy(client, "large/transform", rows[:1]).status_code == 200
        process, body = psutil.Process(running.process.pid), npy(rows)
        idle = most = process.memory_info().rss
        with closing(opened(running)) as line:
            line.request("POST", "/v1/maps/large/transform", body, {"Content-Type": NPY})
            answer = line.getresponse()
            assert answer.length is not None
            assert answer.length > columns * n * 4
            head = answer.read(1 << 16)
            while answer.read(1 << 20):
                most = max(most, process.memory_info().rss)
        found = np.frombuffer(head, np.float32, columns * 7, 128).reshape(7, columns)
        np.testing.assert_allclose(found, array(post_npy(client, "large/transform", rows[:7])), rtol=1e-6, atol=1e-6)
        assert most - idle < 64 << 20, f"{(most - idle) >> 20} MB more than idle"

        with closing(opened(running)) as line:
            line.request("POST", "/v1/maps/large/transform", body, {"Content-Type": NPY})
            assert line.getresponse().read(1000)
            for _ in range(10):  # nobody reads
                time.sleep(0.1)
                more = process.memory_info().rss - idle
                assert more < 64 << 20, f"{more >> 20} MB more than idle"
        assert post_npy(client, "large/transform", rows[:1]).status_code == 200
