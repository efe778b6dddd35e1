"""What no well-made client sends: heads without end, slow ones, broken ones, and requests ahead of their time."""

import time
from collections.abc import Iterator
from itertools import count, repeat

import pytest

from app.connections import Connection
from service_tests.cases import each
from service_tests.connections.wire import LIVE, answers, asked, connected, received, refusal
from service_tests.running import Running, service

MOST_HEAD = 64 << 10


@pytest.mark.parametrize(("excess", "status"), [(0, 200), (1, 431)])
def test_a_head_has_a_limit_to_the_byte(running: Running, excess: int, status: int) -> None:
    filled = sum(map(len, (b"/health/live", b"Host", b"here", b"Connection", b"close", b"X-Long")))
    head = LIVE + b"Connection: close\r\nX-Long: " + b"a" * (MOST_HEAD - filled + excess) + b"\r\n\r\n"
    assert [answer.status_code for answer in asked(running, head)] == [status]


def test_a_length_of_thousands_of_zeros_is_read(running: Running) -> None:
    post = b"POST /v1/maps/none/transform HTTP/1.1\r\nHost: here\r\nConnection: close\r\nContent-Length: %s2\r\n\r\n{}"
    assert [answer.status_code for answer in asked(running, post % (b"0" * 5000))] == [415]


def test_cookies_are_not_kept() -> None:
    """The framework reads them in quadratic time, and nothing here wants them."""
    connection = Connection.__new__(Connection)
    connection._in_head, connection.headers = True, []
    for name in (b"Cookie", b"COOKIE", b"Accept"):
        connection.on_header(name, b"a")
    assert connection.headers == [(b"accept", b"a")]


