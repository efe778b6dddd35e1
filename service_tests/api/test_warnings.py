"""Warnings beside answers, where a map's dtype is too coarse for its rows: on every format and way of answering."""

import asyncio
from typing import Any

import httpx
import numpy as np
import pytest

from service_tests.api.conftest import HASHES, SPEC
from service_tests.cases import with_nightly
from service_tests.checks import JSON, NPY, RESPOND_ASYNC, array, finished, member, npy, post, post_npy, put
from service_tests.running import Running

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


@pytest.mark.parametrize("title", ["single", "double", "centered", "landmarks"])
def test_diagnostics_say_what_clients_get_of_rows_as_they_were_posted(
    http: httpx.Client, unix: dict[str, str], title: str
) -> None:
    wanted = truth(array(post_npy(http, f"{unix[title]}/transform", UNIX)))
    found, warning = measured(http, unix[title], {"vectors": UNIX.tolist(), "seeds": 0})
    assert found == pytest.approx(wanted, rel=0.01)
    assert (wanted > 0.5) == (warning is not None) == (title in ("single", "landmarks"))


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


def test_requests_that_are_computed_together_are_warned_each_for_itself(running: Running, unix: dict[str, str]) -> None:
    async def at_once() -> list[httpx.Response]:
        async with httpx.AsyncClient(base_url=running.url, timeout=60) as client:
            bodies = [npy(np.array([[1.7e9 if i % 2 else 17.0]])) for i in range(12)]
            sent = (
                client.post(f"/v1/maps/{unix['single']}/transform", content=body, headers={"Content-Type": NPY})
                for body in bodies
            )
            return list(await asyncio.gather(*sent))

    for i, answer in enumerate(asyncio.run(at_once())):
        assert (HEADER in answer.headers) == bool(i % 2)


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


def test_recommendations_warn_of_rows_that_their_maps_are_too_coarse_for(http: httpx.Client) -> None:
    body = {
        "vectors": UNIX[:20].tolist(),
        "kernel": {"kind": "gaussian", "length_scale": 10},
        "budget": 16,
        "samplers": ["sobol"],
        "seeds": 1,
    }
    answer = http.post("/v1/recommendations", json=body)
    assert answer.json()["best"]["dtype"] == "float32"
    far = answer.json()["ranked"][0]["error_mean"]
    assert "20 of 20 rows of vectors" in answer.headers[HEADER]
    assert answer.json()["warnings"] == [answer.headers[HEADER]]
    body["vectors"] = (UNIX[:20] - 1.7e9).tolist()
    answer = http.post("/v1/recommendations", json=body)
    assert far > 2 * answer.json()["ranked"][0]["error_mean"]
    assert HEADER not in answer.headers


def test_codes_warn_where_a_center_of_the_kernel_leaves_little_but_rounding(http: httpx.Client, name: str) -> None:
    center, x, y = 1.7e9, [1.7e9 + 300, 1.7e9 - 5e3, 1.7e9 + 70], [1.7e9 + 100, 1.7e9 + 5e3, 1.7e9]
    fields = HASHES | {"dtype": "float32"}
    for title, changes in (
        ("plain", {}),
        ("kernel", {"kernel": {"kind": "gmm", "center": [center] * 3}}),
        ("input", {"input": {"center": center}}),
    ):
        assert put(http, f"{name}-{title}", fields | changes).status_code == 201
        for call, body in (
            ("codes", {"vectors": [x]}),
            ("similarity", {"x": [x], "y": [y]}),
            ("kernel", {"x": [x], "y": [y]}),
            ("diagnostics/collisions", {"vectors": [x, y]}),
        ):
            answer = post(http, f"{name}-{title}/{call}", body)
            assert answer.status_code == 200, answer.text
            assert (HEADER in answer.headers) == ("warnings" in answer.json()) == (title == "kernel"), call
            if title == "kernel":
                assert "; ".join(answer.json()["warnings"]) == answer.headers[HEADER]
                assert f"of {len(body.get('vectors', [x]))} rows of" in answer.headers[HEADER]


def test_landmarks_that_are_uploaded_are_warned_of_when_they_are_put(http: httpx.Client, name: str) -> None:
    fields = SPEC | {"input_dim": 1, "kernel": {"kind": "gaussian", "length_scale": 10}, "s": None, "dtype": "float32"}
    fields |= {"sampler": {"kind": "uploaded_landmarks", "landmarks": UNIX[:20].tolist()}}
    for title, changes, is_coarse in (
        ("single", {}, True),
        ("double", {"dtype": "float64"}, False),
        ("centered", {"input": {"center": 1.7e9}}, False),
    ):
        told = put(http, f"{name}-{title}", fields | changes).json()["warnings"]
        assert any("rows of the landmarks" in text for text in told) == is_coarse
