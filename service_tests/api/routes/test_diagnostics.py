"""Diagnostics over HTTP: the envelopes, where rows come from, pictures, jobs."""

import time
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import numpy as np
import pytest

from service_tests.api.conftest import SPEC
from service_tests.checks import JSON, NO_WAIT, NPY, RESPOND_ASYNC, assert_problem, finished, npy, post, put

ROWS = np.random.default_rng(6).normal(size=(40, 3)).round(3)
FIGURES = {"relative_frobenius", "relative_spectral", "max_abs", "mean_square", "bias"}
SVG = "{http://www.w3.org/2000/svg}"


def exact_gram(rows: Any) -> Any:
    return np.exp(-((rows[:, None] - rows[None]) ** 2).sum(axis=2) / (2 * 1.5**2))


def approximate_gram(http: httpx.Client, name: str, rows: Any) -> Any:
    return np.array(post(http, f"{name}/kernel", {"x": rows.tolist()}).json()["approximate"])


def test_gram_answers_the_figures_of_every_estimator_beside_those_of_monte_carlo(
    http: httpx.Client, fourier: str
) -> None:
    body = {"vectors": ROWS.tolist(), "estimators": ["map", "cv1", "cv2"], "seeds": 3}
    answer = post(http, f"{fourier}/diagnostics/gram", body)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert set(found) == {"rows", "form", "estimators", "monte_carlo", "ratios"}
    assert (found["rows"], found["form"]) == (40, "cos_sin")
    assert set(found["estimators"]) == {"map", "cv1", "cv2"}
    error = approximate_gram(http, fourier, ROWS) - exact_gram(ROWS)
    exact = exact_gram(ROWS)
    wanted = {
        "relative_frobenius": np.linalg.norm(error) / np.linalg.norm(exact),
        "relative_spectral": np.linalg.norm(error, 2) / np.linalg.norm(exact, 2),
        "max_abs": np.abs(error).max(),
        "mean_square": np.mean(error**2),
        "bias": error.mean(),
    }
    assert found["estimators"]["map"] == pytest.approx(wanted, rel=1e-6)
    assert all(set(figures) == FIGURES for figures in found["estimators"].values())
    assert found["estimators"]["cv2"]["relative_frobenius"] < found["estimators"]["map"]["relative_frobenius"]
    assert found["monte_carlo"]["seeds"] == 3
    assert set(found["monte_carlo"]["mean"]) == set(found["monte_carlo"]["sd"]) == FIGURES
    ratio = wanted["max_abs"] / found["monte_carlo"]["mean"]["max_abs"]
    assert found["ratios"]["map"]["max_abs"] == pytest.approx(ratio, rel=1e-6)
    assert post(http, f"{fourier}/diagnostics/gram", body).json() == found


def test_rows_may_come_from_a_dataset(http: httpx.Client, fourier: str, name: str) -> None:
    headers = {"Content-Type": JSON}
    assert http.put(f"/v1/datasets/{name}", json={"vectors": ROWS.tolist()}, headers=headers).status_code == 201
    posted = post(http, f"{fourier}/diagnostics/gram", {"vectors": ROWS.tolist()}).json()
    for body in ({"dataset": name}, {"vectors": {"dataset": name}}, {"dataset": name, "rows": 40}):
        assert post(http, f"{fourier}/diagnostics/gram", body).json() == posted
    assert post(http, f"{fourier}/diagnostics/gram", {"dataset": name, "rows": 7}).json()["rows"] == 7
    assert_problem(
        http, post(http, f"{fourier}/diagnostics/gram", {"dataset": "no-such"}), 404, "dataset-not-found", None
    )


