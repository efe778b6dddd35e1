"""What comes from proxies and from strangers, over real connections."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from threading import Thread
from typing import Any

import pytest

from bochner_client import AsyncClient, Client, InvalidAnswer, ServiceAway, Unavailable
from bochner_client.operations import Operations
from service_tests.client.conftest import Asked


@pytest.fixture
def proxy() -> Iterator[tuple[str, list[Any], list[float]]]:
    """Its address, the answers that it is to give, and when it was asked."""
    answers: list[Any] = []
    asked: list[float] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked.append(time.monotonic())
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, headers, body = answers.pop(0)
            self.send_response(status)
            usual = {"Content-Length": str(len(body)), "Content-Type": "application/json"}
            for name, value in (usual | headers).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_PUT = do_POST = do_DELETE = do_GET  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", answers, asked
        server.shutdown()


def test_pages_of_proxies_are_refusals_that_pass(proxy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    url, answers, _ = proxy
    pauses: list[float] = []
    monkeypatch.setattr("bochner_client.client.time.sleep", pauses.append)
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=1000), usegmt=True)
    answers += [(502, {}, b"<h1>Bad Gateway</h1>"), (503, {"Retry-After": soon}, b""), (504, {}, b""), (200, {}, b"{}")]
    with Client(url, patience=5000) as client:
        assert client.catalog() == {}
        assert 500 < pauses[1] <= 1001, "Retry-After was a date"
        answers += [(502, {}, b"<h1>Bad Gateway</h1>")]
        client.patience = 0
        with pytest.raises(Unavailable, match="502: Bad Gateway <h1>") as refused:
            client.catalog()
    assert (refused.value.slug, refused.value.instance) == ("", None)


def test_a_longer_pause_than_the_patience_is_not_begun(proxy: Any) -> None:
    url, answers, asked = proxy
    answers += [(503, {"Retry-After": "30"}, b"")]
    with Client(url, patience=10) as client, pytest.raises(Unavailable) as refused:
        client.catalog()
    assert refused.value.retry_after == 30
    assert len(asked) == 1


ROWS = [[1.0, 2.0]]
CALLS: dict[str, tuple[Any, ...]] = {
    "put_map": ("a", {}), "preview_map": ("a", {}), "get_map": ("a",), "list_maps": (), "iter_maps": (),
    "delete_map": ("a",), "get_array": ("a", "weights"), "export_map": ("a", "npz"), "local": ("a",),
    "transform": ("a", ROWS), "kernel": ("a", ROWS), "codes": ("a", ROWS), "similarity": ("a", ROWS, ROWS),
    "put_dataset": ("a", ROWS), "get_dataset": ("a",), "list_datasets": (), "iter_datasets": (),
    "delete_dataset": ("a",), "put_index": ("a", "m"), "get_index": ("a",), "list_indexes": (), "iter_indexes": (),
    "delete_index": ("a",), "upsert_vectors": ("a", [1], ROWS), "delete_vector": ("a", 1), "search_index": ("a", ROWS),
    "find_duplicates": ("a", 0.5), "start_duplicates": ("a", 0.5), "diagnose": ("a", "gram"),
    "start_diagnosis": ("a", "gram"), "draw_diagnosis": ("a", "gram"), "recommend": ({}, ROWS),
    "start_recommendation": ({}, ROWS), "draw_recommendation": ({}, ROWS), "advise": ("a", "d"),
    "start_advice": ("a", "d"), "draw_advice": ("a", "d"), "get_job": ("a",), "list_jobs": (), "iter_jobs": (),
    "watch_job": ("a",), "wait_for_job": ("a",), "cancel_job": ("a",), "get_job_result": ("a",),
    "get_job_picture": ("a",), "create_key": ("a", "read"), "list_keys": (), "revoke_key": ("a",), "live": (),
    "ready": (), "info": (), "catalog": (), "metrics": (), "problem": ("quota",), "openapi": (),
}  # fmt: skip
AWAY = {"Location": "https://login.example/"}
HTML = {"Content-Type": "text/html; charset=utf-8"}
NOTHING = {call for call in CALLS if call.startswith(("delete_", "revoke_"))} | {"watch_job"}


@pytest.mark.parametrize(
    ("status", "headers", "fine", "told"),
    [
        *((status, AWAY, set(), f"{status} .*, Location https://login.example/") for status in (301, 302, 307, 308)),
        (200, HTML, {"problem"}, "200 text/html"),
        (200, {"Content-Type": "text/csv"}, set(), "200 text/csv"),
        (204, {}, NOTHING, "204"),
    ],
)
def test_an_answer_of_another_kind_is_told(
    proxy: Any, loop: Any, status: int, headers: dict[str, str], fine: set[str], told: str
) -> None:
    url, answers, _ = proxy
    assert set(CALLS) == {name for name in vars(Operations) if name[0] != "_"}
    with Client(url) as client:
        awaited = AsyncClient(url)
        for asked, (call, given) in product((Asked(client, loop), Asked(awaited, loop)), CALLS.items()):
            answers[:] = [(status, headers, b"")] * 2  # where a job's events have ended, its record is asked for
            with nullcontext() if call in fine else pytest.raises(InvalidAnswer, match=f"expected 2.*, got {told}"):
                getattr(asked, call)(*given)
        loop.run_until_complete(awaited.aclose())


def test_what_a_job_has_made_is_found_by_its_link(proxy: Any) -> None:
    url, answers, _ = proxy
    with Client(url) as client:
        for link in ("https://login.example/", "/v1/keys/a"):
            answers[:] = [(303, {"Location": link}, b"")]
            with pytest.raises(InvalidAnswer):
                client.get_job_result("a")


def test_an_answer_that_breaks_off_is_asked_for_again(proxy: Any) -> None:
    url, answers, _ = proxy
    answers += [(200, {"Content-Length": "100", "Connection": "close"}, b'{"a"'), (200, {}, b'{"a": 1}')]
    with Client(url) as client:
        assert client.catalog() == {"a": 1}
        answers += [(200, {"Content-Length": "100", "Connection": "close"}, b'{"a"')]
        client.patience = 0
        with pytest.raises(ServiceAway) as away:
            client.catalog()
    assert not away.value.unsent


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "ALL_PROXY"])
def test_a_proxy_that_does_not_answer_is_named_without_its_password(
    loop: Any, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable.lower(), "http://someone:secret@127.0.0.1:9")
    for kind in (Client, AsyncClient):
        with pytest.raises(ServiceAway) as away:
            Asked(kind("http://me:hidden@far.test", patience=0), loop).info()
        assert str(away.value).startswith(
            "http://far.test does not answer: the proxy at http://127.0.0.1:9 did not answer"
        )
        assert away.value.unsent


def test_one_event_loop_after_another_may_use_a_client(proxy: Any) -> None:
    url, answers, asked = proxy
    client = AsyncClient(url)

    async def ask(n: int) -> None:
        answers.extend([(200, {}, b"{}")] * n)
        await asyncio.gather(*(client.catalog() for _ in range(n)))

    async def close() -> None:
        async with client:
            await ask(1)

    for _ in range(3):
        asyncio.run(ask(40))  # more than are under way at once
    asyncio.run(close())
    asyncio.run(close())
    assert len(asked) == 122
