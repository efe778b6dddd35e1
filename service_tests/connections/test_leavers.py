"""Work ends soon after the client that asked for it has left."""

from collections.abc import Iterator

import psutil
import pytest

from service_tests.cases import each
from service_tests.connections.wire import connected
from service_tests.metered import samples, value
from service_tests.running import Running, service
from service_tests.servers import until

S = 1 << 20
ROWS = b",".join([b"[1.2345]"] * 50_000)


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service that computes for as long as it takes, with a map of many frequencies."""
    options = ("--threads", "1", "--max-operations", str(1 << 60))
    with service(tmp_path_factory.mktemp("patient") / "data", *options) as running:
        spec = {"input_dim": 1, "kernel": {"kind": "laplacian", "length_scale": 1.0}, "s": S}
        with running.client() as http:
            http.put("/v1/maps/m", json={**spec, "sampler": {"kind": "monte_carlo"}}).raise_for_status()
            of_index = {**spec, "sampler": {"kind": "monte_carlo"}, "s": 1 << 16}
            http.put("/v1/maps/n", json=of_index).raise_for_status()
            http.put("/v1/indexes/n", json={"map": "n"}).raise_for_status()
        yield running


@pytest.mark.gate
@each(
    ("call", "body"),
    [
        ("maps/m/kernel", b'{"x": [%s], "y": [[1]]}' % ROWS),
        ("maps/m/similarity", b'{"x": [%s], "y": [%s]}' % (ROWS, ROWS)),
        ("indexes/n/search", b'{"vectors": [%s], "k": 1}' % ROWS),
        (f"maps/m/codes?encoding=fingerprint&rows_per_band={S}", b'{"vectors": [%s]}' % ROWS),
    ],
)
def test_work_of_minutes_ends_once_its_client_has_left(patient: Running, call: str, body: bytes) -> None:
    computing = psutil.Process(patient.process.pid).cpu_times
    head = f"POST /v1/{call} HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\n"
    with patient.client() as http:
        with connected(patient) as line:
            before = computing().user
            line.sendall(head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            until(lambda: computing().user > before + 2)
            assert value(samples(http), "bochner_requests_in_flight") == 2
        until(lambda: value(samples(http), "bochner_requests_in_flight") == 1)
