"""Diagnostics over HTTP: the envelopes, where rows come from, pictures, jobs."""

import xml.etree.ElementTree as ElementTree
from typing import Any

import httpx
import numpy as np
import pytest

from service_tests.api.conftest import SPEC
from service_tests.cases import each
from service_tests.checks import RESPOND_ASYNC, assert_problem, finished, post, put, put_dataset

ROWS = np.random.default_rng(6).normal(size=(40, 3)).round(3)
FIGURES = {"relative_frobenius", "relative_spectral", "max_abs", "mean_square", "bias"}
SVG = "{http://www.w3.org/2000/svg}"


def test_gram_answers_the_figures_of_every_estimator_beside_those_of_monte_carlo(
    http: httpx.Client, fourier: str
) -> None:
    body = {"vectors": ROWS.tolist(), "estimators": ["map", "cv1", "cv2"], "seeds": 3}
    answer = post(http, f"{fourier}/diagnostics/gram", body)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert set(found) == {"rows", "form", "estimators", "monte_carlo", "ratios", "intervals"}
    assert (found["rows"], found["form"]) == (40, "cos_sin")
    assert set(found["estimators"]) == {"map", "cv1", "cv2"}
    blocks = post(http, f"{fourier}/kernel?exact=true", {"x": ROWS.tolist()}).json()
    error = np.array(blocks["approximate"]) - np.array(blocks["exact"])
    assert found["estimators"]["map"]["max_abs"] == pytest.approx(np.abs(error).max(), rel=1e-6)
    assert found["estimators"]["map"]["bias"] == pytest.approx(error.mean(), rel=1e-6)
    assert all(set(figures) == FIGURES for figures in found["estimators"].values())
    assert found["monte_carlo"]["seeds"] == 3
    assert set(found["monte_carlo"]["mean"]) == set(found["monte_carlo"]["sd"]) == FIGURES
    assert post(http, f"{fourier}/diagnostics/gram", body).json() == found


def test_rows_may_come_from_a_dataset(http: httpx.Client, fourier: str, name: str) -> None:
    assert put_dataset(http, name, ROWS).status_code == 201
    posted = post(http, f"{fourier}/diagnostics/gram", {"vectors": ROWS.tolist()}).json()
    for body in ({"dataset": name}, {"vectors": {"dataset": name}}, {"dataset": name, "rows": 40}):
        assert post(http, f"{fourier}/diagnostics/gram", body).json() == posted
    assert post(http, f"{fourier}/diagnostics/gram", {"dataset": name, "rows": 7}).json()["rows"] == 7
    missing = post(http, f"{fourier}/diagnostics/gram", {"dataset": "no-such"})
    assert_problem(http, missing, 404, "dataset-not-found", None)


def test_a_picture_is_an_svg_document_that_takes_the_colour_of_the_page(http: httpx.Client, fourier: str) -> None:
    path, body = f"{fourier}/diagnostics/box-discrepancy", {"box": 2, "box_scales": [1, 0.5]}
    answer = post(http, path, body, accept="image/svg+xml")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "image/svg+xml"
    assert answer.headers["vary"] == "Accept, Prefer, Accept-Encoding"
    root = ElementTree.fromstring(answer.content)
    assert root.tag == f"{SVG}svg"
    assert "prefers-color-scheme" in answer.text
    words = " ".join("".join(text.itertext()) for text in root.iter(f"{SVG}text"))
    assert "Monte Carlo, expected" in words
    assert f"{fourier}: gaussian, length_scale " in words
    assert post(http, path, body, accept="image/svg+xml").content == answer.content
    image = post(http, path, body, accept="image/png")
    assert image.headers["content-type"] == "image/png"
    assert image.content.startswith(b"\x89PNG\r\n\x1a\n")


def test_a_format_that_nothing_is_written_in_is_not_acceptable(http: httpx.Client, fourier: str) -> None:
    for accept in ("image/webp", "application/x-npy"):
        answer = post(http, f"{fourier}/diagnostics/gram", {"vectors": ROWS.tolist()}, accept=accept)
        assert_problem(http, answer, 406, "not-acceptable", None)


@pytest.mark.nightly
def test_a_job_measures_the_map_it_was_submitted_for_or_none(http: httpx.Client, fourier: str) -> None:
    body = {"vectors": np.random.default_rng(1).normal(size=(4500, 3)).tolist(), "seeds": 10}
    # Behind another that the only worker does first.
    path = f"/v1/maps/{fourier}/diagnostics/gram"
    before, taken = (http.post(path, json=body, headers=RESPOND_ASYNC) for _ in range(2))
    assert taken.status_code == 202, taken.text
    assert http.delete(f"/v1/maps/{fourier}").status_code == 204
    assert put(http, fourier, SPEC | {"seed": 8}).status_code == 201
    job = finished(http, taken)
    assert (job["state"], job["error"]["reason"]) == ("failed", "invalid-input")
    assert "is not the one that was there" in job["error"]["detail"]
    finished(http, before)


@each(
    ("kind", "body", "members"),
    [
        ("box-discrepancy", {"box": 2}, {"box", "scales"}),
        ("max-error", {"diameters": [0.1, 1], "samples": 50}, {"diameters"}),
        ("variance", {"x": ROWS[:2].tolist(), "y": ROWS[2:4].tolist(), "repeats": 50}, {"pairs"}),
        ("collisions", {"vectors": ROWS.tolist(), "bits": 8, "bits_of": "pair", "gamma": 3}, {"full", "b_bit", "rbf"}),
    ],
)
def test_the_others_answer_as_well(
    http: httpx.Client, fourier: str, hashes: str, kind: str, body: Any, members: set[str]
) -> None:
    """What their figures are is tested in core."""
    answer = post(http, f"{hashes if kind == 'collisions' else fourier}/diagnostics/{kind}", body)
    assert answer.status_code == 200, answer.text
    assert members <= set(answer.json())
