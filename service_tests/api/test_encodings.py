"""Encodings over HTTP: shapes, dtypes, and that each follows from the pairs."""

from typing import Any

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray

from service_tests.cases import each
from service_tests.checks import JSON, NPY, array, post, post_npy, put
from service_tests.expected_codes import ENCODINGS, QUERIES, X, expected, hashed, sparse

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
        ("encoding=b_bit&bits=1", np.uint8, (S,)),
        ("encoding=b_bit&bits=8", np.uint8, (S,)),
        ("encoding=b_bit&bits=9", np.uint16, (S,)),
        ("encoding=b_bit&bits=16", np.uint16, (S,)),
        ("encoding=packed&bits=1", np.uint8, (2,)),
        ("encoding=packed&bits=5", np.uint8, (10,)),
        ("encoding=packed&bits=16", np.uint8, (32,)),
        ("encoding=one_hot&bits=1", np.int32, (S,)),
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


def test_the_last_byte_of_packed_codes_is_filled_with_zeros(http: httpx.Client, name: str) -> None:
    spec = {"input_dim": 3, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "s": 3}
    assert put(http, name, spec).status_code == 201
    packed = hashed(http, name, X, "encoding=packed&bits=3&bits_of=pair")
    assert packed.shape == (3, 2)
    assert packed.tolist() == expected(hashed(http, name, X, "encoding=pairs"), "encoding=packed&bits=3&bits_of=pair")
    assert (packed[:, 1] < 2).all()


def test_wide_one_hot_columns_take_more_than_32_bits(http: httpx.Client, name: str) -> None:
    spec = {"input_dim": 3, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "s": 40_000}
    assert put(http, name, spec).status_code == 201
    columns = hashed(http, name, X[:1], "encoding=one_hot&bits=16")
    assert columns.dtype == np.int64
    assert columns[0, -1] >> 16 == 39_999


@pytest.mark.parametrize(
    ("query", "same"),
    [
        ("", "encoding=zero_bit"),
        ("encoding=b_bit", "encoding=b_bit&bits=8&bits_of=index"),
        ("encoding=packed", "encoding=packed&bits=8&bits_of=index"),
        ("encoding=one_hot", "encoding=one_hot&bits=8&bits_of=index"),
        ("encoding=fingerprint", "encoding=fingerprint&bits=64"),
    ],
)
def test_options_left_out_have_their_defaults(http: httpx.Client, query: str, same: str) -> None:
    left_out, said = (post_npy(http, f"standing-gmm/codes?{q}", X) for q in (query, same))
    assert left_out.status_code == 200
    assert left_out.content == said.content


def test_fingerprints_past_63_bits_come_whole_in_json(http: httpx.Client) -> None:
    codes = post(http, "standing-gmm/codes?encoding=fingerprint", {"vectors": X.tolist()}).json()["codes"]
    assert max(map(max, codes)) > 1 << 63
    assert codes == hashed(http, "standing-gmm", X, "encoding=fingerprint").tolist()
    low = hashed(http, "standing-gmm", X, "encoding=fingerprint&bits=32").tolist()
    assert low == [[code % (1 << 32) for code in row] for row in codes]


@each("encoding", ENCODINGS)
def test_no_rows_have_no_codes_in_any_encoding(http: httpx.Client, encoding: str) -> None:
    answer = post(http, f"standing-gmm/codes?encoding={encoding}", {"vectors": []})
    assert answer.json() == {"codes": as_json([], encoding)}


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


def test_rows_of_zeros_alone_may_be_marked_too(http: httpx.Client) -> None:
    path = "standing-gmm/codes?encoding=one_hot&on_zero=mark"
    for vectors in ([[0, 0, 0]] * 2, [{"indices": [], "values": []}, {"indices": [1], "values": [0]}]):
        assert post(http, path, {"vectors": vectors}).json()["codes"] == csr([[], []], S << 8)


@each("query", QUERIES)
def test_single_and_double_precision_in_give_the_same_codes(http: httpx.Client, query: str) -> None:
    """X is exact in both; the map reads either in its own dtype."""
    path = f"standing-gmm/codes?{query}"
    single, double = (post_npy(http, path, X.astype(dtype)) for dtype in (np.float32, np.float64))
    assert array(single).shape[0] == 3
    assert single.content == double.content == post(http, path, {"vectors": X.tolist()}, NPY).content


def test_what_single_precision_holds_has_the_same_codes_in_maps_of_either(http: httpx.Client, name: str) -> None:
    spec = {"input_dim": 3, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "s": 4096, "seed": 7}
    assert put(http, name, {**spec, "dtype": "float64"}).status_code == 201
    rows = np.random.default_rng(2).lognormal(sigma=1e-4, size=(4, 3))
    single = hashed(http, "standing-wide-gmm", rows, "encoding=pairs")
    np.testing.assert_array_equal(single, hashed(http, name, rows.astype(np.float32), "encoding=pairs"))
    assert (single != hashed(http, name, rows * (1 + 1e-3), "encoding=pairs")).any()