def test_the_box_may_come_from_a_dataset(http: httpx.Client, fourier: str, name: str) -> None:
    assert http.put(f"/v1/datasets/{name}", json={"vectors": ROWS.tolist()}).status_code == 201
    box = (ROWS.max(axis=0) - ROWS.min(axis=0)).tolist()
    of_dataset, of_rows, of_list = (
        post(http, f"{fourier}/diagnostics/box-discrepancy", body).json()
        for body in ({"dataset": name}, {"vectors": ROWS.tolist()}, {"box": box})
    )
    assert of_dataset["box"] == pytest.approx(box, rel=1e-12)
    for found in (of_dataset, of_rows):
        assert [one["normalized"] for one in found["scales"]] == pytest.approx(
            [one["normalized"] for one in of_list["scales"]], rel=1e-9
        )
    assert [one["box_scale"] for one in of_list["scales"]] == [1, 0.5, 0.25]
    for one in of_list["scales"]:
        assert one["ratio"] == pytest.approx(one["normalized"] / one["expected_monte_carlo"], rel=1e-12)
        volume = float(np.prod(one["box_scale"] * np.array(box) / np.pi))
        assert one["discrepancy_squared"] == pytest.approx(one["normalized"] * volume, rel=1e-9)
        assert np.exp(one["log_discrepancy_squared"]) == pytest.approx(one["discrepancy_squared"], rel=1e-9)


def test_max_error_grows_with_the_diameter(http: httpx.Client, fourier: str) -> None:
    found = post(http, f"{fourier}/diagnostics/max-error", {"diameters": [0.1, 1, 3], "samples": 500}).json()
    assert [one["diameter"] for one in found["diameters"]] == [0.1, 1, 3]
    assert 0 < found["diameters"][0]["max"] < found["diameters"][2]["max"]
    assert all(one["rms"] <= one["max"] and one["bound"] is None for one in found["diameters"])


def test_variance_takes_pairs_or_correlations(http: httpx.Client, fourier: str, hashes: str) -> None:
    body = {"x": ROWS[:2].tolist(), "y": ROWS[2:4].tolist(), "repeats": 50}
    found = post(http, f"{fourier}/diagnostics/variance", body).json()
    kernel = exact_gram(ROWS[:4])[[0, 1], [2, 3]]
    for pair, k in zip(found["pairs"], kernel, strict=True):
        assert pair["exact"] == pytest.approx(k, rel=1e-6)
        # Var cos(w·δ) = ½ + ½φ(2δ) − φ(δ)², and φ(2δ) = φ(δ)⁴.
        assert pair["closed_form"] == pytest.approx((0.5 + 0.5 * k**4 - k**2) / 64, rel=1e-6)
    of_hashes = post(http, f"{hashes}/diagnostics/variance", {"correlations": [0.5], "repeats": 20}).json()
    g = (1 - 0.5) / (1 + 0.5)
    assert of_hashes["pairs"][0]["closed_form"] == pytest.approx(g * (1 - g) / 64, rel=1e-4)


