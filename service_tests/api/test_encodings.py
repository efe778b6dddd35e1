"""Encodings over HTTP: shapes, dtypes, and that each follows from the pairs."""

from typing import Any

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray

from service_tests.cases import each
from service_tests.checks import JSON, post
from service_tests.expected_codes import QUERIES, X, expected, hashed, sparse

pytestmark = pytest.mark.usefixtures("standing")

S = 16
WITH_ZERO_ROW = np.vstack([X[:1], np.zeros((1, 3), np.float32), X[1:]])


def csr(codes: list[list[int]], n_columns: int) -> dict[str, Any]:
    """One-hot rows as JSON shows them."""
    ends = np.cumsum([0, *map(len, codes)]).tolist()
    return {"indptr": ends, "indices": [index for row in codes for index in row], "shape": [len(codes), n_columns]}


def as_json(codes: list[list[Any]], query: str) -> Any:
    if "one_hot" not in query:
        return codes
    bits = int(query.partition("bits=")[2].partition("&")[0] or 8)
    return csr(codes, S << bits)


@each("title", ["gmm", "centered"])
@each("query", QUERIES)
def test_every_encoding_follows_from_the_pairs(http: httpx.Client, title: str, query: str) -> None:
    name = f"standing-{title}"
    rows = np.vstack([X, np.random.default_rng(1).normal(size=(5, 3)).astype(np.float32)])
    codes = expected(hashed(http, name, rows, "encoding=pairs"), query)
    assert hashed(http, name, rows, query).tolist() == codes
    for vectors in (rows.tolist(), sparse(rows)):
        answer = post(http, f"{name}/codes?{query}", {"vectors": vectors})
        assert answer.headers["content-type"] == JSON
        assert answer.json() == {"codes": as_json(codes, query)}


@each(
    ("query", "dtype", "row"),
    [
        ("encoding=pairs", np.int64, (S, 2)),
        ("encoding=zero_bit", np.int32, (S,)),
        ("encoding=b_bit&bits=8", np.uint8, (S,)),
        ("encoding=b_bit&bits=9", np.uint16, (S,)),
        ("encoding=packed&bits=5", np.uint8, (10,)),
        ("encoding=one_hot&bits=16", np.int32, (S,)),
        ("encoding=fingerprint&bits=32", np.uint32, (S,)),
        ("encoding=fingerprint&bits=64", np.uint64, (S,)),
    ],
)
@each("n", [0, 1, 3])
def test_shapes_and_dtypes_are_those_of_the_contract(
    http: httpx.Client, query: str, dtype: type, row: tuple[int, ...], n: int
) -> None:
    codes = hashed(http, "standing-gmm", X[:n], query)
    assert codes.shape == (n, *row)
    assert codes.dtype == dtype


@each(
    ("query", "dtype"),
    [
        ("encoding=pairs", np.int64),
        ("encoding=zero_bit", np.int32),
        ("encoding=b_bit&bits=8", np.int16),
        ("encoding=b_bit&bits=16&bits_of=pair", np.int32),
        ("encoding=one_hot", np.int32),
        ("encoding=fingerprint&bits=32", np.int64),
    ],
)
def test_a_zero_row_may_be_marked(http: httpx.Client, query: str, dtype: type) -> None:
    marked = hashed(http, "standing-gmm", WITH_ZERO_ROW, f"{query}&on_zero=mark")
    assert marked.dtype == dtype
    assert (marked[1] == -1).all()
    others: NDArray[Any] = np.delete(marked, 1, axis=0)
    np.testing.assert_array_equal(others, hashed(http, "standing-gmm", X, query))
    answer = post(http, f"standing-gmm/codes?{query}&on_zero=mark", {"vectors": WITH_ZERO_ROW.tolist()}).json()
    if "one_hot" in query:
        assert answer["codes"] == csr([marked[0].tolist(), [], *marked[2:].tolist()], S << 8)
    else:
        assert answer["codes"] == marked.tolist()
