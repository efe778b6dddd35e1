"""Work ends with the last client that wants it, and builds keep nobody else waiting."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from fastapi import Request
from starlette.requests import ClientDisconnect

from app.api.interest import Interest
from app.core.progress import TimedProgress, begin_anew
from service_tests.api.test_waiting_clients import QUICK, SLOW, waiting
from service_tests.checks import assert_problem, put
from service_tests.jobs.program import LONG_CALL
from service_tests.jobs.site import PROGRAM
from service_tests.running import Running, start, stop
from service_tests.servers import until


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


def test_what_nobody_waits_for_becomes_no_job() -> None:
    async def begun() -> None:
        client = Client()
        client.gone.set()
        async with Interest().of(cast(Request, client), "work", []):
            raise AssertionError("begun for nobody")

    with pytest.raises(ClientDisconnect):
        asyncio.run(begun())


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


@pytest.mark.nightly
def test_builds_keep_out_nobody_but_builds_and_what_is_there_is_answered_first(narrow: Running, name: str) -> None:
    with narrow.client() as http:
        assert put(http, name, QUICK).status_code == 201
        with ExitStack() as clients:
            others = (f"{name}-{number}" for number in count())

            def taken() -> bool:
                # A slow one that finds the place of builds taken, as by a quick one just now, is turned away.
                clients.enter_context(waiting(narrow, f"{name}-slow", SLOW))
                return put(http, next(others), QUICK).status_code == 503

            until(taken)
            refused = assert_problem(http, put(http, next(others), QUICK), 503, "overloaded")
            assert (refused["limit"], refused["value"], refused["setting"]) == ("max_builds", 1, "BOCHNER_MAX_BUILDS")
            for _ in range(5):
                assert put(http, name, QUICK).status_code == 200
                assert_problem(http, put(http, name, QUICK | {"s": 8}), 409, "map-exists")
                answer = http.post(f"/v1/maps/{name}/transform", json={"vectors": [[1, 2, 3]]})
                assert answer.status_code == 200
        until(lambda: put(http, next(others), QUICK).status_code == 201)
        assert http.get(f"/v1/maps/{name}-slow").status_code == 404
        assert jobs(http) == []


@pytest.mark.nightly
@pytest.mark.parametrize("s", [SLOW["s"], LONG_CALL], ids=["in steps", "in one long call"])
def test_clients_that_leave_at_once_leave_no_work(narrow: Running, name: str, s: int) -> None:
    with narrow.client() as http:
        for number in range(20):
            waiting(narrow, f"{name}-{number}", SLOW | {"s": s}).close()
        until(lambda: put(http, name, QUICK).status_code == 201)
        assert jobs(http) == []
        assert http.get(f"/v1/maps?prefix={name}-").json()["maps"] == []


@pytest.mark.nightly
def test_a_build_that_another_waits_for_goes_on_without_its_first_client(tmp_path: Path) -> None:
    running = start(tmp_path / "data", "--threads", "1", program=PROGRAM)
    try:
        spec = SLOW | {"s": 4}
        with running.client(Prefer="wait=30") as http, waiting(running, "m", spec) as first:
            time.sleep(0.5)
            leaving = threading.Timer(0.5, first.close)
            leaving.start()
            answer = http.put("/v1/maps/m", json=spec)
            leaving.join()
            assert answer.status_code == 200, "it was built for the first"
            assert jobs(http) == []
    finally:
        stop(running)
