"""A fit finds what its map is, shares it with equal fits, and holds all that it takes to make it anew."""

import pickle
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
    for changed in ({"s": 9}, {"sampler": "sobol"}, {"length_scale": 3.5}, {"seed": 1}, {"form": "phase"}):
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
    ("options", "what"),
    [
        ({"length_scale": "median"}, "kernel"),
        ({}, "kernel"),
        ({"length_scale": "nearest_neighbor", "kernel": "laplacian"}, "kernel"),
        ({"length_scale": {"per_column": "median"}}, "kernel"),
        ({"kernel": {"kind": "matern", "nu": 1.5, "length_scale": "median"}}, "kernel"),
        ({"input": "standardize", "length_scale": 1.0}, "input"),
        (
            {"input": {"fit": "min_max", "unit_norm": True}, "kernel": {"kind": "correlation_rbf", "gamma": 1.0}},
            "input",
        ),
        ({"input": "robust"}, "both"),
    ],
)
def test_what_is_left_to_rows_is_found_once_and_is_as_the_service_finds_it(
    running: Running, http: httpx.Client, name: str, options: dict[str, Any], what: str
) -> None:
    fitted = FeatureMap(s=8, url=running.url, **options).fit(ROWS)
    put_dataset(http, f"{name}-rows", ROWS)
    kernel = {"kind": "gaussian", "length_scale": "median", "dataset": f"{name}-rows"}
    asked = options.get("kernel", "gaussian")
    kernel = {**kernel, **({"kind": asked} if isinstance(asked, str) else asked)}
    if "length_scale" in options:
        kernel["length_scale"] = options["length_scale"]
    if what == "input":
        del kernel["dataset"]
    if "gamma" in kernel:
        del kernel["length_scale"]
    given = options.get("input")
    spec = {"input_dim": 5, "kernel": kernel, "sampler": {"kind": "halton"}, "s": 8}
    if given is not None:
        spec["input"] = {"dataset": f"{name}-rows", **({"fit": given} if isinstance(given, str) else given)}
    record = put(http, name, spec).raise_for_status().json()
    assert fitted.spec_["kernel"] == {k: v for k, v in record["spec"]["kernel"].items() if k in fitted.spec_["kernel"]}
    assert fitted.spec_.get("input") == record["spec"].get("input")
    assert fitted.digest_ == record["digest"]
    assert fitted.rows_ is None


@pytest.mark.parametrize(
    "sampler", ["landmarks", {"kind": "weighted", "differences": "data"}, {"kind": "reweighted_grid", "pairs": 200}]
)
def test_samplers_that_learn_do_so_from_the_rows_of_fit(running: Running, http: httpx.Client, sampler: Any) -> None:
    grid = isinstance(sampler, dict) and "grid" in sampler["kind"]
    rows = ROWS.astype(np.float32)
    fitted = FeatureMap(sampler=sampler, s=32, length_scale=12.0, url=running.url).fit(rows)
    np.testing.assert_array_equal(fitted.rows_, rows)
    assert fitted.report_ is not None
    dataset = fitted.spec_["sampler"]["dataset"]
    assert http.get(f"/v1/datasets/{dataset}").json()["shape"] == [300, 5]
    features = fitted.transform(rows)
    exact = np.exp(-(np.linalg.norm(rows[:, None] - rows, axis=2) ** 2) / (2 * 12.0**2))
    assert np.abs(features @ features.T - exact).max() < (0.6 if grid else 0.25)


def test_rows_that_miss_entries_are_taken_where_the_map_fills_them_in(running: Running) -> None:
    rows = ROWS.copy()
    rows[::7, 2] = np.nan
    filling = {"fit": "standardize", "missing": 11.0}
    fitted = FeatureMap(s=8, length_scale=2.0, input=filling, url=running.url).fit(rows)
    filled = np.where(np.isnan(rows), 11.0, rows)
    np.testing.assert_array_equal(fitted.transform(rows), fitted.transform(filled))
    assert fitted.spec_["input"]["center"] == pytest.approx(ROWS[~np.isnan(rows).any(axis=1)].mean(axis=0))
    with pytest.raises(ValueError, match="NaN"):
        FeatureMap(s=8, length_scale=2.0, input="standardize", url=running.url).fit(rows)


def test_more_rows_than_a_dataset_holds_are_stood_for_by_some_of_them(running: Running) -> None:
    """The service takes bodies of 2 MB."""
    rows = np.random.default_rng(8).standard_normal((40_000, 10)) + np.arange(10)
    with pytest.warns(UserWarning, match="40000 rows are more than the service takes as a dataset: 2"):
        fitted = FeatureMap(s=8, length_scale=5.0, input="standardize", url=running.url).fit(rows)
    assert fitted.spec_["input"]["center"] == pytest.approx(np.arange(10), abs=0.05)
    assert fitted.spec_["input"]["center"] != pytest.approx(rows.mean(axis=0).tolist(), abs=1e-9)


def test_what_is_no_map_is_refused_as_a_value_error(running: Running) -> None:
    with pytest.raises(ValueError, match=r"/sampler|sampler"):
        FeatureMap(sampler="haltonn", length_scale=1.0, url=running.url).fit(ROWS)
    with pytest.raises(ValueError, match="bits"):
        HashMap(bits=99, url=running.url).fit(ROWS)
    with pytest.raises(ValueError, match="minimum of 11 is required"):
        FeatureMap(length_scale="nearest_neighbor", url=running.url).fit(ROWS[:10])


def test_a_seed_that_is_left_open_is_drawn_at_each_fit(running: Running) -> None:
    for asked in (
        FeatureMap(s=4, length_scale=1.0, seed=None, url=running.url),
        HashMap(s=4, seed=None, url=running.url),
    ):
        first, second = clone(asked).fit(ROWS), clone(asked).fit(ROWS)
        assert first.spec_["seed"] != second.spec_["seed"]
        assert first.digest_ != second.digest_
        np.testing.assert_array_equal(
            first.transform(ROWS).sum(), pickle.loads(pickle.dumps(first)).transform(ROWS).sum()
        )