HEAD_SECONDS, IDLE_SECONDS, MOST_HEAD, MOST_AHEAD = 1, 2, 64 << 10, 16
LAST = LIVE + b"Connection: close\r\n\r\n"
# An address that reads no body, and one that does.
NO_BODY, BODY = b"POST /nowhere HTTP/1.1\r\nHost: here\r\n", b"POST /v1/maps/m/transform HTTP/1.1\r\nHost: here\r\n"
CHUNKED, JSON = b"Transfer-Encoding: chunked\r\n", b"Content-Type: application/json\r\n"


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service that waits for nobody."""
    options = ("--head-timeout", str(HEAD_SECONDS), "--idle-timeout", str(IDLE_SECONDS))
    with service(tmp_path_factory.mktemp("strict") / "data", *options) as running:
        spec = {"input_dim": 2, "kernel": {"kind": "gaussian", "length_scale": 1.0}, "sampler": {"kind": "sobol"}}
        with running.client() as http:
            http.put("/v1/maps/m", json={**spec, "s": 4}).raise_for_status()
        yield running


def sent_without_end(running: Running, first: bytes, pieces: Iterator[bytes]) -> bytes:
    """What the service answers to a client that goes on and on, and first asks for no answer."""
    sent = 0
    with connected(running, 0.05) as line:
        line.sendall(first)
        answer = b""
        for piece in pieces:
            assert sent < 64 << 20, "it is still read"
            try:
                line.sendall(piece)
                sent += len(piece)
                if sent > 2 << 20:
                    answer = line.recv(1 << 16)
                    break
            except TimeoutError:
                continue
            except ConnectionError:
                break
        line.settimeout(30)
        answer += received(line)
    with running.client() as http:
        assert http.get("/health/live").status_code == 200
    return answer


@pytest.mark.parametrize(
    ("first", "pieces", "status", "slug"),
    [
        (LIVE + b"X-Long: ", repeat(b"a" * 4096), 431, "head-too-large"),
        (LIVE, (b"X-%d: b\r\n" % i * 64 for i in count()), 431, "head-too-large"),
        (b"GET /", repeat(b"a" * 4096), 414, "uri-too-long"),
        (b"", repeat(b"\r\n" * 2048), 431, "head-too-large"),
        (BODY + JSON + CHUNKED + b"\r\n0\r\n", repeat(b"X-Late: " + b"a" * 4096 + b"\r\n"), 400, "bad-request"),
        (BODY + JSON + CHUNKED + b"\r\n1;", repeat(b"a" * 4096), 400, "bad-request"),
        (BODY + JSON + CHUNKED + b"\r\n", repeat(b"1\r\n \r\n" * 1000), 400, "bad-request"),
    ],
    ids=["one header", "many headers", "address", "nothing", "trailers", "extension", "small pieces"],
)
def test_what_has_no_end_is_refused_early(
    strict: Running, first: bytes, pieces: Iterator[bytes], status: int, slug: str
) -> None:
    document = refusal(answers(sent_without_end(strict, first, pieces))[-1], status, slug)
    if slug == "uri-too-long":
        assert (document["limit"], document["value"]) == ("max_head_bytes", MOST_HEAD)
        assert document["setting"] == "BOCHNER_MAX_HEAD_BYTES"


@pytest.mark.parametrize("path", [b"x%0d%0aINFO:forged", b"%1b%5b2Jred", b"%e2%80%a8forged", b"\xc2\x85", b"\x1b[2J"])
def test_no_client_writes_lines_or_colours_of_the_log(strict: Running, path: bytes) -> None:
    asked(strict, b"PUT /v1/maps/%s HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n" % path)
    asked(strict, LIVE.replace(b"live", path) + b"X-Request-ID: a\x1b[2J\r\n\r\n")
    (log,) = strict.data_dir.parent.glob("*.log")
    lines = log.read_bytes().split(b"\n")
    assert all(line.isascii() and line.decode().isprintable() for line in lines)
    assert not any(line.startswith(b"INFO:forged") for line in lines)


@pytest.mark.parametrize("head", [b"\r\n", b"GET /health/live HTT", LIVE])
def test_who_does_not_send_a_head_in_time_is_told(strict: Running, head: bytes) -> None:
    began = time.monotonic()
    document = refusal(asked(strict, head)[0], 408, "request-timeout")
    assert time.monotonic() - began >= HEAD_SECONDS
    assert (document["limit"], document["value"]) == ("head_timeout", HEAD_SECONDS)
    assert f"{len(head)} bytes" in document["detail"]


def test_bytes_that_come_one_by_one_have_no_more_time(strict: Running) -> None:
    with connected(strict, 0.1) as line:
        answer = b""
        for byte in LIVE * 100:
            try:
                line.sendall(bytes([byte]))
                answer = line.recv(1 << 16)
                break
            except TimeoutError:
                continue
        line.settimeout(30)
        refusal(answers(answer + received(line))[0], 408, "request-timeout")


def test_a_silent_connection_ends(strict: Running) -> None:
    began = time.monotonic()
    assert len(asked(strict, LIVE + b"\r\n")) == 1
    assert time.monotonic() - began >= IDLE_SECONDS


@each(
    ("request_", "said"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "HTTP"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "PRI"),
        (b"GET / HTTP/3.1\r\nHost: here\r\n\r\n", "version"),
        (b"CONNECT here:80 HTTP/1.1\r\nHost: here\r\n\r\n", "CONNECT"),
        (b"GET / HTTP/1.1\r\n\r\n", "one field Host, got 0"),
        (LIVE + b"Host: there\r\n\r\n", "one field Host, got 2"),
        (LIVE + b" folded: line\r\n\r\n", "HTTP"),
        (LIVE + b"Spaced : name\r\n\r\n", "HTTP"),
        (LIVE + b"Null: a\0b\r\n\r\n", "HTTP"),
        (BODY + b"Content-Length: 1x\r\n\r\n", "HTTP"),
        (BODY + b"Content-Length: +5\r\n\r\n", "HTTP"),
        (BODY + b"Content-Length: 5, 5\r\n\r\n", "HTTP"),
        (BODY + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n", "HTTP"),
        (BODY + b"Content-Length: 99999999999999999999999\r\n\r\n", "HTTP"),
        (BODY + b"Content-Length: 5\r\n" + CHUNKED + b"\r\n", "HTTP"),
        (BODY + b"Transfer-Encoding: gzip, chunked\r\n\r\n", "gzip, chunked"),
        (BODY + CHUNKED + CHUNKED + b"\r\n", "Transfer-Encoding"),
        (BODY + b"Transfer-Encoding: identity\r\n\r\n", ""),
        (BODY + b"Transfer-Encoding: chunked, gzip\r\n\r\n", ""),
        (b"POST / HTTP/1.0\r\nHost: here\r\n" + CHUNKED + b"\r\n", "HTTP/1.0"),
        (BODY + JSON + CHUNKED + b"\r\nxyz\r\n", "HTTP"),
        (BODY + JSON + CHUNKED + b"\r\n1\r\nabc\r\n", "HTTP"),
    ],
)
def test_what_is_no_request_is_refused_and_never_read_in_two_ways(strict: Running, request_: bytes, said: str) -> None:
    (answer,) = asked(strict, request_ + b"GET /hidden HTTP/1.1\r\nHost: here\r\n\r\n")
    assert said in refusal(answer, 400, "bad-request")["detail"]


def test_no_client_sends_as_many_requests_ahead_as_it_likes(strict: Running) -> None:
    *served, last = asked(strict, (LIVE + b"\r\n") * 5000)
    assert len(served) == MOST_AHEAD + 1
    assert all(answer.status_code == 200 for answer in served)
    refusal(last, 503, "overloaded")


@pytest.mark.parametrize("protocol", [b"websocket", b"h2c"])
def test_a_wish_for_another_protocol_is_ignored(strict: Running, protocol: bytes) -> None:
    rows = b'{"vectors": [[1, 2]]}'
    wish = b"Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: \r\nUpgrade: " + protocol + b"\r\n"
    body = b"Content-Length: %d\r\n\r\n" % len(rows) + rows
    found = asked(strict, BODY + JSON + wish + body + LIVE + wish + b"\r\n" + BODY + JSON + body, LAST)
    assert [answer.status_code for answer in found] == [200, 200, 200, 200]
    assert found[0].content == found[2].content


def test_who_sends_all_of_a_body_that_nobody_wants_reads_why(running: Running) -> None:
    """A proxy that has each request be the last on its connection would answer 502 where it is reset instead."""
    head = b"PUT /v1/datasets/none HTTP/1.1\r\nHost: here\r\nContent-Type: text/csv\r\nConnection: close\r\n"
    body = bytes(30_000_000)
    with connected(running) as line:
        line.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        assert [one.status_code for one in answers(received(line))] == [415]
