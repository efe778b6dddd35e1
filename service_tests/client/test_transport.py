"""What comes from proxies and from strangers, over real connections."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest

from bochner_client import Client, InvalidAnswer, ServiceAway, Unavailable


@pytest.fixture
def proxy() -> Iterator[tuple[str, list[Any], list[float]]]:
    """Its address, the answers that it is to give, and when it was asked."""
    answers: list[Any] = []
    asked: list[float] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(time.monotonic())
            status, headers, body = answers.pop(0)
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
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


def test_what_is_no_answer_of_a_service_is_told(proxy: Any) -> None:
    url, answers, _ = proxy
    for answer in ((200, {}, b"<html>"), (204, {}, b""), (302, {"Location": "/elsewhere"}, b"")):
        answers.append(answer)
        with Client(url) as client, pytest.raises(InvalidAnswer):
            client.info()


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
