"""Rows of every kind that people keep them in are the same rows."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from bochner_client.transformers import FeatureMap
from service_tests.cases import each
from service_tests.running import Running

NUMBERS = np.round(np.random.default_rng(6).standard_normal((500, 4)) * 8).astype(np.float32) / 8
NAMES = ["a", "b", "c", "d"]


class Tensor:
    """What torch gives to others, and no more: DLPack, a shape, and slices."""

    def __init__(self, array: NDArray[Any], device: int = 1) -> None:
        self.array, self.device = array, device
        self.shape = array.shape
        self.asked: list[Any] = []

    def __getitem__(self, wanted: slice) -> "Tensor":
        return Tensor(self.array[wanted], self.device)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0

    def __dlpack__(self, **options: Any) -> Any:
        if self.device != 1:
            assert options.pop("dl_device") == (1, 0)
            self.device = 1
        return self.array.__dlpack__()


KINDS: dict[str, Callable[[NDArray[Any]], Any]] = {
    "float64": lambda rows: rows.astype(np.float64),
    "float16": lambda rows: rows.astype(np.float16),
    "big-endian": lambda rows: rows.astype(">f4"),
    "columns first": np.asfortranarray,
    "every other": lambda rows: np.repeat(rows, 2, axis=0)[::2],
    "lists": lambda rows: rows.tolist(),
    "csr": sparse.csr_array,
    "coo": sparse.coo_array,
    "tensor": Tensor,
    "tensor elsewhere": lambda rows: Tensor(rows, device=2),
}


@pytest.fixture(scope="module")
def fitted(running: Running) -> FeatureMap:
    return FeatureMap(s=16, length_scale=2.0, url=running.url).fit(NUMBERS)


@pytest.fixture(scope="module")
def features(fitted: FeatureMap) -> NDArray[Any]:
    found: NDArray[Any] = fitted.transform(NUMBERS)
    return found


@each("kind", KINDS)
def test_rows_of_each_kind_have_the_same_features(
    running: Running, fitted: FeatureMap, features: NDArray[Any], kind: str
) -> None:
    rows = KINDS[kind](NUMBERS)
    np.testing.assert_allclose(fitted.transform(rows), features, rtol=0, atol=1e-7)
    fresh = FeatureMap(s=16, length_scale=2.0, url=running.url).fit(rows)
    assert fresh.name_ == fitted.name_


@pytest.mark.nightly
def test_frames_and_arrow_have_the_same_features(running: Running, fitted: FeatureMap, features: NDArray[Any]) -> None:
    import pandas
    import polars
    import pyarrow

    columns = {name: NUMBERS[:, i] for i, name in enumerate(NAMES)}
    for make in (pandas.DataFrame, lambda of: pandas.DataFrame(of).convert_dtypes(), polars.DataFrame, pyarrow.table):
        rows = make(columns)
        of_frames = FeatureMap(s=16, length_scale=2.0, url=running.url).fit(rows)
        assert list(of_frames.feature_names_in_) == NAMES
        np.testing.assert_array_equal(of_frames.transform(rows), features)
        with pytest.raises(ValueError, match="NaN"):
            of_frames.transform(make(columns | {"b": [None, *columns["b"][1:].tolist()]}))
    with pytest.raises(ValueError, match="same order"):
        of_frames.transform(rows.select(NAMES[::-1]))
    vectors = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(NUMBERS.ravel()), 4)
    chunks = pyarrow.chunked_array([vectors[:7], vectors[7:]])
    np.testing.assert_array_equal(fitted.transform(pyarrow.table({"vectors": chunks})), features)


@each("rows", [[1.0, 2.0], [[1.0, 2.0], [3.0]], [["a", "b"]], np.zeros((2, 2, 2)), [[1j]]])
def test_what_is_no_table_of_numbers_is_refused(fitted: FeatureMap, rows: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        fitted.transform(rows)
