import resource
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import psutil
import pytest

from app.connections import crowd
from service_tests.connections.wire import LIVE, answers, connected, received, refusal
from service_tests.running import Running, service

MOST = 20


class Transport:
    is_aborted = False

    def abort(self) -> None:
        self.is_aborted = True


class Member:
    """A connection that waits since some moment, or not at all."""

    def __init__(self, waits_since: float, has_asked: bool = False, is_leaving: bool = False) -> None:
        self.transport: Any = Transport()
        self.waits_since, self.has_asked, self.is_leaving = waits_since, has_asked, is_leaving


BUSY = float("inf")


@pytest.mark.parametrize(
    ("others", "gone"),
    [
        ([Member(3), Member(1), Member(2)], 1),
        ([Member(3), Member(1, has_asked=True), Member(2)], 2),
        ([Member(BUSY), Member(2, has_asked=True), Member(1, has_asked=True)], 2),
        ([Member(BUSY), Member(BUSY), Member(11), Member(5)], 3),
    ],
    ids=["the longest", "silent ones first", "not those at work", "not those that just stopped to read"],
)
def test_who_has_waited_longest_makes_room(others: list[Member], gone: int) -> None:
    assert crowd.make_room(others, len(others), now=10)
    assert [one.transport.is_aborted for one in others] == [number == gone for number in range(len(others))]
    assert others[gone].is_leaving


@pytest.mark.parametrize(("files", "most"), [(1024, 896), (resource.RLIM_INFINITY, 1000), (64, 1), (4096, 1000)])
def test_there_are_no_more_connections_than_files(files: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (files, files))
    assert crowd.most_connections(1000) == most


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service that takes few connections."""
    options = ("--max-connections", str(MOST), "--max-requests", str(MOST), "--client-timeout", "3")
    with service(tmp_path_factory.mktemp("narrow") / "data", *options) as running:
        yield running


def is_live(running: Running) -> bool:
    with running.client() as http:
        return http.get("/health/live").status_code == 200


@pytest.mark.gate
def test_connections_that_wait_keep_nobody_out(narrow: Running) -> None:
    with ExitStack() as lines:
        for _ in range(3 * MOST):
            lines.enter_context(connected(narrow))
        assert is_live(narrow)
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
    assert is_live(narrow)
