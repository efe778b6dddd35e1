"""What the service has counted of requests, read where Prometheus reads it."""

import socket
from typing import Any

import httpx
import numpy as np
import pytest

from service_tests.checks import JSON, npy, post, post_npy, put, put_dataset
from service_tests.metered import Samples, samples, told, total, value
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


def test_a_head_is_counted_under_the_address_of_its_get(http: httpx.Client, before: Samples) -> None:
    assert http.head("/v1/maps/standing-phase").status_code == 200
    labels = {"method": "HEAD", "route": "/v1/maps/{name}", "status": "200"}
    until(lambda: more(http, before, "bochner_requests_total", **labels) == 1)


def test_no_client_can_make_labels(http: httpx.Client, before: Samples) -> None:
    """Nothing that a client writes is a label: else it could have as many series kept as it likes."""
    del before
    for i in range(20):
        http.get(f"/nothing/invented-{i}")
        http.get(f"/v1/maps/invented-{i}")
        http.get(f"/problems/invented-{i}")
        http.request("PROPFIND" if i % 2 else "MKCOL", "/v1/maps/invented", headers={"X-Request-ID": f"invented-{i}"})
        http.post(f"/v1/maps?invented-{i}=1")
    until(lambda: value(samples(http), "bochner_requests_total", method="GET", route="", status="404") >= 20)
    text = told(http)
    assert "invented" not in text
    assert 'method="other"' in text
    assert "PROPFIND" not in text


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


def test_bytes_are_those_of_the_bodies(http: httpx.Client, before: Samples) -> None:
    body = npy(np.ones((200_000 // 12, 3), np.float32))
    answer = post_npy(http, "standing-phase/transform", body)
    labels = {"method": "POST", "route": TRANSFORM}
    until(lambda: more(http, before, "bochner_response_bytes_total", **labels) == len(answer.content))
    assert more(http, before, "bochner_request_bytes_total", **labels) == len(body)


def test_a_client_that_leaves_is_told_apart(running: Running, http: httpx.Client, before: Samples) -> None:
    head = f"POST /v1/maps/standing-phase/transform HTTP/1.1\r\nHost: here\r\nContent-Type: {JSON}\r\n"
    with socket.create_connection(("127.0.0.1", httpx.URL(running.url).port), timeout=30) as line:
        line.sendall(f"{head}Content-Length: 100\r\n\r\n{{".encode())
    gone = {"method": "POST", "route": TRANSFORM, "status": "499"}
    until(lambda: more(http, before, "bochner_requests_total", **gone) == 1)
    assert value(samples(http), "bochner_requests_in_flight") == 1, "the one that asks"


def test_what_is_refused_before_it_is_read_is_counted_too(
    running: Running, http: httpx.Client, before: Samples
) -> None:
    with socket.create_connection(("127.0.0.1", httpx.URL(running.url).port), timeout=30) as line:
        line.sendall(b"nonsense\r\n\r\n")
        assert line.recv(12) == b"HTTP/1.1 400"
    assert more(http, before, "bochner_unread_requests_total", problem="bad-request") == 1


def test_a_map_that_is_used_again_is_found_in_memory(
    http: httpx.Client, before: Samples, name: str, gaussian: dict[str, Any]
) -> None:
    assert put(http, name, gaussian | {"seed": 271828}).status_code == 201
    cached = value(samples(http), "bochner_cache_bytes")
    for _ in range(5):
        assert post(http, f"{name}/transform", {"vectors": [[1, 2, 3]]}).status_code == 200
    assert post_npy(http, f"{name}/transform", np.ones((5000, 3))).status_code == 200
    assert more(http, before, "bochner_cache_misses_total") == 1
    assert more(http, before, "bochner_cache_hits_total") == 5
    assert value(samples(http), "bochner_cache_bytes") >= cached
    assert value(samples(http), "bochner_cache_limit_bytes") == 1 << 30


def test_small_requests_that_are_computed_together_are_seen(http: httpx.Client, before: Samples) -> None:
    for _ in range(3):
        assert post(http, "standing-phase/transform", {"vectors": [[1, 2, 3]] * 2}).status_code == 200
    counted = more(http, before, "bochner_batch_requests_sum")
    assert counted >= 2, "the first may have loaded the map"
    assert more(http, before, "bochner_batch_rows_sum") == 2 * counted


def test_calls_to_the_store_and_waits_for_threads_are_timed(http: httpx.Client, before: Samples) -> None:
    http.get("/v1/info")
    assert more(http, before, "bochner_store_seconds_count", command="INFO", outcome="ok") >= 1
    assert more(http, before, "bochner_waited_seconds_count", waits_for="store") >= 2
    found = samples(http)
    assert total(found, "bochner_store_seconds_count", outcome="error") == 0
    assert value(found, "bochner_places", of="requests") == 64
    assert value(found, "bochner_waiting", waits_for="compute") == 0
