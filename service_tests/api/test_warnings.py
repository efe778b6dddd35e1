"""Warnings beside answers, where a map's dtype is too coarse for its rows: on every format and way of answering."""

from typing import Any

import httpx
import numpy as np
import pytest

from service_tests.api.conftest import SPEC
from service_tests.cases import with_nightly
from service_tests.checks import JSON, NPY, RESPOND_ASYNC, array, finished, member, post, post_npy, put

HEADER = "bochner-warning"
RNG = np.random.default_rng(11)
UNIX = 1.7e9 + 100 * RNG.random((200, 1))
EXACT = np.exp(-((UNIX - UNIX.T) ** 2) / 200)


@pytest.fixture(scope="module")
def unix(http: httpx.Client) -> dict[str, str]:
    """Maps of Unix times: in float32, in float64, in float32 after an input, and of landmarks."""
    base = SPEC | {"input_dim": 1, "kernel": {"kind": "gaussian", "length_scale": 10}, "sampler": {"kind": "sobol"}}
    base |= {"s": 256, "dtype": "float32"}
    landmarks = {"kind": "uploaded_landmarks", "landmarks": UNIX[:40].tolist()}
    specs = {
        "single": base,
        "double": base | {"dtype": "float64"},
        "centered": base | {"input": {"center": 1.7e9}},
        "landmarks": base | {"sampler": landmarks, "s": None},
    }
    for title, spec in specs.items():
        assert put(http, f"unix-{title}", spec).status_code == 201
    return {title: f"unix-{title}" for title in specs}


def truth(features: Any) -> float:
    """The relative Frobenius error of what clients make of features."""
    features = features.astype(np.float64)
    return float(np.linalg.norm(features @ features.T - EXACT) / np.linalg.norm(EXACT))


def measured(http: httpx.Client, name: str, body: Any) -> tuple[float, str | None]:
    answer = post(http, f"{name}/diagnostics/gram", body)
    figures = answer.json()["estimators"]["map"]
    return figures["relative_frobenius"], answer.headers.get(HEADER)


@pytest.mark.parametrize(
    ("n", "accept"), with_nightly([(1, JSON), (1, NPY), (200, JSON)], [(200, NPY), (20_000, JSON), (20_000, NPY)])
)
def test_every_answer_of_features_has_the_header_and_json_the_member(
    http: httpx.Client, unix: dict[str, str], n: int, accept: str
) -> None:
    rows = np.tile(UNIX, (-(-n // 200), 1))[:n]
    for title in ("single", "centered"):
        answer = post_npy(http, f"{unix[title]}/transform", rows, accept)
        text = answer.headers.get(HEADER)
        if title == "centered":
            assert text is None
            assert accept == NPY or set(answer.json()) == {"features"}
            continue
        assert text is not None
        assert text.isascii()
        assert text.startswith(f"float32 is too coarse for {n} of {n} rows of vectors")
        if accept == JSON:
            document = answer.json()
            assert document["warnings"] == [text]
            assert np.array(document["features"]).shape == (n, 512)
        else:
            assert array(answer).shape == (n, 512)


def test_the_exact_block_is_that_of_the_rows_before_they_are_rounded(http: httpx.Client, unix: dict[str, str]) -> None:
    rows = [[1e8], [1e8 + 10], [1e8 + 25]]
    body = {"x": rows[:1], "y": [*rows, [3.0]]}
    answer = post(http, f"{unix['single']}/kernel?exact=true", body)
    np.testing.assert_allclose(member(answer, "exact"), [[1, 0.6065307, 0.0439369, 0]], rtol=0, atol=1e-7)
    of_x, of_y = answer.json()["warnings"]
    assert answer.headers[HEADER] == f"{of_x}; {of_y}"
    assert "1 of 1 rows of x: at row 0" in of_x
    assert "3 of 4 rows of y: at row 2" in of_y
    near = post(http, f"{unix['single']}/kernel?exact=true", {"x": [[1.0], [2.0]]})
    assert set(near.json()) == {"approximate", "exact"}
    assert HEADER not in near.headers


def test_jobs_and_other_diagnostics_warn_too(http: httpx.Client, unix: dict[str, str]) -> None:
    body = {"vectors": UNIX.tolist(), "seeds": 0}
    taken = http.post(f"/v1/maps/{unix['single']}/diagnostics/gram", json=body, headers=RESPOND_ASYNC)
    assert taken.status_code == 202
    assert HEADER in taken.headers
    job = finished(http, taken)
    result = http.get(job["result"]).json()
    assert result["warnings"] == [taken.headers[HEADER]]
    assert result["estimators"]["map"]["relative_frobenius"] == pytest.approx(
        measured(http, unix["single"], body)[0], rel=1e-6
    )
    pairs = {"x": UNIX[:2].tolist(), "y": UNIX[2:4].tolist(), "repeats": 2}
    for title, warns in (("single", True), ("double", False)):
        answer = post(http, f"{unix[title]}/diagnostics/variance", pairs)
        assert (HEADER in answer.headers) == ("warnings" in answer.json()) == warns
