"""The transformers are what scikit-learn means by one, and its pipelines and searches take them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
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
