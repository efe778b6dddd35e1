"""What is no code of an encoding, at /similarity."""

from typing import Any

import httpx
import pytest

from service_tests.cases import each
from service_tests.checks import assert_problem, post

pytestmark = pytest.mark.usefixtures("standing")

S = 16
# Of each encoding: its query, length of a row, a good entry, and entries outside its range.
PLAIN: dict[str, tuple[int, int, tuple[int, ...]]] = {
    "encoding=zero_bit": (S, 5, (6, -1, -2, 1 << 31)),
    "encoding=b_bit&bits=3": (S, 7, (8, -1)),
    "encoding=packed&bits=3": (6, 255, (256, -1)),
    "encoding=fingerprint": (S, (1 << 64) - 1, (1 << 64, -1)),
}
NO_NUMBERS: list[Any] = [0.5, 1.0, True, None, "1", [1], {}, 1 << 70, -(1 << 70)]


def refused(http: httpx.Client, query: str, x: Any, y: Any, pointer: str) -> None:
    answer = post(http, f"standing-gmm/similarity?{query}", {"x": x, "y": y})
    document = assert_problem(http, answer, 422, "invalid-input")
    assert document["errors"][0]["pointer"].startswith(pointer), document["errors"]


@pytest.mark.parametrize("query", PLAIN)
def test_rows_of_another_length_are_no_codes(http: httpx.Client, query: str) -> None:
    length, entry, _ = PLAIN[query]
    good = [entry] * length
    assert post(http, f"standing-gmm/similarity?{query}", {"x": [good], "y": [good]}).status_code == 200
    for bad in ([], good[1:], [*good, entry], [good]):
        refused(http, query, [bad], [good], "/x")
        refused(http, query, [good], [bad], "/y")
        refused(http, query, [good, bad], [good, good], "/x")


@pytest.mark.parametrize("query", PLAIN)
def test_entries_that_are_no_codes_are_refused(http: httpx.Client, query: str) -> None:
    length, entry, outside = PLAIN[query]
    good = [entry] * length
    for value in (*outside, *NO_NUMBERS):
        for bad in ([*good[1:], value], [value, *good[1:]], [value] * length):
            refused(http, query, [good, bad], [good, good], "/x")
            refused(http, query, [good, good], [good, bad], "/y")


PAIR = [5, -3]
BAD_PAIRS: list[Any] = [
    [6, 0],
    [-1, -1],
    [0],
    [0, True],
    [0, 1 << 63],
    [[0, 1]],
    None,
]


@each("query", ["", "encoding=pairs"])
@each("bad", BAD_PAIRS)
def test_what_is_no_pair_is_refused(http: httpx.Client, query: str, bad: Any) -> None:
    good = [[PAIR] * S]
    assert post(http, f"standing-gmm/similarity?{query}", {"x": good, "y": good}).status_code == 200
    refused(http, query, [[PAIR] * (S - 1) + [bad]], good, "/x")
    refused(http, query, good, [[bad] + [PAIR] * (S - 1)], "/y")


def csr(**changed: Any) -> dict[str, Any]:
    """Two good one-hot rows of 3 bits, but for what is changed."""
    indices = [j * 8 + 7 for j in range(S)] * 2
    return {"indptr": [0, S, 2 * S], "indices": indices, "shape": [2, S * 8], **changed}


GOOD = csr()["indices"]
BAD_CSR: list[tuple[Any, str]] = [
    (csr(indptr=[0, S]), "/indptr"),
    (csr(indptr=[0, 0, S, 2 * S]), "/indptr"),
    (csr(indptr=[0, S, 1 << 70]), "/indptr"),
    (csr(indptr=[0.0, S, 2 * S]), "/indptr"),
    (csr(indices=GOOD[:-1]), "/indptr"),
    (csr(indices=[*GOOD[:-1], S * 8]), ""),
    (csr(indices=[*GOOD[:-1], 0]), ""),
    (csr(indices=[-1, *GOOD[1:]]), ""),
    (csr(indices=["7", *GOOD[1:]]), "/indices"),
    (csr(shape=[2, S * 4]), "/shape"),
    (csr(data=[1] * (2 * S)), ""),
    ({}, ""),
    ([GOOD[:S], [*GOOD[1:S], GOOD[0]]], "/1"),
    ("csr", ""),
]


@each(("bad", "pointer"), BAD_CSR)
def test_broken_one_hot_rows_are_refused(http: httpx.Client, bad: Any, pointer: str) -> None:
    query = "encoding=one_hot&bits=3"
    assert post(http, f"standing-gmm/similarity?{query}", {"x": csr(), "y": csr()}).status_code == 200
    refused(http, query, bad, csr(), f"/x{pointer}")
    refused(http, query, csr(), bad, f"/y{pointer}")


def test_codes_of_one_encoding_are_not_compared_with_vectors(http: httpx.Client) -> None:
    for query, codes in (("", [[PAIR] * S]), ("encoding=zero_bit", [[0] * S]), ("encoding=one_hot&bits=3", csr())):
        refused(http, query, codes, [[1.5, 2, 3]], "/y")
        refused(http, query, [[1.5, 2, 3]], codes, "/y")


@each(
    "rows",
    [
        "[" * 900_000 + "]" * 900_000,
        f"[[{'0,' * 400_000}0],[{'0,' * 500_000}0]]",
        f"[[{'0,' * 600_000}0],[0]]",
        f"[[{'0,' * 400_000}[{'0,' * 400_000}0]]]",
    ],
)
def test_long_lists_that_are_no_rows_of_codes_are_refused(http: httpx.Client, rows: str) -> None:
    """They are read item by item, and so with other code than short ones."""
    body = f'{{"x":{rows},"y":[]}}'.encode()
    for query in ("of=codes", "encoding=pairs&of=codes"):
        assert_problem(http, post(http, f"standing-gmm/similarity?{query}", body), 422, "invalid-input")
