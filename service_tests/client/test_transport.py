"""What comes from proxies and from strangers, over real connections."""

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from inspect import signature
from itertools import product
from threading import Thread
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from bochner_client import AsyncClient, Client, DatasetRows, InvalidAnswer, ServiceAway, TooLarge, Unavailable
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

        do_PUT = do_POST = do_PATCH = do_DELETE = do_GET  # noqa: N815

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


@pytest.mark.parametrize("queries", [{"vectors": [[1.0]] * 5}, {"vectors": csr_array(np.eye(5))}, {"ids": [*range(5)]}])
def test_queries_that_are_too_many_are_sent_in_parts(proxy: Any, queries: dict[str, Any]) -> None:
    url, answers, asked = proxy
    too_large = (413, {"Content-Type": "application/problem+json"}, b'{"type": "/problems/too-large", "status": 413}')
    results = [json.dumps({"results": [{"ids": [i]} for i in some]}).encode() for some in ((0, 1), (2, 3), (4,))]
    answers += [too_large, too_large, *((200, {}, one) for one in results)]
    with Client(url) as client:
        found = client.search_index("i", **queries)
        assert [one.ids for one in found] == [[0], [1], [2], [3], [4]]
        assert len(asked) == 5  # five rows, three, two, two, and one
        answers += [too_large] * 4
        with pytest.raises(TooLarge):
            client.search_index("i", **queries)
        answers += [too_large]
        with pytest.raises(TooLarge):
            client.search_index("i", DatasetRows("d"))
    assert not answers


def test_a_longer_pause_than_the_patience_is_not_begun(proxy: Any) -> None:
    url, answers, asked = proxy
    answers += [(503, {"Retry-After": "30"}, b"")]
    with Client(url, patience=10) as client, pytest.raises(Unavailable) as refused:
        client.catalog()
    assert refused.value.retry_after == 30
    assert len(asked) == 1


GIVEN: dict[str, Any] = {key: [[1.0, 2.0]] for key in ("rows", "vectors", "x", "y")}
GIVEN |= dict.fromkeys(("name", "source", "map", "id", "dataset", "kind", "job", "key_id", "slug", "role"), "a")
GIVEN |= {
    "array": "weights",
    "file_format": "npz",
    "ids": [1],
    "min_similarity": 0.5,
    "hashes": 9,
    "spec": {},
    "kernel": {},
}
CALLS = [call for call in vars(Operations) if call[0] != "_"]
GONE = {call for call in CALLS if call.startswith(("delete_", "revoke_"))} - {"delete_vectors"} | {"watch_job"}
AWAY = {"Location": "https://login.example/"}


@pytest.mark.parametrize(
    ("status", "headers", "fine", "told"),
    [
        *((status, AWAY, set(), f"{status} .*, Location https://login.example/") for status in (301, 302, 307, 308)),
        (200, {"Content-Type": "text/html; charset=utf-8"}, {"problem"}, "200 text/html"),
        (200, {"Content-Type": "text/csv"}, set(), "200 text/csv"),
        (204, {}, GONE, "204"),
    ],
)
def test_an_answer_of_another_kind_is_told(
    proxy: Any, loop: Any, status: int, headers: dict[str, str], fine: set[str], told: str
) -> None:
    url, answers, _ = proxy
    with Client(url) as client:
        awaited = AsyncClient(url)
        for asked, call in product((Asked(client, loop), Asked(awaited, loop)), CALLS):
            answers[:] = [(status, headers, b"")] * 2  # where a job's events have ended, its record is asked for
            wanted = [one for one in signature(getattr(Client, call)).parameters.values() if one.default is one.empty]
            given = {one.name: GIVEN[one.name] for one in wanted if one.name not in ("self", "options")}
            with nullcontext() if call in fine else pytest.raises(InvalidAnswer, match=f"expected 2.*, got {told}"):
                getattr(asked, call)(**given)
        loop.run_until_complete(awaited.aclose())


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


def test_a_proxy_that_does_not_answer_is_named_without_its_password(loop: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("http_proxy", "http://someone:secret@127.0.0.1:9")
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

    async def ask() -> None:
        answers.extend([(200, {}, b"{}")] * 40)  # more than are under way at once
        await asyncio.gather(*(client.catalog() for _ in range(40)))

    for _ in range(3):
        asyncio.run(ask())
    assert len(asked) == 120
