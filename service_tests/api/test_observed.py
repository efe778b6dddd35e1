"""What the service has counted of requests, read where Prometheus reads it."""

import socket

import httpx
import numpy as np
import pytest

from service_tests.checks import JSON, post, post_npy, put_dataset
from service_tests.metered import Samples, samples, value
from service_tests.running import Running
from service_tests.servers import until

TRANSFORM = "/v1/maps/{name}/transform"


@pytest.fixture
def before(http: httpx.Client, standing: dict[str, str]) -> Samples:
    """What was counted before the test, once all earlier requests are."""
    del standing
    return samples(http)


def more(http: httpx.Client, before: Samples, name: str, **labels: str) -> float:
    """How much a sample has grown."""
    return value(samples(http), name, **labels) - value(before, name, **labels)


def test_requests_are_counted_by_the_template_of_their_address_and_their_status(
    http: httpx.Client, before: Samples
) -> None:
    for name in ("standing-cos_sin", "standing-phase"):
        assert post(http, f"{name}/transform", {"vectors": [[1, 2, 3]]}).status_code == 200
    assert post(http, "standing-phase/transform", {"vectors": [[1, 2]]}).status_code == 422
    assert post(http, "standing-gmm/codes?encoding=b_bit", {"vectors": [[1, 2, 3]]}).status_code == 200
    codes = "/v1/maps/{name}/codes"
    until(lambda: more(http, before, "bochner_requests_total", method="POST", route=codes, status="200") == 1)
    assert more(http, before, "bochner_requests_total", method="POST", route=TRANSFORM, status="200") == 2
    assert more(http, before, "bochner_requests_total", method="POST", route=TRANSFORM, status="422") == 1
    assert more(http, before, "bochner_request_seconds_count", method="POST", route=TRANSFORM) == 3
    assert 0 < more(http, before, "bochner_request_seconds_sum", method="POST", route=TRANSFORM) < 60


def test_rows_are_counted_however_they_come(http: httpx.Client, before: Samples, name: str) -> None:
    rows = np.ones((30, 3))
    assert put_dataset(http, name, rows).status_code == 201
    assert post(http, "standing-phase/transform", {"vectors": rows.tolist()}).status_code == 200
    assert post_npy(http, "standing-phase/transform", np.ones((3000, 3))).status_code == 200
    assert post(http, "standing-phase/transform", {"vectors": {"dataset": name}}).status_code == 200
    assert post(http, "standing-phase/kernel", {"x": [[1, 2, 3]], "y": [[1, 2, 3]] * 4}).status_code == 200
    kernel = "/v1/maps/{name}/kernel"
    until(lambda: more(http, before, "bochner_request_rows_sum", route=kernel) == 5)
    assert more(http, before, "bochner_request_rows_sum", route=TRANSFORM) == 3060
    assert more(http, before, "bochner_request_rows_count", route=TRANSFORM) == 3
    assert more(http, before, "bochner_request_rows_bucket", route=TRANSFORM, le="100.0") == 2


def test_a_client_that_leaves_is_told_apart(running: Running, http: httpx.Client, before: Samples) -> None:
    head = f"POST /v1/maps/standing-phase/transform HTTP/1.1\r\nHost: here\r\nContent-Type: {JSON}\r\n"
    with socket.create_connection(("127.0.0.1", httpx.URL(running.url).port), timeout=30) as line:
        line.sendall(f"{head}Content-Length: 100\r\n\r\n{{".encode())
        until(lambda: value(samples(http), "bochner_requests_in_flight") == 2)
    gone = {"method": "POST", "route": TRANSFORM, "status": "499"}
    until(lambda: more(http, before, "bochner_requests_total", **gone) == 1)
    assert value(samples(http), "bochner_requests_in_flight") == 1, "the one that asks"
