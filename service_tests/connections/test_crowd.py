import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import httpx
import psutil
import pytest

from app.connections import make_room
from service_tests.cases import each
from service_tests.connections.wire import LIVE, answers, asked, connected, received, refusal
from service_tests.running import Running, service
from service_tests.servers import until

MOST, BUSY = 20, float("inf")
SPEC = {"input_dim": 1, "kernel": {"kind": "gaussian", "length_scale": 1.0}, "sampler": {"kind": "sobol"}, "s": 1}
LAST = LIVE + b"Connection: close\r\n\r\n"


@each(
    ("waits_since", "has_asked", "gone"),
    [
        ((3, 1, 2), (), 1),
        ((3, 1, 2), (1,), 2),  # silent ones first
        ((BUSY, 2, 1), (1, 2), 2),  # not those at work
        ((BUSY, BUSY, 11, 5), (), 3),  # not those that just stopped to read
    ],
)
def test_who_has_waited_longest_makes_room(waits_since: list[float], has_asked: list[int], gone: int) -> None:
    others: list[Any] = [
        SimpleNamespace(transport=Mock(), waits_since=since, has_asked=number in has_asked, is_leaving=False)
        for number, since in enumerate(waits_since)
    ]
    assert make_room(others, len(others), now=10)
    assert [one.transport.abort.called for one in others] == [number == gone for number in range(len(others))]
    assert others[gone].is_leaving


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service that takes few connections."""
    options = ("--max-connections", str(MOST), "--max-requests", str(MOST), "--client-timeout", "3")
    with service(tmp_path_factory.mktemp("narrow") / "data", *options) as running:
        yield running


@pytest.mark.gate
def test_connections_that_wait_keep_nobody_out(narrow: Running) -> None:
    with ExitStack() as lines:
        for _ in range(3 * MOST):
            lines.enter_context(connected(narrow))
        assert [one.status_code for one in asked(narrow, LAST)] == [200]
        assert len(psutil.Process(narrow.process.pid).net_connections("tcp")) <= MOST + 2


@pytest.mark.nightly
def test_where_all_are_at_work_one_more_is_refused(narrow: Running) -> None:
    head = LIVE.replace(b"GET /health/live", b"PUT /v1/maps/none")
    head += b"Content-Type: application/json\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n"
    with ExitStack() as lines:
        busy = [lines.enter_context(connected(narrow)) for _ in range(MOST)]
        for line in busy:
            line.sendall(head)
            assert line.recv(1 << 16).startswith(b"HTTP/1.1 100")
        with connected(narrow) as late:
            document = refusal(answers(received(late))[0], 503, "overloaded")
        assert (document["limit"], document["value"]) == ("max_connections", MOST)
        assert document["setting"] == "BOCHNER_MAX_CONNECTIONS"
        assert [line.recv(1 << 16)[:12] for line in busy] == [b"HTTP/1.1 408"] * MOST
    assert [one.status_code for one in asked(narrow, LAST)] == [200]


def test_who_asks_ahead_makes_room_though_the_first_of_its_requests_is_at_work(tmp_path: Path) -> None:
    with service(tmp_path / "data", "--max-connections", "2", "--job-workers", "0") as running, ExitStack() as lines:
        with running.client() as http:
            http.put("/v1/maps/m", json=SPEC).raise_for_status()
            body, headers = {"vectors": [[1.0], [2.0]]}, {"Prefer": "respond-async", "Connection": "close"}
            job = http.post("/v1/maps/m/diagnostics/gram", json=body, headers=headers).headers["location"]
        watch = LIVE.replace(b"/health/live", job.encode() + b"/events") + b"\r\n"
        busy = [lines.enter_context(connected(running)) for _ in range(2)]
        for line in busy:
            line.sendall(watch)
            assert line.recv(1 << 16).startswith(b"HTTP/1.1 200")
        with connected(running) as late:
            refusal(answers(received(late))[0], 503, "overloaded")
        busy[1].sendall(watch)
        until(lambda: [one.status_code for one in asked(running, LAST)] == [200])
        assert busy[0].recv(1 << 16), "who asks for one thing at a time stays"


def test_requests_of_clients_that_have_hung_up_already_are_not_begun(narrow: Running) -> None:
    """Stopped for a moment, as if busy, the service finds them all at once."""
    ask = LIVE.replace(b"/health/live", b"/v1/info") + b"\r\n"
    narrow.process.send_signal(signal.SIGSTOP)
    for _ in range(MOST):
        with connected(narrow) as line:
            line.sendall(ask)
    with connected(narrow) as waiting:
        waiting.sendall(ask)
        narrow.process.send_signal(signal.SIGCONT)
        assert waiting.recv(1 << 16).startswith(b"HTTP/1.1 200")
    counted = httpx.get(f"{narrow.url}/metrics").text
    assert 'route="/v1/info",status="200"} 1.0' in counted
