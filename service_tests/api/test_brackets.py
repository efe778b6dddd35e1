"""Bodies of /similarity that would take a hundred times their length if they were parsed whole."""

import sys
from typing import Any

import httpx
import pytest

from service_tests.cases import each, with_nightly
from service_tests.checks import JSON, assert_problem, member, post, put
from service_tests.costs import cost, sent
from service_tests.running import Running

S_OF = {"one": 1, "two": 2, "many": 100}
QUERIES = ["", "encoding=pairs", "encoding=zero_bit", "encoding=packed&bits=1", "encoding=one_hot", "of=vectors"]


@pytest.fixture(scope="module")
def maps(http: httpx.Client) -> dict[str, str]:
    """Maps of one dimension, whose rows have the most brackets, by their number of hashes."""
    spec = {"input_dim": 1, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "seed": 7}
    for title, s in S_OF.items():
        assert put(http, f"brackets-{title}", {**spec, "s": s}).status_code in (200, 201)
    return {title: f"brackets-{title}" for title in S_OF}


@each("query", QUERIES)
@each("title", S_OF)
@each("piece", [b"[", b"[],", b"{},", b"[[]],"])
def test_a_body_of_brackets_is_refused(
    http: httpx.Client, maps: dict[str, str], title: str, query: str, piece: bytes
) -> None:
    body = b'{"x":[' + piece * (1_500_000 // len(piece)) + b'0],"y":[]}'
    assert_problem(http, post(http, f"{maps[title]}/similarity?{query}", body), 422, "invalid-input")


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform != "linux", reason="the peak of another process is read from /proc")
@pytest.mark.parametrize("piece", [b"[],", b"{},", b"[[]],", b'{"indices":[],"values":[]},'])
def test_a_body_of_brackets_takes_little_memory(running: Running, maps: dict[str, str], piece: bytes) -> None:
    body = b'{"x":[' + piece * (1_900_000 // len(piece)) + b'0],"y":[]}'
    path = f"/v1/maps/{maps['one']}/similarity?of=vectors"
    first, again = (cost(running, lambda http: sent(http, "POST", path, body, Content_Type=JSON)) for _ in range(2))
    assert first.sent.status == again.sent.status == 422
    assert again.peak < 5 * len(body)


def body_of(row: bytes, size: int = 1_400_000) -> bytes:
    """x and y of as many such rows as make `size` bytes."""
    rows = b"[" + b",".join([row] * (size // 2 // (len(row) + 1))) + b"]"
    return b'{"x":' + rows + b',"y":' + rows + b"}"


@pytest.mark.parametrize("title", with_nightly(["one"], [title for title in S_OF if title != "one"]))
def test_the_shortest_codes_and_vectors_pass(http: httpx.Client, maps: dict[str, str], title: str) -> None:
    s = S_OF[title]
    bodies: list[tuple[str, Any]] = [
        ("encoding=pairs", b"[" + b",".join([b"[0,0]"] * s) + b"]"),
        ("", b"[" + b",".join([b"[0,0]"] * s) + b"]"),
        ("encoding=zero_bit&of=codes", b"[" + b",".join([b"0"] * s) + b"]"),
        ("of=vectors", b"[1]"),
        ("of=vectors", b'{"indices":[0],"values":[1]}'),
    ]
    for query, row in bodies:
        size = 1_400_000 if b"[0,0]" in row or b"indices" in row else 1_100_000
        answer = post(http, f"{maps[title]}/similarity?{query}", body_of(row, size))
        assert set(member(answer, "estimate")) == {1.0}, query
