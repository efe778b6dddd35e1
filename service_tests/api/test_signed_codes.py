"""Signed codes of Fourier maps over HTTP: encodings, similarities, and what is refused."""

import io
from typing import Any

import httpx
import numpy as np
import pytest

import bochner
from service_tests.cases import each
from service_tests.checks import NPY, array, assert_problem, member, npy, post, post_npy, put

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
OTHERS = ROWS + np.linspace(0, 2, 9, dtype=np.float32)[:, None]


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


def test_the_similarity_of_vectors_and_of_codes_is_one(http: httpx.Client, signed: str) -> None:
    of_vectors = post(http, f"{signed}/similarity", {"x": ROWS.tolist(), "y": OTHERS.tolist()}).json()
    x, y = (array(post_npy(http, f"{signed}/codes", rows, NPY)) for rows in (ROWS, OTHERS))
    assert [*of_vectors] == ["estimate", "standard_error", "agreement", "exact", "bias", "interval"]
    exact = np.exp(-((ROWS - OTHERS).astype(np.float64) ** 2).sum(axis=1) / (2 * 1.5**2))
    np.testing.assert_allclose(of_vectors["exact"], exact, rtol=1e-6)
    same = (bits(http, signed, ROWS) == bits(http, signed, OTHERS)).mean(axis=1)
    np.testing.assert_allclose(of_vectors["agreement"], same, rtol=1e-12)
    body = {"x": x.tolist(), "y": y.tolist()}
    for query in ("", "?of=codes", "?encoding=packed", "?encoding=packed&of=codes"):
        of_codes = post(http, f"{signed}/similarity{query}", body).json()
        for name in ("estimate", "standard_error", "agreement", "interval"):
            assert of_codes[name] == of_vectors[name], name
        assert "exact" not in of_codes
    off = (np.array(of_vectors["estimate"]) - exact)[1:] / np.array(of_vectors["standard_error"])[1:]
    assert np.abs(off).max() < 4
    assert of_vectors["estimate"][0] == 1


def test_what_comes_in_npz_is_read_as_what_comes_in_json(http: httpx.Client, signed: str) -> None:
    x, y = (array(post_npy(http, f"{signed}/codes", rows, NPY)) for rows in (ROWS, OTHERS))
    wanted = post(http, f"{signed}/similarity", {"x": x.tolist(), "y": y.tolist()}).json()["estimate"]
    buffer = io.BytesIO()
    np.savez(buffer, x=x, y=y)
    answer = http.post(
        f"/v1/maps/{signed}/similarity", content=buffer.getvalue(), headers={"Content-Type": NPZ, "Accept": NPY}
    )
    stacked = array(answer)
    np.testing.assert_array_equal(stacked[0], wanted)
    assert len(stacked) == 4  # standard_error, agreement and bias


@pytest.mark.parametrize("rows_per_band", [1, 4, 16])
def test_similarities_of_fingerprints_tell_of_the_kernel_too(
    http: httpx.Client, signed: str, rows_per_band: int
) -> None:
    query = f"?encoding=fingerprint&rows_per_band={rows_per_band}"
    body = {"x": ROWS.tolist(), "y": OTHERS.tolist()}
    of_vectors = post(http, f"{signed}/similarity{query}", body)
    x, y = (array(post_npy(http, f"{signed}/codes{query}", rows, NPY)) for rows in (ROWS, OTHERS))
    np.testing.assert_array_equal(member(of_vectors, "agreement"), (x == y).mean(axis=1))
    codes = post(http, f"{signed}/similarity{query}", {"x": x.tolist(), "y": y.tolist()})
    assert codes.json()["estimate"] == of_vectors.json()["estimate"]
    low, high = member(of_vectors, "interval").T
    exact = member(of_vectors, "exact")
    assert ((low <= exact + 1e-12) & (exact <= high + 1e-12)).sum() >= 8


def test_a_kernel_without_a_law_has_the_rate_alone_and_a_warning_says_why(http: httpx.Client, name: str) -> None:
    spec = SPEC | {"kernel": {"kind": "cauchy", "length_scale": 1.0}}
    assert put(http, name, spec).status_code == 201
    answer = post(http, f"{name}/similarity", {"x": ROWS.tolist(), "y": OTHERS.tolist()})
    assert {*answer.json()} == {"agreement", "exact", "warnings"}
    assert "rate of agreement alone" in answer.headers["bochner-warning"]
    codes = array(post_npy(http, f"{name}/codes", ROWS, NPY)).tolist()
    assert post(http, f"{name}/similarity", {"x": codes, "y": codes}).json()["agreement"] == [1] * 9


REFUSED = [
    ("codes?encoding=zero_bit", "encoding"),
    ("codes?encoding=one_hot", "encoding"),
    ("codes?bits=2", "bits"),
    ("codes?bits_of=pair", "bits_of"),
    ("codes?on_zero=mark", "on_zero"),
    ("codes?rows_per_band=4", "rows_per_band"),
    ("codes?encoding=fingerprint&rows_per_band=101", "rows_per_band"),
    ("codes?encoding=fingerprint&rows_per_band=0", "rows_per_band"),
    ("codes?encoding=fingerprint&bits=16", "bits"),
]


@each(("call", "option"), REFUSED)
def test_options_without_a_meaning_are_refused_by_name(http: httpx.Client, signed: str, call: str, option: str) -> None:
    document = assert_problem(http, post_npy(http, f"{signed}/{call}", ROWS), 422, "invalid-input")
    assert document["errors"][0]["parameter"] == option


def test_options_of_similarities_are_refused_alike(http: httpx.Client, signed: str) -> None:
    body = {"x": ROWS.tolist(), "y": ROWS.tolist()}
    for query in ("gamma=1", "encoding=pairs", "rows_per_band=4", "encoding=packed&bits_of=pair"):
        assert_problem(http, post(http, f"{signed}/similarity?{query}", body), 422, "invalid-input")
    short = [[1] * 12] * 9
    assert_problem(http, post(http, f"{signed}/similarity?of=codes", {"x": short, "y": short}), 422, "invalid-input")
    large = [[256] * 13] * 9
    assert_problem(http, post(http, f"{signed}/similarity?of=codes", {"x": large, "y": large}), 422, "invalid-input")


def test_bands_have_no_meaning_for_kernel_gmm(http: httpx.Client, standing: dict[str, str]) -> None:
    answer = post_npy(http, f"{standing['gmm']}/codes?encoding=fingerprint&rows_per_band=4", ROWS)
    assert "Fourier" in assert_problem(http, answer, 422, "invalid-input")["detail"]


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


def test_a_map_that_is_taken_away_has_the_same_codes(http: httpx.Client, signed: str) -> None:
    taken = bochner.load(io.BytesIO(http.get(f"/v1/maps/{signed}/export?format=npz").content))
    np.testing.assert_array_equal(taken.codes(ROWS), array(post_npy(http, f"{signed}/codes", ROWS, NPY)))
    query = "encoding=fingerprint&bits=32&rows_per_band=4"
    expected = array(post_npy(http, f"{signed}/codes?{query}", ROWS, NPY))
    np.testing.assert_array_equal(taken.codes(ROWS, "fingerprint", bits=32, rows_per_band=4), expected)


def test_no_rows_have_no_codes(http: httpx.Client, signed: str) -> None:
    assert array(post_npy(http, f"{signed}/codes", ROWS[:0], NPY)).shape == (0, 13)
    assert post(http, f"{signed}/similarity", {"x": [], "y": []}).json()["estimate"] == []
