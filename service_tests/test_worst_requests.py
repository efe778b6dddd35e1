"""Of each call the requests that take most memory and most time, against a service with its default limits."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from service_tests.costs import cost
from service_tests.running import Running, service
from service_tests.worst_requests import JOB, WORST, Worst, allowed, prepare

DOCUMENT = Path(__file__).parents[1] / "openapi" / "openapi.json"
ALL = [pytest.param(call, one, id=f"{call}: {one.why}") for call, each in WORST.items() for one in each]
# Half a minute of a core, and ten times as much, as others may work on the machine.
SECONDS = 300


def test_every_call_with_a_body_has_its_worst_requests() -> None:
    paths = json.loads(DOCUMENT.read_text())["paths"].items()
    calls = {f"{how.upper()} {path}" for path, methods in paths for how in methods if "requestBody" in methods[how]}
    assert calls <= set(WORST), "say in worst_requests.py which requests of a new call cost most"


@pytest.fixture(scope="module")
def defaults(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service with its default limits."""
    with service(tmp_path_factory.mktemp("defaults") / "data", "--job-workers", "1") as running:
        with running.client(Prefer="wait=30") as http:
            http.timeout = 300
            prepare(http)
        yield running


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform != "linux", reason="the peak of another process is read from /proc")
@pytest.mark.parametrize(("call", "worst"), ALL)
def test_the_worst_request_stays_within_its_bounds(defaults: Running, call: str, worst: Worst) -> None:
    found = cost(defaults, lambda http: worst.send(http, call.partition(" ")[0]), seconds_of_job=10)
    assert found.sent.status < 500
    assert found.sent.status != 409, "what another request has left is in its way, and it costs nothing"
    assert found.peak <= allowed(worst, found.sent), found
    assert found.of_job <= JOB, found
    assert found.seconds * worst.of <= SECONDS, found
