"""The transformers are what scikit-learn means by one, and its pipelines and searches take them."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import bochner_client
from bochner_client.transformers import FeatureMap, HashMap
from service_tests.running import Running

KINDS = ("maps", "datasets")
FITTED_TO_ROWS = {"fit": "standardize", "missing": 0.0}


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.parametrize(
    "transformer",
    [
        FeatureMap(),
        FeatureMap(s=7, length_scale=1.0, dtype="float64", form="phase", normalize=True, input=FITTED_TO_ROWS),
        FeatureMap("laplacian", "landmarks", s=5),
        HashMap(),
        HashMap(s=9, encoding="zero_bit", on_zero="mark", input="max_abs"),
    ],
)
def test_scikit_learn_finds_nothing_wrong(running: Running, transformer: FeatureMap | HashMap) -> None:
    told = check_estimator(transformer.set_params(url=running.url), on_fail=None)
    wrong = {one["check_name"]: one["exception"] for one in told if one["status"] not in ("passed", "skipped")}
    assert not wrong
    skipped = {one["check_name"] for one in told if one["status"] == "skipped"}
    assert skipped <= {"check_array_api_input"}, "that is for estimators that compute here"
    assert len(told) > 40


WITHOUT = """
import sys
import bochner_client
assert not {"sklearn", "scipy", "narwhals"} & set(sys.modules), "the client does without them"
sys.modules["sklearn"] = None
try:
    bochner_client.FeatureMap
except ImportError as error:
    print(error)
"""


def test_the_client_does_without_scikit_learn_and_says_what_the_transformers_need() -> None:
    python_path = str(Path(bochner_client.__file__).parents[1])
    environment = os.environ | {"PYTHONPATH": python_path}
    told = subprocess.run([sys.executable, "-c", WITHOUT], env=environment, capture_output=True, check=True, text=True)
    assert told.stdout == "FeatureMap needs scikit-learn: pip install 'bochner-client[sklearn]'\n"
    assert bochner_client.FeatureMap is FeatureMap
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = bochner_client.Nothing


@pytest.fixture
def labelled() -> tuple[Any, Any]:
    """Rows within and beyond a circle, which no line parts."""
    rows = np.random.default_rng(11).standard_normal((600, 4))
    return rows, np.linalg.norm(rows, axis=1) > 1.8


@pytest.mark.nightly
def test_a_search_tries_samplers_sizes_and_scales_and_leaves_nothing_behind(
    running: Running, http: httpx.Client, labelled: tuple[Any, Any]
) -> None:
    def left() -> set[str]:
        answers = [http.get(f"/v1/{things}", params={"prefix": "sklearn-", "limit": 1000}) for things in KINDS]
        return {one["name"] for answer, things in zip(answers, KINDS, strict=True) for one in answer.json()[things]}

    before = left()
    grid = {
        "featuremap__sampler": ["monte_carlo", "orthogonal", {"kind": "halton", "scramble": "none"}, "landmarks"],
        "featuremap__s": [16, 64],
        "featuremap__length_scale": [0.02, "median"],
    }
    rows, beyond = labelled
    pipeline = make_pipeline(FeatureMap(ttl=4, seed=2, url=running.url), SGDClassifier(random_state=0))
    search = GridSearchCV(pipeline, grid, cv=3, n_jobs=2, error_score="raise").fit(rows, beyond)
    assert search.best_params_["featuremap__length_scale"] == "median"
    assert search.best_score_ > 0.85
    scores = search.cv_results_["mean_test_score"]
    assert scores.min() < 0.7
    assert len(left() - before) > 10
    deadline = time.monotonic() + 30
    while left() - before and time.monotonic() < deadline:
        time.sleep(0.5)
    assert not left() - before
    assert search.score(rows, beyond) > 0.85, "its map is made again"