def test_collisions_answer_every_way_to_count(http: httpx.Client, hashes: str) -> None:
    body = {"vectors": ROWS.tolist(), "bits": 8, "bits_of": "pair", "gamma": 3}
    found = post(http, f"{hashes}/diagnostics/collisions", body).json()
    assert set(found) == {"pairs", "exact", "full", "zero_bit", "b_bit", "rbf"}
    assert found["pairs"] == 40 * 39 // 2
    exact = np.array(post(http, f"{hashes}/kernel?exact=true", {"x": ROWS.tolist()}).json()["exact"])
    upper = np.triu_indices(40, 1)
    assert found["exact"]["mean"] == pytest.approx(exact[upper].mean(), rel=1e-5)
    rate = approximate_gram(http, hashes, ROWS)[upper]
    assert found["full"]["mean"] == pytest.approx(rate.mean(), rel=1e-5)
    assert found["full"]["rms_error"] == pytest.approx(np.sqrt(np.mean((rate - exact[upper]) ** 2)), rel=1e-4)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("box-discrepancy", {"box": 2, "box_scales": [1, 0.5]}),
        ("collisions", {"vectors": ROWS.tolist(), "bits": 4, "bits_of": "pair"}),
    ],
)
def test_a_picture_is_an_svg_document_that_takes_the_colour_of_the_page(
    http: httpx.Client, fourier: str, hashes: str, kind: str, body: dict[str, Any]
) -> None:
    path = f"{hashes if kind == 'collisions' else fourier}/diagnostics/{kind}"
    answer = post(http, path, body, accept="image/svg+xml")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "image/svg+xml"
    assert answer.headers["vary"] == "Accept, Prefer, Accept-Encoding"
    assert len(answer.content) < 150_000
    root = ElementTree.fromstring(answer.content)
    assert root.tag == f"{SVG}svg"
    assert "prefers-color-scheme" in answer.text
    assert "currentColor" in answer.text
    words = " ".join("".join(text.itertext()) for text in root.iter(f"{SVG}text"))
    said = {
        "box-discrepancy": "Monte Carlo, expected",
        "collisions": "4 bits of pair: bias",
    }
    assert said[kind] in words
    title = f"{hashes}: gmm, p 1; gcws, s = " if kind == "collisions" else f"{fourier}: gaussian, length_scale "
    assert title in words
    assert post(http, path, body, accept="image/svg+xml").content == answer.content
    image = post(http, path, body, accept="image/png")
    assert image.headers["content-type"] == "image/png"
    assert image.content.startswith(b"\x89PNG\r\n\x1a\n")
    assert 10_000 < len(image.content) < 500_000
    assert post(http, path, body, accept="image/png").content == image.content


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("image/*", "image/svg+xml"),
        ("image/png, image/svg+xml;q=0.9", "image/png"),
        ("text/html, image/avif, image/webp, image/apng, image/svg+xml, image/*;q=0.8, */*;q=0.5", "image/svg+xml"),
        ("image/png;q=0.1, application/json;q=0.2", JSON),
        ("*/*", JSON),
    ],
)
def test_the_picture_that_accept_prefers_is_drawn(http: httpx.Client, fourier: str, accept: str, chosen: str) -> None:
    answer = post(http, f"{fourier}/diagnostics/max-error", {"diameters": [1, 2], "samples": 10}, accept=accept)
    assert answer.headers["content-type"] == chosen


@pytest.mark.nightly
def test_pictures_do_not_keep_other_requests_waiting(http: httpx.Client, fourier: str) -> None:
    path, body = f"{fourier}/diagnostics/gram", {"vectors": ROWS.tolist(), "estimators": ["map", "cv1", "cv2"]}
    post(http, path, body, accept="image/png")  # the first one loads the library
    waits = []
    with ThreadPoolExecutor(4) as drawing:
        drawn = [drawing.submit(post, http, path, body, "image/png") for _ in range(8)]
        while not all(one.done() for one in drawn):
            began = time.monotonic()
            assert http.get("/health/live").status_code == 200
            waits.append(time.monotonic() - began)
    assert all(one.result().status_code == 200 for one in drawn)
    assert len(waits) > 10
    # Drawn on the loop, each of them would keep it for half a second.
    assert np.median(waits) < 0.1


def test_a_format_that_nothing_is_written_in_is_not_acceptable(http: httpx.Client, fourier: str) -> None:
    body = {"vectors": ROWS.tolist()}
    for kind, accept in (("gram", "image/webp"), ("box-discrepancy", "text/html"), ("gram", "application/x-npy")):
        answer = post(http, f"{fourier}/diagnostics/{kind}", body, accept=accept)
        assert_problem(http, answer, 406, "not-acceptable", None)


