"""A fit finds what its map is, shares it with equal fits, and holds all that it takes to make it anew."""

from typing import Any

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone

from bochner_client.transformers import FeatureMap, HashMap
from service_tests.checks import put, put_dataset
from service_tests.running import Running

ROWS = np.random.default_rng(7).standard_normal((300, 5)) * [1, 2, 3, 4, 5] + 10
SUBSETS = {"kind": "anova", "subsets": [[0, 1], [1, 2], [3]]}


def names(http: httpx.Client, things: str) -> set[str]:
    """Names of the maps or datasets that transformers have made."""
    answer = http.get(f"/v1/{things}", params={"prefix": "sklearn-", "limit": 1000}).json()
    return {one["name"] for one in answer[things]}


def fresh(seed: int) -> NDArray[Any]:
    """Rows that no other test has, so that what is made of them is new."""
    return np.random.default_rng(seed).standard_normal((200, 3))


def test_equal_fits_share_a_map_and_others_do_not(running: Running) -> None:
    one = FeatureMap(s=8, length_scale=3.0, url=running.url)
    first, again = clone(one).fit(ROWS), clone(one).fit(ROWS[:10])
    assert (first.name_, first.digest_) == (again.name_, again.digest_)
    for changed in ({"s": 9}, {"length_scale": 3.5}, {"seed": 1}):
        other = clone(one).set_params(**changed).fit(ROWS)
        assert other.name_ != first.name_, changed
        assert other.digest_ != first.digest_, changed


def test_rows_are_sent_only_where_the_map_is_made_from_them(running: Running, http: httpx.Client) -> None:
    rows = fresh(101)
    before = names(http, "datasets")
    FeatureMap(s=8, length_scale=3.0, url=running.url).fit(rows)
    HashMap(s=8, url=running.url).fit(rows)
    assert names(http, "datasets") == before
    FeatureMap(s=8, url=running.url).fit(rows)
    assert len(names(http, "datasets") - before) == 1
    FeatureMap(s=8, sampler="landmarks", input="robust", url=running.url).fit(rows)
    assert len(names(http, "datasets") - before) == 1


@pytest.mark.parametrize(
    ("options", "kernel", "given"),
    [
        ({}, {}, None),
        ({"length_scale": {"per_column": "median"}}, {"length_scale": {"per_column": "median"}}, None),
        ({"kernel": {"kind": "matern", "nu": 1.5, "length_scale": "median"}}, {"kind": "matern", "nu": 1.5}, None),
        ({"kernel": SUBSETS}, SUBSETS, None),
        ({"input": "robust"}, {}, {"fit": "robust"}),
    ],
)
def test_what_is_left_to_rows_is_found_once_and_is_as_the_service_finds_it(
    running: Running, http: httpx.Client, name: str, options: dict[str, Any], kernel: dict[str, Any], given: Any
) -> None:
    fitted = FeatureMap(s=8, url=running.url, **options).fit(ROWS)
    put_dataset(http, f"{name}-rows", ROWS)
    dataset = {"dataset": f"{name}-rows"}
    asked = {"kind": "gaussian", "length_scale": "median", **dataset, **kernel}
    spec = {"input_dim": 5, "kernel": asked, "sampler": {"kind": "halton"}, "s": 8}
    spec |= {} if given is None else {"input": {**given, **dataset}}
    record = put(http, name, spec).raise_for_status().json()
    assert fitted.digest_ == record["digest"]
    assert fitted.spec_.get("input") == record["spec"].get("input")
    assert fitted.rows_ is None


@pytest.mark.parametrize("sampler", ["landmarks", {"kind": "weighted", "differences": "data"}])
def test_samplers_that_learn_do_so_from_the_rows_of_fit(running: Running, http: httpx.Client, sampler: Any) -> None:
    rows = ROWS.astype(np.float32)
    fitted = FeatureMap(sampler=sampler, s=32, length_scale=12.0, url=running.url).fit(rows)
    np.testing.assert_array_equal(fitted.rows_, rows)
    assert fitted.report_ is not None
    dataset = fitted.spec_["sampler"]["dataset"]
    assert http.get(f"/v1/datasets/{dataset}").json()["shape"] == [300, 5]
    features = fitted.transform(rows)
    exact = np.exp(-(np.linalg.norm(rows[:, None] - rows, axis=2) ** 2) / (2 * 12.0**2))
    assert np.abs(features @ features.T - exact).max() < 0.25


def test_more_rows_than_a_dataset_holds_are_stood_for_by_some_of_them(running: Running) -> None:
    """The service takes bodies of 2 MB."""
    rows = np.random.default_rng(8).standard_normal((40_000, 10)) + np.arange(10)
    with pytest.warns(UserWarning, match="40000 rows are more than the service takes as a dataset: 2"):
        fitted = FeatureMap(s=8, length_scale=5.0, input="standardize", url=running.url).fit(rows)
    assert fitted.spec_["input"]["center"] == pytest.approx(np.arange(10), abs=0.05)
    assert fitted.spec_["input"]["center"] != pytest.approx(rows.mean(axis=0).tolist(), abs=1e-9)
