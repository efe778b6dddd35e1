"""A fitted transformer later: when its map is gone, is another, or its time is over, and in other processes."""

import pickle
from pathlib import Path

import httpx
import numpy as np
import pytest

from app.services.keys import AskedKey
from app.store.keys import Role
from bochner_client.refusals import MapExists
from bochner_client.transformers import FeatureMap
from bochner_client.transformers.map_transformer import MapChanged
from service_tests.checks import put
from service_tests.client.transformers.test_fitting import ROWS, fresh, names
from service_tests.keyed import made
from service_tests.running import Running, service


def test_a_map_that_is_gone_is_made_again(running: Running, http: httpx.Client) -> None:
    rows = fresh(102)
    fitted = FeatureMap(sampler="landmarks", s=16, input="standardize", url=running.url).fit(rows)
    features = fitted.transform(rows)
    for dataset in names(http, "datasets"):
        http.delete(f"/v1/datasets/{dataset}")
    http.delete(f"/v1/maps/{fitted.name_}")
    elsewhere = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(elsewhere.transform(rows), features)
    assert http.get(f"/v1/maps/{fitted.name_}").json()["digest"] == fitted.digest_


def test_another_map_of_the_name_is_not_taken_for_the_one_that_was_fitted(
    running: Running, http: httpx.Client, name: str
) -> None:
    fitted = FeatureMap(s=8, length_scale=2.0, name=name, url=running.url).fit(ROWS)
    http.delete(f"/v1/maps/{name}")
    put(http, name, {**fitted.spec_, "seed": 9}).raise_for_status()
    with pytest.raises(MapExists):
        fitted.transform(ROWS)
    http.delete(f"/v1/maps/{name}")
    fitted.digest_ = "sha256:another"
    with pytest.raises(MapChanged, match="has digest sha256:"):
        fitted.transform(ROWS)


def test_maps_and_what_they_are_made_from_go_when_their_time_is_over(running: Running, http: httpx.Client) -> None:
    datasets = names(http, "datasets")
    passing = FeatureMap(s=9, sampler="landmarks", input="standardize", ttl=77, url=running.url).fit(fresh(103))
    assert http.get(f"/v1/maps/{passing.name_}").json()["ttl"] == 77
    (dataset,) = names(http, "datasets") - datasets
    assert http.get(f"/v1/datasets/{dataset}").json()["expires_at"] is not None


@pytest.mark.nightly
def test_a_key_is_asked_with_and_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with service(tmp_path / "data", "--require-keys", "true") as running:
        key = made(running.socket, AskedKey(name="ours", role=Role.write)).key
        fitted = FeatureMap(s=8, length_scale=2.0, url=running.url, key=key).fit(ROWS)
        for shown in (repr(fitted), fitted._repr_html_()):
            assert key not in shown
        features = pickle.loads(pickle.dumps(fitted)).transform(ROWS)
        assert key not in pickle.dumps(fitted.set_params(key=None)).decode("latin1")
        with pytest.raises(Exception, match="401"):
            fitted.transform(ROWS)
        monkeypatch.setenv("BOCHNER_KEY", key)
        np.testing.assert_array_equal(fitted.transform(ROWS), features)