@pytest.mark.nightly
def test_long_diagnostics_are_jobs_with_the_same_answers(http: httpx.Client, fourier: str, name: str) -> None:
    many = np.random.default_rng(1).normal(size=(4500, 3)).round(3)
    assert http.put(f"/v1/datasets/{name}", json={"vectors": many.tolist()}).status_code == 201
    body = {"dataset": name, "seeds": 10}
    taken = http.post(f"/v1/maps/{fourier}/diagnostics/gram", json=body, headers=RESPOND_ASYNC)
    assert taken.status_code == 202, taken.text
    job = finished(http, taken)
    assert (job["kind"], job["subject"]) == ("diagnose", {"map": fourier, "diagnostic": "gram"})
    answer = http.get(job["result"])
    assert answer.headers["content-type"] == JSON
    found = answer.json()
    assert set(found) == {"rows", "form", "estimators", "monte_carlo", "ratios"}
    error = approximate_gram(http, fourier, many[:300]) - exact_gram(many[:300])
    assert found["rows"] == 4500
    # Of other rows of the same law, hence only near.
    of_some = np.linalg.norm(error) / np.linalg.norm(exact_gram(many[:300]))
    assert found["estimators"]["map"]["relative_frobenius"] == pytest.approx(of_some, rel=0.3)
    picture = http.get(job["result"], headers={"Accept": "image/svg+xml"})
    assert ElementTree.fromstring(picture.content).tag == f"{SVG}svg"
    assert f"{fourier}: gaussian" in picture.text
    image = http.get(job["result"], headers={"Accept": "image/png"})
    assert image.headers["content-type"] == "image/png"
    assert image.content.startswith(b"\x89PNG")


@pytest.mark.nightly
@pytest.mark.parametrize("again", [True, False], ids=["replaced", "gone"])
def test_a_job_measures_the_map_it_was_submitted_for_or_none(http: httpx.Client, fourier: str, again: bool) -> None:
    body = {"vectors": np.random.default_rng(1).normal(size=(4500, 3)).tolist(), "seeds": 10}
    # Behind another that the only worker does first.
    path = f"/v1/maps/{fourier}/diagnostics/gram"
    before, taken = (http.post(path, json=body, headers=RESPOND_ASYNC) for _ in range(2))
    assert taken.status_code == 202, taken.text
    assert http.delete(f"/v1/maps/{fourier}").status_code == 204
    if again:
        assert put(http, fourier, SPEC | {"seed": 8}).status_code == 201
    job = finished(http, taken)
    assert job["state"] == "failed"
    assert job["error"]["reason"] == "invalid-input"
    assert ("is not the one that was there" in job["error"]["detail"]) == again
    assert fourier in job["error"]["detail"]
    finished(http, before)


def test_what_takes_much_memory_is_a_job_however_quick(http: httpx.Client, fourier: str, name: str) -> None:
    rows = np.zeros((12_000, 3))
    rows[:, 0] = np.arange(12_000)
    assert http.put(f"/v1/datasets/{name}", content=npy(rows), headers={"Content-Type": NPY}).status_code == 201
    body = {"dataset": name, "seeds": 0}
    taken = http.post(f"/v1/maps/{fourier}/diagnostics/gram", json=body, headers=NO_WAIT)
    assert taken.status_code == 202, taken.text
    assert taken.json()["step"] is None, "nothing was done in the request"
    assert http.delete(taken.headers["location"]).status_code == 202


def test_box_discrepancy_is_that_of_the_normalised_features(http: httpx.Client, name: str) -> None:
    found = []
    for normalize, weights in ((True, [1, 1, 2]), (False, [0.25, 0.25, 0.5])):
        sampler = {"kind": "uploaded", "frequencies": [[1, 0, 0], [0, 2, 0], [0, 0, 3]], "weights": weights}
        of_map = {**SPEC, "sampler": sampler, "s": 3, "normalize": normalize}
        assert put(http, f"{name}-{normalize}", of_map).status_code == 201
        answer = post(http, f"{name}-{normalize}/diagnostics/box-discrepancy", {"box": 2})
        found.append([one["normalized"] for one in answer.json()["scales"]])
    assert found[0] == pytest.approx(found[1], rel=1e-12)
