"""Rows go through a map in blocks that the service takes, into whatever array is given."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bochner_client.transformers import FeatureMap
from service_tests.cases import each
from service_tests.checks import array, post_npy
from service_tests.running import Running, service

ROWS = np.random.default_rng(4).standard_normal((3000, 6)).astype(np.float32)


@pytest.fixture(scope="module")
def fitted(running: Running) -> FeatureMap:
    return FeatureMap(s=64, length_scale=2.0, url=running.url).fit(ROWS)


@pytest.fixture(scope="module")
def features(running: Running, fitted: FeatureMap) -> NDArray[Any]:
    """What the service answers to all rows in one request."""
    with running.client() as http:
        return array(post_npy(http, f"{fitted.name_}/transform", ROWS))


def test_bodies_and_blocks_are_no_longer_than_the_limits(running: Running) -> None:
    """The service takes bodies of 2 MB; these rows are three times as long."""
    wide = np.random.default_rng(5).standard_normal((900, 1000))
    narrow = FeatureMap(s=8, length_scale=40.0, url=running.url).fit(wide)
    with running.client() as http:
        assert post_npy(http, f"{narrow.name_}/transform", wide).status_code == 413
    found = narrow.transform(wide)
    assert found.shape == (900, 16)
    np.testing.assert_array_equal(found[890:], narrow.transform(wide[890:]))


@pytest.mark.nightly
def test_a_block_with_too_much_work_is_halved_until_the_service_takes_it(tmp_path: Path) -> None:
    with service(tmp_path / "data", "--max-operations", "150000") as running:
        one = FeatureMap(s=64, length_scale=2.0, url=running.url).fit(ROWS)
        with running.client() as http:
            assert post_npy(http, f"{one.name_}/transform", ROWS).status_code == 413
        found = one.transform(ROWS)
        np.testing.assert_array_equal(found[-7:], one.transform(ROWS[-7:]))


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_features_come_in_the_dtype_that_is_asked_for(running: Running, dtype: Any, features: NDArray[Any]) -> None:
    found = FeatureMap(s=64, length_scale=2.0, dtype=dtype, url=running.url).fit(ROWS).transform(ROWS)
    assert found.dtype == dtype
    if dtype == "float64":
        np.testing.assert_allclose(found, features, rtol=0, atol=1e-6)
        assert (found != found.astype(np.float32)).mean() > 0.9
    else:
        np.testing.assert_array_equal(found, features.astype(dtype))


@each(("dtype", "order"), [("float32", "C"), ("float32", "F"), ("float16", "C"), ("float64", "F")])
def test_an_array_that_is_given_is_filled_and_given_back(
    fitted: FeatureMap, features: NDArray[Any], dtype: str, order: Any
) -> None:
    out = np.full((3000, 128), 9, dtype, order=order)
    assert fitted.transform(ROWS, out=out) is out
    np.testing.assert_array_equal(out, features.astype(dtype))
