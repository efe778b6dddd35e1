"""Rows go through a map in blocks that the service takes, into whatever array is given."""

import threading
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray

from bochner_client.transformers import FeatureMap
from bochner_client.transformers.blocks import cuts
from bochner_client.transformers.connections import connection
from bochner_client.transformers.rows import Rows
from service_tests.checks import array, post_npy
from service_tests.client.transformers.test_rows import Tensor
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
    """The service takes bodies of 2 MB; each way these rows are three times as long."""
    wide = np.random.default_rng(5).standard_normal((900, 1000))
    narrow = FeatureMap(s=8, length_scale=40.0, url=running.url).fit(wide)
    with pytest.raises(httpx.HTTPStatusError), running.client() as http:
        post_npy(http, f"{narrow.name_}/transform", wide).raise_for_status()
    found = narrow.transform(wide)
    assert found.shape == (900, 16)
    np.testing.assert_array_equal(found[890:], narrow.transform(wide[890:]))
    long = FeatureMap(s=2048, length_scale=2.0, url=running.url).fit(ROWS)
    many = long.transform(ROWS)
    assert many.nbytes > 40_000_000
    np.testing.assert_array_equal(many[2990:], long.transform(ROWS[2990:]))


@pytest.mark.nightly
def test_a_block_with_too_much_work_is_halved_until_the_service_takes_it(tmp_path: Path) -> None:
    with service(tmp_path / "data", "--max-operations", "150000") as running:
        one = FeatureMap(s=64, length_scale=2.0, url=running.url).fit(ROWS)
        with running.client() as http:
            assert post_npy(http, f"{one.name_}/transform", ROWS).status_code == 413
        found = one.transform(ROWS)
        np.testing.assert_array_equal(found[-7:], one.transform(ROWS[-7:]))
        hopeless = FeatureMap(s=30_000, length_scale=2.0, url=running.url).fit(ROWS)
        with pytest.raises(Exception, match="max_operations"):
            hopeless.transform(ROWS[:3])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_features_come_in_the_dtype_that_is_asked_for(running: Running, dtype: Any, features: NDArray[Any]) -> None:
    found = FeatureMap(s=64, length_scale=2.0, dtype=dtype, url=running.url).fit(ROWS).transform(ROWS)
    assert found.dtype == dtype
    if dtype == "float64":
        np.testing.assert_allclose(found, features, rtol=0, atol=1e-6)
        assert (found != found.astype(np.float32)).mean() > 0.9
    else:
        np.testing.assert_array_equal(found, features.astype(dtype))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_an_array_that_is_given_is_filled_and_given_back(
    fitted: FeatureMap, features: NDArray[Any], dtype: str, order: Any
) -> None:
    out = np.full((3000, 128), 9, dtype, order=order)
    assert fitted.transform(ROWS, out=out) is out
    np.testing.assert_array_equal(out, features.astype(dtype))


class InTurns:
    """Rows on a device of their own, a block of which waits until so many are read at a time."""

    def __init__(self, rows: NDArray[Any], others: int, seconds: float = 30) -> None:
        self.rows, self.shape = rows, rows.shape
        self.barrier = threading.Barrier(others, timeout=seconds)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def __dlpack__(self) -> None: ...

    def __getitem__(self, wanted: slice) -> Tensor:
        if wanted.stop - wanted.start > 1:
            self.barrier.wait()
        return Tensor(self.rows[wanted], device=2)


@pytest.mark.parametrize("at_once", [2, 5])
def test_as_many_blocks_as_are_asked_for_are_under_way_at_a_time(running: Running, at_once: int) -> None:
    """Each block waits until so many are read, which would never be with one fewer."""
    long = FeatureMap(s=2048, length_scale=2.0, at_once=at_once, url=running.url).fit(ROWS)
    blocks = [*cuts(Rows(ROWS), 4096 * 4, connection(running.url, None).limits)]
    whole = ROWS[: blocks[at_once - 1][1]]
    found = long.transform(InTurns(whole, at_once))
    np.testing.assert_array_equal(found, long.transform(whole))
    long.set_params(at_once=at_once - 1)
    with pytest.raises(threading.BrokenBarrierError):
        long.transform(InTurns(whole, at_once, seconds=0.5))


@pytest.mark.parametrize(
    ("out", "told"),
    [
        (np.empty((3000, 127), np.float32), r"float32 \(3000, 127\)"),
        (np.empty((3000, 128), np.int32), "int32"),
        ([[0.0] * 128] * 3000, "list"),
    ],
)
def test_an_array_that_does_not_fit_is_refused(fitted: FeatureMap, out: Any, told: str) -> None:
    with pytest.raises(ValueError, match=rf"out is {told}.*float32 \(3000, 128\) is wanted"):
        fitted.transform(ROWS, out=out)
