"""What HTTP itself asks for: methods, headers, lengths, broken requests."""

import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from service_tests.cases import each
from service_tests.checks import JSON, NPY, assert_problem, post
from service_tests.running import Running

pytestmark = pytest.mark.usefixtures("nothing_stored")

TRANSFORM = "/v1/maps/standing-cos_sin/transform"
LIMIT = 2_000_000


def test_a_body_over_the_limit_is_refused_by_its_announcement(running: Running, http: httpx.Client) -> None:
    """Nothing of the body is sent, so the answer cannot have waited for it."""
    head = f"POST {TRANSFORM} HTTP/1.1\r\nHost: here\r\nContent-Type: {NPY}\r\nContent-Length: {LIMIT + 1}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", httpx.URL(running.url).port), timeout=30) as line:
        line.sendall(head.encode())
        assert line.recv(1 << 16).startswith(b"HTTP/1.1 413")
    document = assert_problem(http, post(http, "standing-cos_sin/transform", b" " * (LIMIT + 1)), 413, "too-large")
    assert document["limit"] == "max_body_bytes"
    assert document["value"] == LIMIT
    assert document["setting"] == "BOCHNER_MAX_BODY_BYTES"


def test_a_body_of_unknown_length_is_refused_once_it_passes_the_limit(running: Running, http: httpx.Client) -> None:
    """The body never ends, so the answer cannot have waited for its end."""
    head = f"POST {TRANSFORM} HTTP/1.1\r\nHost: here\r\nContent-Type: {NPY}\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    with socket.create_connection(("127.0.0.1", httpx.URL(running.url).port), timeout=30) as line:
        line.sendall(head.encode())
        for _ in range(LIMIT // 0x10000 + 1):
            line.sendall(chunk)
        assert line.recv(1 << 16).startswith(b"HTTP/1.1 413")

    def chunks() -> Iterator[bytes]:
        for _ in range(LIMIT // 0x10000 + 1):
            yield b" " * 0x10000

    answer = http.post(TRANSFORM, content=chunks(), headers={"Content-Type": JSON})
    assert assert_problem(http, answer, 413, "too-large")["limit"] == "max_body_bytes"


@each(
    ("method", "path"),
    [
        ("GET", ""),
        ("DELETE", ""),
        ("GET", "/frequencies"),
        ("POST", "/transform"),
        ("POST", "/kernel"),
        ("POST", "/codes"),
        ("POST", "/similarity"),
    ],
)
def test_a_map_that_is_not_there_is_not_found(http: httpx.Client, name: str, method: str, path: str) -> None:
    answer = http.request(method, f"/v1/maps/{name}{path}", headers={"Content-Type": JSON}, content=b"{}")
    assert name in assert_problem(http, answer, 404, "map-not-found")["detail"]


@pytest.mark.parametrize("path", ["/", "/v1", "/v3/models", "/v1/maps/standing-cos_sin/nothing", "/problems/nothing"])
def test_an_address_that_is_not_there_is_not_found(http: httpx.Client, path: str) -> None:
    assert_problem(http, http.get(path), 404, "not-found")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/transform", "POST"),
        ("PUT", "/frequencies", "GET"),
        ("POST", "", "GET, PUT, DELETE"),
        ("PATCH", "", "GET, PUT, DELETE"),
    ],
)
def test_a_wrong_method_is_answered_with_all_right_ones(
    http: httpx.Client, method: str, path: str, allowed: str
) -> None:
    answer = http.request(method, f"/v1/maps/standing-cos_sin{path}")
    assert_problem(http, answer, 405, "method-not-allowed")
    assert answer.headers["allow"] == allowed


@pytest.mark.parametrize(
    ("path", "parameter"),
    [
        ("standing-cos_sin/kernel?exact=maybe", "exact"),
        ("standing-gmm/codes?encoding=two_bit", "encoding"),
        ("standing-gmm/codes?on_zero=skip", "on_zero"),
        ("standing-gmm/similarity?encoding=", "encoding"),
    ],
)
def test_a_bad_query_value_is_refused_by_name(http: httpx.Client, path: str, parameter: str) -> None:
    document = assert_problem(http, post(http, path, {"vectors": []}), 422, "invalid-input")
    assert document["errors"][0]["parameter"] == parameter
    assert "pointer" not in document["errors"][0]


@pytest.mark.parametrize(
    "path",
    [
        "/v1/maps?prefx=a",
        "/v1/maps/standing-cos_sin?exact=true",
        "/v1/maps/standing-cos_sin/weights?format=npy",
        "/v1/info?verbose=1",
        "/health/live?verbose",
    ],
)
def test_an_unknown_query_parameter_is_refused_not_ignored(http: httpx.Client, path: str) -> None:
    unknown = path.partition("?")[2].partition("=")[0]
    assert unknown in assert_problem(http, http.get(path), 422, "invalid-input")["detail"]


def test_a_client_that_leaves_is_no_failure_of_the_service(running: Running, http: httpx.Client) -> None:
    log = next(Path(running.data_dir.parent).glob("data.*.log"))
    written = log.stat().st_size
    head = f"POST {TRANSFORM} HTTP/1.1\r\nHost: here\r\nContent-Type: {JSON}\r\nContent-Length: 100\r\n\r\n"
    with socket.create_connection(("127.0.0.1", httpx.URL(running.url).port), timeout=30) as line:
        line.sendall(head.encode() + b"{")
    for _ in range(3):
        assert post(http, "standing-cos_sin/transform", {"vectors": []}).status_code == 200
    assert b"Traceback" not in log.read_bytes()[written:]
