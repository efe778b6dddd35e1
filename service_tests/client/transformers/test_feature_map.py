"""The transformers are what scikit-learn means by one."""

import pytest
from sklearn.utils.estimator_checks import check_estimator

from bochner_client.transformers import FeatureMap, HashMap
from service_tests.running import Running

FITTED_TO_ROWS = {"fit": "standardize", "missing": 0.0}


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.parametrize(
    "transformer",
    [
        FeatureMap(s=7, length_scale=1.0, dtype="float64", form="phase", normalize=True, input=FITTED_TO_ROWS),
        FeatureMap("laplacian", "landmarks", s=5),
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
