import asyncio
import math
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from contextvars import Context, copy_context
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import ClientDisconnect

from app.api.admission import Admission, Asked, Places, Turns, end_if_left
from app.api.problems import Refusal
from app.request_context import REQUEST, RequestContext, current_owner
from app.settings import Settings
from service_tests.checks import JSON, assert_problem, post, put
from service_tests.running import Running, service

BODY = b'{"vectors": [[1, 2, 3]]}'


@pytest.fixture(scope="module")
def narrow(running: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service that lets two requests in at a time, on the shared store."""
    options = ("--redis-url", running.socket, "--max-requests", "2")
    with service(tmp_path_factory.mktemp("narrow") / "data", *options) as one:
        yield one


def held_back(running: Running) -> socket.socket:
    """A transform that is inside, and whose body has begun but not ended."""
    line = socket.create_connection(("127.0.0.1", httpx.URL(running.url).port), timeout=30)
    head = f"POST /v1/maps/standing-cos_sin/transform HTTP/1.1\r\nHost: here\r\nContent-Type: {JSON}\r\n"
    head += f"Content-Length: {len(BODY)}\r\nConnection: close\r\nExpect: 100-continue\r\n\r\n"
    line.sendall(head.encode())
    assert line.recv(1 << 16).startswith(b"HTTP/1.1 100"), "nobody asks for the body"
    line.sendall(BODY[:5])
    return line


def status(line: socket.socket) -> bytes:
    received = b""
    while chunk := line.recv(1 << 16):
        received += chunk
    return received[:12]


def test_no_key_has_more_places_than_it_leaves_to_others() -> None:
    places = Places("max_listeners", 8, "listen")
    contexts = {owner: of(owner) for owner in ("a", "b", "c", "")}
    taken = [owner for owner, n in (("a", 4), ("b", 2), ("c", 1), ("", 1)) for _ in range(n)]
    for i, owner in enumerate(taken):
        contexts[owner].run(places.__enter__)
        if owner not in taken[i + 1 :]:
            with pytest.raises(Refusal, match="for others" if places.taken < 8 else "^8 listen$"):
                contexts[owner or "a"].run(places.__enter__)
    for owner in taken:
        contexts[owner].run(places.__exit__)
    assert places.taken == 0


def of(owner: str) -> Context:
    """A context in which a request of this key is in work."""
    context = copy_context()
    context.run(REQUEST.set, RequestContext("", owner=owner))
    return context


def test_the_key_that_has_had_least_has_its_turn_and_who_leaves_has_none() -> None:
    async def play() -> None:
        turns, done = Turns(1), list[str]()

        async def work(name: str) -> None:
            async def do() -> None:
                done.append(name)
                await asyncio.sleep(0.001)

            await turns.run(do)

        tasks = {
            name: asyncio.create_task(work(name), context=of(name[0])) for name in ("a1", "a2", "a3", "a4", "b1", "c1")
        }
        await asyncio.sleep(0)
        assert (done, turns.waiting) == (["a1"], 5)
        tasks["a3"].cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)
        assert (done, turns.waiting) == (["a1", "b1", "c1", "a2", "a4"], 0)
        await work("last")
        busy, order = Turns(1), list[str]()
        first = asyncio.create_task(busy.run(partial(asyncio.sleep, 0.01)), context=of("a"))
        await asyncio.sleep(0)
        busy._used |= {"a": 100.0, "b": 7.0}

        async def note(name: str) -> None:
            order.append(name)
            busy._used[name] += 1.5

        late = [asyncio.create_task(busy.run(partial(note, name)), context=of(name)) for name in "baccb"]
        await asyncio.gather(first, *late)
        assert order == ["c", "b", "c", "a", "b"], "who comes anew is not before the others for long"
        two = Turns(2)  # the other is kept for b, which has worked just now
        await asyncio.create_task(two.run(partial(asyncio.sleep, 0)), context=of("b"))
        working = [asyncio.create_task(two.run(asyncio.Event().wait), context=of("a")) for _ in range(3)]
        await asyncio.sleep(0)
        assert two.waiting == 2
        await asyncio.create_task(two.run(partial(asyncio.sleep, 0)), context=of("b"))
        for one in working:
            one.cancel()
        await asyncio.gather(*working, return_exceptions=True)
        assert two.waiting == 0
        await asyncio.gather(*(two.run(partial(asyncio.sleep, 0)) for _ in range(3)))

    asyncio.run(play())


def test_a_key_that_comes_after_a_pause_finds_a_thread_though_another_has_taken_all() -> None:
    async def play() -> None:
        turns, goes_on, begun = Turns(2, spare=1), asyncio.Event(), list[str]()

        async def work(name: str) -> None:
            async def do() -> None:
                begun.append(name)
                await goes_on.wait()

            await turns.run(do)

        tasks = [asyncio.create_task(work(name), context=of(name)) for name in "aaabbc"]
        await asyncio.sleep(0)
        assert (begun, turns.waiting) == (["a", "a", "b"], 3)
        goes_on.set()
        await asyncio.gather(*tasks)
        assert sorted(begun[3:]) == ["a", "b", "c"]

    asyncio.run(play())


def test_no_key_has_more_calls_to_the_store_than_it_leaves_to_others_and_who_hangs_up_before_its_turn_has_none() -> (
    None
):
    async def play() -> None:
        admission, goes_on, done = Admission(Settings(max_connections=108)), threading.Event(), list[str]()

        def call(name: str, left: "asyncio.Future[None] | None" = None) -> asyncio.Task[None]:
            def work() -> None:
                goes_on.wait()
                done.append(name)

            context = copy_context()
            context.run(REQUEST.set, RequestContext("", owner=name, left=left))
            return asyncio.create_task(admission.ask(work), context=context)

        left = asyncio.get_running_loop().create_future()
        running = [call(name) for name in "ab" * 16]  # all threads for it
        waiting = [call("a") for _ in range(3)]
        gone = call("c", left)
        await asyncio.sleep(0)
        assert admission.waiting["store"] == 4
        with pytest.raises(Refusal, match="19 places are this key's; the 18 that are left are for others"):
            await call("a")
        left.set_result(None)
        with pytest.raises(ClientDisconnect):
            await gone
        assert admission.waiting["store"] == 3
        goes_on.set()
        await asyncio.gather(*running, *waiting, call("d"))
        assert (Counter(done), admission.waiting["store"]) == ({"a": 19, "b": 16, "d": 1}, 0)

    asyncio.run(play())


def test_work_ends_at_its_next_pause_once_its_client_has_left() -> None:
    async def play() -> None:
        admission, begun, goes_on = Admission(Settings(threads=1)), threading.Event(), threading.Event()

        def work() -> None:
            end_if_left()
            begun.set()
            goes_on.wait()
            end_if_left()
            pytest.fail("computed for nobody")

        left = asyncio.get_running_loop().create_future()
        REQUEST.set(RequestContext("", left=left))
        running = asyncio.create_task(admission.compute(work))
        await asyncio.to_thread(begun.wait)
        left.set_result(None)
        goes_on.set()
        with pytest.raises(ClientDisconnect):
            await running

    asyncio.run(play())


@pytest.mark.parametrize("kind", ["compute", "file"])
def test_what_waits_for_a_thread_for_a_client_that_leaves_is_not_begun(kind: str) -> None:
    async def play() -> None:
        admission, goes_on = Admission(Settings(threads=1)), threading.Event()
        run = admission.compute if kind == "compute" else admission.read_file
        running = asyncio.create_task(run(goes_on.wait))
        await asyncio.sleep(0)
        left = asyncio.get_running_loop().create_future()
        REQUEST.set(RequestContext("", left=left))
        waiting = asyncio.create_task(run(lambda: pytest.fail("computed for nobody")))
        await asyncio.sleep(0)
        assert admission.waiting[kind] == 1
        left.set_result(None)
        with pytest.raises(ClientDisconnect):
            await waiting
        assert await admission.compute(lambda: "for several", brief=True) == "for several"
        goes_on.set()
        assert await running

    asyncio.run(play())


def test_keys_take_turns_in_long_work_and_there_is_none_for_who_finds_no_place_in_time() -> None:
    async def play() -> None:
        admission, goes_on, done = Admission(Settings()), threading.Event(), list[str]()

        async def run(name: str, ends_at: float = math.inf) -> bool | None:
            def work() -> bool:
                goes_on.wait()
                done.append(name)
                return True

            return await admission.run_by(ends_at, admission.building, work)

        tasks = [asyncio.create_task(run(name), context=of(name)) for name in "aaab"]
        await asyncio.sleep(0)
        assert (await run("late", 0), admission.building.waiting) == (None, 3)
        goes_on.set()
        assert (await asyncio.gather(*tasks), done) == ([True] * 4, ["a", "b", "a", "a"])

    asyncio.run(play())


def test_who_asks_one_at_a_time_shares_the_answer_that_is_coming_and_gets_no_older_one() -> None:
    async def play() -> None:
        asked, comes = list[str](), asyncio.Event()

        async def ask(about: str) -> int:
            asked.append(current_owner() + about)
            await comes.wait()
            return len(asked)

        for one_at_a_time, answers, by in ((True, {1}, ""), (False, {2}, "a")):
            asked.clear()
            comes.clear()
            question = Asked(ask, one_at_a_time)
            first = asyncio.create_task(question("x"), context=of("a"))
            await asyncio.sleep(0.01)
            others = [asyncio.create_task(question("x"), context=of("b")) for _ in range(3)]
            await asyncio.sleep(0.01)
            first.cancel()
            comes.set()
            assert ({*await asyncio.gather(*others)}, asked[0]) == (answers, by + "x")
            assert await question("x") == max(answers) + 1

    asyncio.run(play())


def test_more_requests_than_allowed_are_turned_away_and_the_others_served(
    narrow: Running, standing: dict[str, str], gaussian: dict[str, Any]
) -> None:
    path = f"{standing['cos_sin']}/transform"
    with narrow.client() as http, ExitStack() as stack:
        assert post(http, path, BODY).status_code == 200
        inside = [stack.enter_context(held_back(narrow)) for _ in range(2)]
        refused = post(http, path, BODY)
        assert assert_problem(http, refused, 503, "overloaded")["detail"].startswith("2 requests")
        assert refused.headers["retry-after"] == "1"
        assert_problem(http, put(http, "turned-away", gaussian), 503, "overloaded")
        assert_problem(http, http.get("/v1/maps/standing-cos_sin/weights"), 503, "overloaded")
        for free in ("/health/live", "/health/ready", "/v1/info", "/v1/maps", "/v1/maps/standing-cos_sin"):
            assert http.get(free).status_code == 200
        for line in inside:
            line.sendall(BODY[5:])
            assert status(line) == b"HTTP/1.1 200"
        assert post(http, path, BODY).status_code == 200
        assert http.get("/v1/maps/turned-away").status_code == 404


def test_what_passes_all_that_may_be_kept_is_refused_and_a_deletion_makes_room(tmp_path: Path, gaussian: Any) -> None:
    with service(tmp_path / "data", "--max-store-names", "1") as running, running.client() as http:
        assert put(http, "a", gaussian).status_code == 201
        told = assert_problem(http, put(http, "b", gaussian), 507, "quota")
        assert (told["limit"], told["value"], told["setting"]) == ("max_store_names", 1, "BOCHNER_MAX_STORE_NAMES")
        assert http.delete("/v1/maps/a").status_code == 204
        assert put(http, "b", gaussian).status_code == 201
