"""Requests that are sent again: to a service that is away or busy, and over a wire that loses answers."""

import time
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest

from bochner_client import Client, JobEvent, ServiceAway
from service_tests.running import Running
from service_tests.servers import Wire


@pytest.fixture
def wire(running: Running) -> Iterator[Wire]:
    """A wire to the shared service."""
    with closing(Wire(running.url.replace("http://", "tcp://"))) as made:
        yield made


@pytest.fixture
def over_wire(wire: Wire) -> Iterator[Client]:
    """A client at its other end."""
    with Client(f"http://127.0.0.1:{wire.port}") as made:
        yield made


def test_a_put_whose_answer_is_lost_is_sent_again(
    wire: Wire, over_wire: Client, client: Client, name: str, gaussian: dict[str, Any]
) -> None:
    wire.lose_reply_to(b"PUT")
    made = over_wire.put_map(name, gaussian)
    assert wire.lost == 1
    assert client.get_map(name) == made


def test_a_delete_whose_answer_is_lost_has_succeeded(
    wire: Wire, over_wire: Client, client: Client, name: str, gaussian: dict[str, Any]
) -> None:
    client.put_map(name, gaussian)
    wire.lose_reply_to(b"DELETE")
    over_wire.delete_map(name)
    assert wire.lost == 1
    assert name not in [one.name for one in client.iter_maps(name)]


def test_a_key_is_not_made_twice(wire: Wire, over_wire: Client) -> None:
    wire.lose_reply_to(b"POST /v1/keys")
    with pytest.raises(ServiceAway) as away:
        over_wire.create_key("k", "read")
    assert not away.value.unsent
    assert wire.lost == 1


@pytest.mark.parametrize("answered", [False, True])
def test_a_service_that_is_away_is_waited_for_if_it_has_answered_once(
    answered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service of one answer, which nobody listens for afterwards."""
    pauses: list[float] = []
    with HTTPServer(("127.0.0.1", 0), Once) as once, Client(f"http://127.0.0.1:{once.server_port}") as client:
        if answered:
            Thread(target=once.handle_request, daemon=True).start()
            assert client.list_keys() == []
        once.socket.close()
        began = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: began + sum(pauses))
        monkeypatch.setattr(time, "sleep", pauses.append)
        with pytest.raises(ServiceAway, match=r"does not answer: .*; `bochner serve` starts a service") as away:
            client.list_keys()
    assert away.value.unsent
    assert 30 < sum(pauses) <= 60 if answered else 0.5 < sum(pauses) <= 2


class Once(BaseHTTPRequestHandler):
    """Answers that there are no keys."""

    def do_GET(self) -> None:
        """Answer, and end the connection."""
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(b'{"keys": []}')

    def log_message(self, *_: object) -> None:
        """Stay silent."""


def test_a_job_whose_events_are_lost_is_watched_on(wire: Wire, over_wire: Client, standing: dict[str, str]) -> None:
    job = over_wire.start_diagnosis(standing["phase"], "gram", [[1.0, 2.0, 3.0], [2.0, 3.0, 5.0]])
    wire.lose_reply_to(b"/events")
    seen: list[JobEvent] = []
    assert job.wait(progress=seen.append)["rows"] == 2
    assert wire.lost == 1
    ids = [tuple(map(int, event.event_id.split("-"))) for event in seen]
    assert ids == sorted(set(ids)), "an event came twice, or out of order"
