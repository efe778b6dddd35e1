from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import redis
from scipy import sparse

from app.core.arrays import dense, vectors
from app.core.datasets import Reference
from app.core.errors import InvalidInput, TooLarge
from app.core.input import Input
from app.services.cache import Cache
from app.services.datasets import Datasets
from app.services.errors import DatasetExists
from app.store.datasets import DatasetStore
from service_tests.checks import keys
from service_tests.services.conftest import LIMITS, SPEC

FLOAT64 = np.dtype(np.float64)
ROWS: Any = np.random.default_rng(1).normal(size=(40, 3))
SPARSE: Any = sparse.csr_array(np.where([True, False, False] | (ROWS > 0.5), ROWS, 0))


@pytest.fixture
def kept(client: redis.Redis) -> Callable[..., Datasets]:
    """Makes services of one store, each with a cache of its own unless one is given."""
    client.flushall()

    def make(cache: Cache | None = None, unfit: str | None = None) -> Datasets:
        return Datasets(DatasetStore(client), LIMITS, cache or Cache(1 << 20), lambda: unfit)

    return make


def rows_of(datasets: Datasets, name: str, rows: int | None = None, seed: int = 0, pointer: str = "") -> Any:
    return datasets.read(Reference(name, rows, seed, pointer))[0]


def test_rows_come_back_as_they_were(kept: Callable[..., Datasets]) -> None:
    datasets = kept()
    datasets.create("dense", ROWS, None)
    datasets.create("single", ROWS.astype(np.float32), None)
    datasets.create("sparse", SPARSE, None)
    np.testing.assert_array_equal(rows_of(datasets, "dense"), ROWS)
    single = rows_of(datasets, "single")
    assert single.dtype == np.float32
    np.testing.assert_array_equal(single, ROWS.astype(np.float32))
    found = rows_of(datasets, "sparse")
    assert isinstance(found, sparse.csr_array)
    np.testing.assert_array_equal(found.toarray(), SPARSE.toarray())


@pytest.mark.parametrize("posted", [ROWS, SPARSE], ids=["dense", "sparse"])
def test_a_sample_is_of_the_rows_in_their_order(kept: Callable[..., Datasets], posted: Any) -> None:
    datasets = kept()
    datasets.create("d", posted, None)
    whole: Any = dense(posted)
    given = rows_of(datasets, "d", 7, 5)
    sample = dense(given)
    numbers = [int(np.flatnonzero((whole == row).all(axis=1))[0]) for row in sample]
    assert sample.shape == (7, 3)
    assert numbers == sorted(numbers)
    again = rows_of(kept(), "d", 7, 5)
    assert (again != given).sum() == 0
    other = rows_of(datasets, "d", 40, 5)
    assert (other != posted).sum() == 0
    with pytest.raises(InvalidInput, match="expected 41 rows, got 40 in dataset 'd'") as refused:
        rows_of(datasets, "d", 41, pointer="/x")
    assert refused.value.pointer == "/x/rows"


def test_the_same_rows_are_no_conflict_and_others_are(kept: Callable[..., Datasets]) -> None:
    datasets = kept()
    first, created = datasets.create("d", ROWS, 100)
    assert created
    assert datasets.create("d", np.asfortranarray(ROWS), 100)[1] is False
    again, _ = datasets.create("d", ROWS.astype(">f8"), None)
    assert again == first.model_copy(update={"expires_at": None})
    for other in (ROWS.astype(np.float32), ROWS[:-1], ROWS[:, :2], sparse.csr_array(ROWS), ROWS.reshape(20, 6)):
        with pytest.raises(DatasetExists, match=first.digest):
            datasets.create("d", other, 100)
    assert datasets.get("d") == again


def test_a_dataset_too_large_is_refused_and_leaves_nothing(client: redis.Redis, kept: Callable[..., Datasets]) -> None:
    with pytest.raises(TooLarge) as refused:
        kept().create("d", np.ones((12_500, 1)), None)
    assert (refused.value.limit, refused.value.allowed, refused.value.value) == ("max_dataset_bytes", 100_000, 100_016)
    with pytest.raises(TooLarge, match="the rows would take 120000 bytes; max_dataset_bytes is 100000: send fewer"):
        kept().create("d", np.ones((30_000, 1), np.int8), None)
    with pytest.raises(TooLarge, match="the rows would take 120000"):
        kept().read_rows(
            {"x": np.ones((15_000, 1), np.int8)}, lambda rows, at, check: vectors(rows, 1, FLOAT64, at, check=check)
        )
    assert keys(client) == set()


def test_rows_before_an_input_count_together_and_those_of_one_dataset_fit(kept: Callable[..., Datasets]) -> None:
    datasets = kept()
    datasets.create("d", np.ones((24_000, 1), np.float32), None)
    its_input = Input(center=1.0, scale=2.0)
    gate = SPEC.model_copy(update={"input_dim": 1, "input": its_input}).gate
    whole = Reference("d", None, 0, "/x")
    assert not dense(datasets.read_rows({"x": whole}, gate).rows["x"]).any()
    half = whole._replace(rows=12_000)
    assert datasets.read_rows({"x": half, "y": half}, gate).rows["y"].shape == (12_000, 1)
    for x, y in ((whole, half), (half, whole)):
        with pytest.raises(TooLarge, match="the rows would take 144000 bytes"):
            datasets.read_rows({"x": x, "y": y}, gate)
    wide = SPEC.model_copy(update={"input_dim": 7000, "input": its_input}).gate
    with pytest.raises(TooLarge, match="the rows would take 112000 bytes"):
        datasets.read_rows({"x": np.ones((1, 7000), np.float32)}, wide)
