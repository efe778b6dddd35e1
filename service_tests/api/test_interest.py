"""Work ends with the last client that wants it, and builds keep nobody else waiting."""

import asyncio
import time
from collections.abc import Iterator
from typing import Any, cast

import httpx
import pytest
from fastapi import Request
from starlette.requests import ClientDisconnect

from app.api.interest import Interest
from app.core.progress import TimedProgress, begin_anew
from service_tests.jobs.site import PROGRAM
from service_tests.running import Running, start, stop


class Client:
    """A client that may hang up."""

    def __init__(self) -> None:
        self.gone = asyncio.Event()

    async def receive(self) -> dict[str, Any]:
        await self.gone.wait()
        return {"type": "http.disconnect"}


async def turn(interest: Interest, client: Client, done: asyncio.Event, begins: bool = True) -> str:
    """What becomes of work that is done in steps until `done`, or waits for a place until then."""
    progress = TimedProgress(time.monotonic() + 600)
    try:
        async with interest.of(cast(Request, client), "work", [progress]) as mine:
            mine.begun = begins
            while not done.is_set():
                if begins:
                    progress.checkpoint(begin_anew)
                await asyncio.sleep(0.001)
    except ClientDisconnect:
        return "ended"
    return "done"


async def outcomes(leave: tuple[int, ...], begun: tuple[bool, ...]) -> list[str]:
    """What becomes of the turns of several clients who want the same, of whom some leave."""
    interest, done = Interest(), asyncio.Event()
    clients = [Client() for _ in begun]
    turns = [
        asyncio.create_task(turn(interest, *both)) for both in zip(clients, [done] * len(begun), begun, strict=True)
    ]
    await asyncio.sleep(0.01)
    for number in leave:
        clients[number].gone.set()
        await asyncio.sleep(0.01)
    done.set()
    found = await asyncio.gather(*turns)
    assert not interest._works
    return found


@pytest.mark.parametrize(
    ("leave", "begun", "expected"),
    [
        ((), (True,), ["done"]),
        ((0,), (True,), ["ended"]),
        ((0,), (False,), ["ended"]),
        ((0,), (True, False), ["done", "done"]),
        ((1,), (True, False), ["done", "ended"]),
        ((0, 1), (True, False), ["ended", "ended"]),
        ((1, 0), (True, False), ["ended", "ended"]),
    ],
)
def test_work_ends_with_the_last_who_wants_it(
    leave: tuple[int, ...], begun: tuple[bool, ...], expected: list[str]
) -> None:
    assert asyncio.run(outcomes(leave, begun)) == expected


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service with a slow Monte Carlo, a place for one build, and nobody to run jobs."""
    options = ("--max-builds", "1", "--threads", "1", "--max-requests", "4")
    running = start(tmp_path_factory.mktemp("narrow") / "data", *options, program=PROGRAM)
    yield running
    stop(running)


def jobs(http: httpx.Client) -> list[Any]:
    found: list[Any] = http.get("/v1/jobs?limit=1000").json()["jobs"]
    return found
