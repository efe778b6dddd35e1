"""Signed codes of Fourier maps over HTTP: encodings, similarities, and what is refused."""

from typing import Any

import httpx
import numpy as np
import pytest

from service_tests.cases import each
from service_tests.checks import NPY, array, assert_problem, npy, post, post_npy, put

S, D = 100, 3
NPZ = "application/x-npz"
SPEC: dict[str, Any] = {
    "input_dim": D,
    "kernel": {"kind": "gaussian", "length_scale": 1.5},
    "sampler": {"kind": "monte_carlo"},
    "s": S,
    "seed": 7,
}
ROWS = np.random.default_rng(5).normal(size=(9, D)).astype(np.float32)


@pytest.fixture(scope="module")
def signed(http: httpx.Client) -> str:
    assert put(http, "signed", SPEC).status_code in (200, 201)
    return "signed"


def bits(http: httpx.Client, name: str, rows: Any) -> Any:
    packed = array(post_npy(http, f"{name}/codes", rows, NPY))
    return np.unpackbits(packed, axis=1, count=S, bitorder="little")


def test_one_bit_a_frequency_is_packed_unless_something_else_is_asked_for(http: httpx.Client, signed: str) -> None:
    packed = array(post_npy(http, f"{signed}/codes", ROWS, NPY))
    assert (packed.dtype.str, packed.shape) == ("|u1", (9, 13))
    assert (packed[:, -1] < 1 << S % 8).all()
    for query in ("?encoding=packed", "?bits=1", "?encoding=packed&bits=1"):
        np.testing.assert_array_equal(array(post_npy(http, f"{signed}/codes{query}", ROWS, NPY)), packed)
    assert post(http, f"{signed}/codes", {"vectors": ROWS.tolist()}).json() == {"codes": packed.tolist()}
    sparse = [{"indices": [0, 1, 2], "values": row} for row in ROWS.tolist()]
    assert post(http, f"{signed}/codes", {"vectors": sparse}).json() == {"codes": packed.tolist()}


@pytest.mark.parametrize("width", [32, 64])
def test_fingerprints_are_equal_where_all_bits_of_a_band_are(http: httpx.Client, signed: str, width: int) -> None:
    near = ROWS + 0.02
    query = f"{signed}/codes?encoding=fingerprint&bits={width}&rows_per_band=4"
    x, y = (array(post_npy(http, query, rows, NPY)) for rows in (ROWS, near))
    assert (x.dtype, x.shape) == (np.dtype(f"uint{width}"), (9, 25))
    same = (bits(http, signed, ROWS) == bits(http, signed, near)).reshape(9, 25, 4).all(axis=2)
    np.testing.assert_array_equal(x == y, same)
    assert 0 < same.sum() < same.size
    assert array(post_npy(http, f"{signed}/codes?encoding=fingerprint", ROWS, NPY)).shape == (9, 6)


REFUSED = [
    ("codes?encoding=zero_bit", "encoding"),
    ("codes?bits=2", "bits"),
    ("codes?on_zero=mark", "on_zero"),
    ("codes?rows_per_band=4", "rows_per_band"),
    ("codes?encoding=fingerprint&rows_per_band=101", "rows_per_band"),
    ("codes?encoding=fingerprint&bits=16", "bits"),
]


@each(("call", "option"), REFUSED)
def test_options_without_a_meaning_are_refused_by_name(http: httpx.Client, signed: str, call: str, option: str) -> None:
    document = assert_problem(http, post_npy(http, f"{signed}/{call}", ROWS), 422, "invalid-input")
    assert document["errors"][0]["parameter"] == option


def test_maps_with_weights_of_their_own_are_refused_and_told_what_helps(http: httpx.Client, name: str) -> None:
    rule = {key: value for key, value in SPEC.items() if key != "s"} | {"sampler": {"kind": "sparse_grid", "level": 2}}
    assert put(http, name, rule).status_code == 201
    for call, content in (("codes", npy(ROWS)), ("similarity", None)):
        body = {"x": ROWS.tolist(), "y": ROWS.tolist()}
        answer = post(http, f"{name}/{call}", body) if content is None else post_npy(http, f"{name}/{call}", content)
        told = assert_problem(http, answer, 422, "invalid-input")["detail"]
        assert "sparse_grid, whose frequencies have weights of their own" in told
        assert "sobol, gives codes" in told
    outputs = [one["name"] for one in http.get(f"/v2/models/{name}").json()["outputs"]]
    assert outputs == ["features"]


def test_collisions_are_refused_and_similarity_is_named(http: httpx.Client, signed: str) -> None:
    answer = post(http, f"{signed}/diagnostics/collisions", {"vectors": ROWS.tolist()})
    assert (
        "/similarity tells how often signed codes agree" in assert_problem(http, answer, 422, "invalid-input")["detail"]
    )
