"""A client that speaks byte by byte, for what no well-made client would send."""

import socket
from typing import Any

import httpx

from service_tests.running import Running

LIVE = b"GET /health/live HTTP/1.1\r\nHost: here\r\n"


def connected(running: Running, seconds: float = 30) -> socket.socket:
    """A connection to the service."""
    return socket.create_connection(("127.0.0.1", httpx.URL(running.url).port), timeout=seconds)


def received(line: socket.socket, most: int = 1 << 30) -> bytes:
    """All that comes until the other side ends, or as much as is wanted."""
    found = b""
    while len(found) < most and (piece := line.recv(1 << 16)):
        found += piece
    return found


def answers(came: bytes) -> list[httpx.Response]:
    """What came, as the answers that it consists of."""
    found = []
    while came:
        head, _, came = came.partition(b"\r\n\r\n")
        first, *lines = head.split(b"\r\n")
        assert first.startswith(b"HTTP/1.1 "), first[:80]
        headers = [(name, value.strip()) for name, _, value in (line.partition(b":") for line in lines)]
        length = int(dict(headers).get(b"content-length", b"0"))
        found.append(httpx.Response(int(first.split()[1]), headers=headers, content=came[:length]))
        came = came[length:]
    return found


def asked(running: Running, *pieces: bytes) -> list[httpx.Response]:
    """The answers to what is sent, up to the end of the connection."""
    with connected(running) as line:
        for piece in pieces:
            line.sendall(piece)
        return answers(received(line))


def first_answer(running: Running, head: bytes) -> bytes:
    """What is answered to a head of which no body comes, as far as it comes at once."""
    with connected(running) as line:
        line.sendall(head + b"\r\n")
        return line.recv(1 << 16)


def refusal(answer: httpx.Response, status: int, slug: str) -> dict[str, Any]:
    """The problem document of an answer that ends its connection."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["connection"] == "close"
    document: dict[str, Any] = answer.json()
    assert (document["type"], document["status"]) == (f"/problems/{slug}", status)
    assert document["instance"] == answer.headers["x-request-id"]
    if status == 503:
        assert answer.headers["retry-after"] == "1"
    return document
