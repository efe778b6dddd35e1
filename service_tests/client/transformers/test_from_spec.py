"""From a recommendation to a pipeline."""

from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from bochner_client import Client, DatasetRows, Recommendation
from bochner_client.transformers import FeatureMap, HashMap
from service_tests.running import Running

ROWS = np.abs(np.random.default_rng(5).normal(size=(60, 4)))
QUICK: dict[str, Any] = {"budget": 16, "seeds": 2}


@pytest.mark.parametrize("kernel", [{"kind": "gaussian", "length_scale": "median"}, {"kind": "gmm", "p": 2.0}])
def test_the_recommended_map_goes_into_a_pipeline(
    client: Client, running: Running, name: str, kernel: dict[str, Any]
) -> None:
    """With the same spec, as it learns from nothing."""
    found = client.recommend(kernel, ROWS, input={"center": [0.5] * 4}, **QUICK)
    transformer = found.transformer(name=name)
    assert transformer.url == running.url
    assert type(transformer) is (HashMap if kernel["kind"] == "gmm" else FeatureMap)
    transformer.fit(ROWS)
    assert client.get_map(name).digest == client.put_map(f"{name}-put", found["best"]).digest
    assert transformer.transform(ROWS).shape[0] == len(ROWS)


@pytest.mark.parametrize("sampler", ["landmarks", "weighted"])
def test_what_is_learned_is_learned_from_the_rows_of_fit(
    client: Client, running: Running, name: str, sampler: str
) -> None:
    client.put_dataset(name, ROWS[:40])
    learning = {"kind": sampler, "dataset": name} | ({"differences": "data"} if sampler == "weighted" else {})
    asked = {"fit": "standardize", "dataset": name}
    kernel = {"kind": "gaussian", "length_scale": 2.0}
    found = client.recommend(kernel, DatasetRows(name), samplers=[learning], input=asked, **QUICK)
    fitted = found.transformer(url=running.url, dtype="float64").fit(ROWS)
    assert fitted.rows_ is not None
    assert len(fitted.rows_) == len(ROWS)
    assert fitted.spec_["input"]["center"] == found["best"]["input"]["center"], (
        "the preprocessing is a part of the best"
    )
    assert fitted.dtype == "float64"


@pytest.mark.gate  # which has pandas
def test_a_recommendation_is_a_table(client: Client) -> None:
    found = client.recommend({"kind": "gaussian", "length_scale": 1.5}, ROWS, **QUICK)
    rows = found.rows()
    assert [row["error_mean"] for row in rows] == [one["error_mean"] for one in found["ranked"]]
    assert list(found.to_frame().columns) == list(rows[0])
    assert found._repr_html_().count("<tr>") == len(rows) + 1
    heads, first, *_ = repr(found).splitlines()
    assert heads.split()[:3] == ["kernel", "length_scale", "sampler"]
    assert first.split()[:2] == ["gaussian", "1.5"]
    assert f"… and {len(rows) - 10} more" in repr(found)
    assert repr(found).endswith(found["notes"][-1])
    with pytest.raises(ValueError, match="no map was recommended: too few rows"):
        Recommendation(best=None, notes=["too few rows"]).transformer()


def test_rows_with_gaps_name_what_takes_them(running: Running) -> None:
    gaps = np.where(ROWS > 2, np.nan, ROWS)
    with pytest.raises(ValueError, match=r"contains NaN.*input={'missing': 0}"):
        FeatureMap(s=4, length_scale=1.0, url=running.url).fit(gaps)
    FeatureMap(s=4, length_scale=1.0, url=running.url, input={"missing": 0}).fit(gaps)


@pytest.mark.parametrize("of", ["classes", "numbers", "whole numbers"])
def test_trees_are_a_baseline_where_scikit_learn_is_there(client: Client, of: str) -> None:
    """Of labels that no linear model tells."""
    rows = np.random.default_rng(8).normal(size=(300, 3))
    told = np.sign(rows[:, 0] * rows[:, 1]) + 2
    labels = told.astype(int) if of == "classes" else (told + 0.01 * rows[:, 2])
    if of == "whole numbers":
        labels = (10_000 * labels).astype(int)
    kernel = {"kind": "gaussian", "length_scale": 1.0}
    came = rows.tolist() if of == "classes" else rows
    with threadpool_limits(1):  # several threads on busy cores wait for each other
        found = client.recommend(kernel, came, y=labels, mode="quick", samplers=["sobol"], budget=16)
    linear, trees = found["baselines"]
    assert (linear["name"], trees["name"]) == ("linear", "hist_gradient_boosting")
    assert linear["score"] < 0.7 < trees["score"] <= 1
    assert "hist_gradient_boosting" in found._repr_html_()


@pytest.mark.parametrize("kind", ["sobol", "landmarks", "gcws"])
def test_a_map_that_exists_is_used_as_it_is_and_lives_on(
    client: Client, running: Running, name: str, kind: str
) -> None:
    client.put_dataset(name, ROWS)
    kernel = {"kind": "gmm"} if kind == "gcws" else {"kind": "gaussian", "length_scale": 1.0}
    sampler = {"kind": kind} | ({"dataset": name} if kind == "landmarks" else {})
    asked = {"fit": "standardize", "dataset": name}
    spec = {"input_dim": 4, "s": 8, "kernel": kernel, "sampler": sampler, "input": asked}
    made = client.put_map(name, spec)
    kind_of = HashMap if kind == "gcws" else FeatureMap
    used = kind_of.from_map(name, url=running.url).fit(ROWS[:20])
    assert (used.name_, used.digest_) == (name, made.digest)
    assert client.get_map(name).ttl is None
    if kind != "gcws":
        np.testing.assert_array_equal(used.transform(ROWS), client.transform(name, ROWS))
    client.put_map(f"{name}-short", spec, ttl=60)
    kind_of.from_map(f"{name}-short", url=running.url).fit(ROWS)
    assert client.get_map(f"{name}-short").ttl == 3600
