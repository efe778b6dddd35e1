"""Warnings beside answers, where a map's dtype is too coarse for its rows: on every format and way of answering."""

from typing import Any

import httpx
import numpy as np
import pytest

from service_tests.api.conftest import SPEC
from service_tests.cases import with_nightly
from service_tests.checks import JSON, NPY, array, post_npy, put

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
