from typing import Any

import httpx
import numpy as np
import pytest

from service_tests.checks import JSON, NPY, array, member, post, post_npy

pytestmark = pytest.mark.usefixtures("standing")

X = np.array([[0.5, -1.25, 2], [0, 0.5, 0], [3, 0, -0.125]], np.float32)
Y = np.array([[0.5, -1, 2], [0, 0.25, 0], [-3, 0, 0.125]], np.float32)


@pytest.mark.parametrize("title", ["gmm", "centered"])
def test_pairs_and_zero_bit_codes_agree_in_all_formats(http: httpx.Client, title: str) -> None:
    path = f"standing-{title}/codes"
    pairs = array(post_npy(http, f"{path}?encoding=pairs", X))
    assert pairs.shape == (3, 16, 2)
    assert pairs.dtype == np.int64
    zero_bit = array(post_npy(http, path, X))
    assert zero_bit.shape == (3, 16)
    assert zero_bit.dtype == np.int32
    np.testing.assert_array_equal(zero_bit, pairs[:, :, 0])
    for query, codes in (("", zero_bit), ("?encoding=zero_bit", zero_bit), ("?encoding=pairs", pairs)):
        answer = post(http, path + query, {"vectors": X.tolist()})
        assert answer.headers["content-type"] == JSON
        assert answer.json() == {"codes": codes.tolist()}


def test_an_index_names_coordinate_and_sign(http: httpx.Client) -> None:
    codes = array(post_npy(http, "standing-gmm/codes", X))
    assert set(codes[0]) <= {0, 3, 4}
    assert set(codes[1]) == {2}
    assert set(codes[2]) <= {0, 5}


def test_sparse_rows_have_the_codes_of_dense_ones(http: httpx.Client) -> None:
    rows = [{"indices": np.flatnonzero(row).tolist(), "values": row[row != 0].tolist()} for row in X]
    for title in ("gmm", "centered"):
        dense = post(http, f"standing-{title}/codes?encoding=pairs", {"vectors": X.tolist()})
        assert post(http, f"standing-{title}/codes?encoding=pairs", {"vectors": rows}).json() == dense.json()
    stored_zero = {"vectors": [{"indices": [0, 1, 2], "values": row} for row in X.tolist()]}
    assert post(http, "standing-gmm/codes", stored_zero).json() == {
        "codes": array(post_npy(http, "standing-gmm/codes", X)).tolist()
    }


def test_codes_do_not_hang_on_scale(http: httpx.Client) -> None:
    codes = array(post_npy(http, "standing-gmm/codes", X[1:2] * 1000))
    np.testing.assert_array_equal(codes, array(post_npy(http, "standing-gmm/codes", X[1:2])))


@pytest.mark.parametrize(("query", "shape"), [("", (0, 16)), ("?encoding=pairs", (0, 16, 2))])
def test_no_rows_have_no_codes(http: httpx.Client, query: str, shape: tuple[int, ...]) -> None:
    assert post(http, f"standing-gmm/codes{query}", {"vectors": []}).json() == {"codes": []}
    assert array(post_npy(http, f"standing-gmm/codes{query}", np.empty((0, 3)))).shape == shape


@pytest.mark.parametrize("encoding", ["pairs", "zero_bit"])
def test_a_zero_row_may_be_marked(http: httpx.Client, encoding: str) -> None:
    rows = np.vstack([X[:1], np.zeros((1, 3)), X[1:]])
    codes = array(post_npy(http, f"standing-gmm/codes?encoding={encoding}&on_zero=mark", rows))
    assert (codes[1] == -1).all()
    others = array(post_npy(http, f"standing-gmm/codes?encoding={encoding}", X))
    np.testing.assert_array_equal(np.delete(codes, 1, axis=0), others)


def similarity(http: httpx.Client, x: Any, y: Any, query: str = "", accept: str | None = None) -> httpx.Response:
    return post(http, f"standing-gmm/similarity{query}", {"x": x, "y": y}, accept)


def test_the_similarity_of_vectors_comes_with_error_and_truth(http: httpx.Client) -> None:
    answer = similarity(http, X.tolist(), Y.tolist())
    assert set(answer.json()) == {"estimate", "standard_error", "exact"}
    pairs = [array(post_npy(http, "standing-gmm/codes?encoding=pairs", rows)) for rows in (X, Y)]
    rate = (pairs[0] == pairs[1]).all(axis=2).mean(axis=1)
    assert 0 < rate[0] < 1, "the rows make no interesting case"
    np.testing.assert_allclose(member(answer, "estimate"), rate, rtol=1e-12)
    np.testing.assert_allclose(member(answer, "standard_error"), np.sqrt(rate * (1 - rate) / 16), rtol=1e-12)
    np.testing.assert_allclose(member(answer, "exact"), [3.5 / 3.75, 0.5, 0], rtol=1e-6)


@pytest.mark.parametrize("encoding", ["pairs", "zero_bit"])
@pytest.mark.parametrize("said", [True, False])
def test_the_similarity_of_codes_is_their_rate_of_agreement(http: httpx.Client, encoding: str, said: bool) -> None:
    x, y = (array(post_npy(http, f"standing-gmm/codes?encoding={encoding}", rows)) for rows in (X, Y))
    answer = similarity(http, x.tolist(), y.tolist(), f"?encoding={encoding}" if said else "")
    assert set(answer.json()) == {"estimate", "standard_error"}
    equal = (x == y).all(axis=2) if encoding == "pairs" else x == y
    rate = equal.mean(axis=1)
    np.testing.assert_allclose(member(answer, "estimate"), rate, rtol=1e-12)
    np.testing.assert_allclose(member(answer, "standard_error"), np.sqrt(rate * (1 - rate) / 16), rtol=1e-12)


def test_similarity_comes_stacked_as_npy(http: httpx.Client) -> None:
    stacked = array(similarity(http, X.tolist(), Y.tolist(), accept=NPY))
    as_json = similarity(http, X.tolist(), Y.tolist())
    np.testing.assert_array_equal(stacked, [member(as_json, k) for k in ("estimate", "standard_error", "exact")])


@pytest.mark.parametrize("query", ["", "?encoding=pairs", "?encoding=zero_bit"])
def test_no_pairs_have_no_similarity(http: httpx.Client, query: str) -> None:
    answer = similarity(http, [], [], query)
    assert answer.status_code == 200
    assert set(answer.json()) == ({"estimate", "standard_error"} | (set() if query else {"exact"}))
    assert all(numbers == [] for numbers in answer.json().values())


def test_whole_numbers_of_the_width_of_a_vector_are_vectors(http: httpx.Client, name: str) -> None:
    spec = {"input_dim": 3, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "s": 3}
    assert http.put(f"/v1/maps/{name}", json=spec).status_code == 201
    body = {"x": [[1, 2, 3]], "y": [[1, 2, 3]]}
    assert "exact" in post(http, f"{name}/similarity", body).json()
    assert "exact" not in post(http, f"{name}/similarity?encoding=zero_bit", body).json()


def test_many_pairs_of_vectors_are_the_few_block_by_block(http: httpx.Client) -> None:
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(2, 2000, 3)).round(3)
    answer = post(http, "standing-gmm/similarity", {"x": x.tolist(), "y": y.tolist()})
    for i in (0, 1000, 1999):
        one = similarity(http, x[i : i + 1].tolist(), y[i : i + 1].tolist())
        assert one.json() == {k: v[i : i + 1] for k, v in answer.json().items()}
