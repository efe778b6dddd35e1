"""Of each call the requests that take most memory and most time, against a service with its default limits."""

import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from service_tests.checks import JSON
from service_tests.costs import MB, cost, waits
from service_tests.running import Running, service
from service_tests.worst_requests import CHEAP, WORST, Worst, prepare

DOCUMENT = Path(__file__).parents[1] / "openapi" / "openapi.json"
ALL = [
    pytest.param(
        call,
        one,
        id=f"{call}: {one.why}",
        marks=[pytest.mark.xfail(reason=one.beyond, strict=False)] if one.beyond else [],
    )
    for call, each in WORST.items()
    for one in each
]
# A JSON body may take so many times its length, any other, and an answer, so many.
JSON_FACTOR, FACTOR, ROOM = 14, 4, 64 * MB
# Half a minute of a core, and ten times as much, as others may work on the machine.
SECONDS = 300


def test_every_call_has_its_worst_requests() -> None:
    paths = json.loads(DOCUMENT.read_text())["paths"]
    calls = {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}
    assert calls == set(WORST), "say in worst_requests.py which requests of a new call cost most"
    assert {call for call in WORST if not WORST[call]} == set(CHEAP)


@pytest.fixture(scope="module")
def defaults(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service with its default limits."""
    with service(tmp_path_factory.mktemp("defaults") / "data", "--job-workers", "1") as running:
        with running.client(Prefer="wait=30") as http:
            http.timeout = 300
            prepare(http)
        yield running


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="the peak of another process is read from /proc")
@pytest.mark.parametrize(("call", "worst"), ALL)
def test_the_worst_request_stays_within_its_bounds(defaults: Running, call: str, worst: Worst) -> None:
    found = cost(defaults, lambda http: worst.send(http, call.partition(" ")[0]))
    body, answer = found.sent.body, found.sent.answer
    assert found.sent.status < 500
    of_json = JSON_FACTOR * body if worst.content_type == JSON else 0
    assert found.peak <= max(of_json, FACTOR * (body + answer)) + ROOM, found
    assert found.seconds * worst.of <= SECONDS, found


@pytest.mark.long
def test_many_of_the_worst_at_once_keep_nobody_else_waiting(defaults: Running) -> None:
    call = "POST /v1/maps/{name}/transform"
    worst = WORST[call][0]
    body = worst.body()[: 1 << 21].rpartition(b",")[0] + b"]}"

    def send(_: int) -> int:
        with defaults.client() as http:
            http.timeout = 600
            return http.post(worst.path, content=body, headers={"Content-Type": JSON}).status_code

    with waits(defaults) as found, ThreadPoolExecutor(64) as pool:
        statuses = [*pool.map(send, range(64))]
    assert set(statuses) <= {200, 503}
    assert statuses.count(200) > 30
    assert sorted(found)[len(found) // 2] < 1, "a tenth of that where nothing else runs"
    assert defaults.process.poll() is None
