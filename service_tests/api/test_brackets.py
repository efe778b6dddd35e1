"""Bodies of /similarity that would take a hundred times their length if they were parsed whole."""

import httpx
import pytest

from service_tests.cases import each
from service_tests.checks import assert_problem, post, put

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


@each(
    ("method", "path"),
    [
        ("POST", "/v2/repository/index"),
        ("PUT", "/v1/aliases/other"),
        ("PUT", "/v1/indexes/other"),
        ("POST", "/v1/indexes/none/copy"),
        ("POST", "/v1/indexes/none/vectors/count"),
        ("POST", "/v1/indexes/none/vectors/delete"),
        ("PATCH", "/v1/indexes/none/vectors"),
        ("POST", "/v1/indexes/none/duplicates"),
        ("POST", "/v1/indexes/none/recall"),
        ("POST", "/v1/bands"),
    ],
)
@pytest.mark.parametrize("item", ["[]", "{}"])
def test_options_of_brackets_are_refused_before_they_are_parsed(
    http: httpx.Client, method: str, path: str, item: str
) -> None:
    """Even a refusal that tells what is wrong with each of a million lists would take seconds."""
    body = f"[{','.join([item] * 200_000)}]"
    answer = http.request(method, path, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert "1024 lists and objects in lists of options, got 200000" in answer.text
