"""Rows of every kind that people keep them in are the same rows."""

from collections.abc import Callable
from pathlib import Path
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


def as_memory_map(rows: NDArray[Any], folder: Path) -> NDArray[Any]:
    np.save(folder / "rows.npy", rows)
    mapped: NDArray[Any] = np.load(folder / "rows.npy", mmap_mode="r")
    return mapped


KINDS = {
    "float32": lambda rows, _: rows,
    "float64": lambda rows, _: rows.astype(np.float64),
    "float16": lambda rows, _: rows.astype(np.float16),
    "big-endian": lambda rows, _: rows.astype(">f4"),
    "columns first": lambda rows, _: np.asfortranarray(rows),
    "every other": lambda rows, _: np.repeat(rows, 2, axis=0)[::2],
    "memory map": as_memory_map,
    "lists": lambda rows, _: rows.tolist(),
    "csr": lambda rows, _: sparse.csr_array(rows),
    "csc": lambda rows, _: sparse.csc_matrix(rows),
    "coo": lambda rows, _: sparse.coo_array(rows),
    "tensor": lambda rows, _: Tensor(rows),
    "tensor elsewhere": lambda rows, _: Tensor(rows, device=2),
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
    running: Running, fitted: FeatureMap, features: NDArray[Any], kind: str, tmp_path: Path
) -> None:
    rows = KINDS[kind](NUMBERS, tmp_path)  # type: ignore[no-untyped-call]
    found = fitted.transform(rows)
    np.testing.assert_allclose(found, features, rtol=0, atol=1e-7)
    fresh = FeatureMap(s=16, length_scale=2.0, url=running.url).fit(rows)
    assert fresh.name_ == fitted.name_


def frames() -> dict[str, Any]:
    import pandas
    import polars
    import pyarrow

    columns = {name: NUMBERS[:, i] for i, name in enumerate(NAMES)}
    vectors = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(NUMBERS.ravel()), 4)
    chunks = pyarrow.chunked_array([vectors[:7], vectors[7:]])
    return {
        "pandas": pandas.DataFrame(columns),
        "pandas with nullable columns": pandas.DataFrame(columns).convert_dtypes(),
        "polars": polars.DataFrame(columns),
        "arrow table": pyarrow.table(columns),
        "arrow record batch": pyarrow.record_batch(columns),
        "arrow vectors": pyarrow.table({"vectors": chunks}),
        "arrow vectors, a record batch": pyarrow.record_batch({"vectors": vectors}),
        "polars vectors": polars.DataFrame({"vectors": NUMBERS}, schema={"vectors": polars.Array(polars.Float32, 4)}),
    }


@pytest.mark.nightly
def test_frames_and_arrow_have_the_same_features(running: Running, fitted: FeatureMap, features: NDArray[Any]) -> None:
    for kind, rows in frames().items():
        if "vectors" not in kind:
            of_frames = FeatureMap(s=16, length_scale=2.0, url=running.url).fit(rows)
            named = "batch" not in kind  # scikit-learn knows no names of record batches
            assert list(getattr(of_frames, "feature_names_in_", NAMES if not named else [])) == NAMES, kind
            np.testing.assert_array_equal(of_frames.transform(rows), features, kind)
        else:
            np.testing.assert_array_equal(fitted.transform(rows), features, kind)


@pytest.mark.nightly
@pytest.mark.parametrize("library", ["pandas", "pandas, nullable", "polars", "pyarrow"])
def test_what_is_missing_in_a_frame_is_missing_in_its_rows(running: Running, library: str) -> None:
    import pandas
    import polars
    import pyarrow

    columns = {name: NUMBERS[:, i].tolist() for i, name in enumerate(NAMES)}
    columns["b"][3] = None
    kinds: dict[str, Callable[[], Any]] = {
        "pandas": lambda: pandas.DataFrame(columns),
        "pandas, nullable": lambda: pandas.DataFrame(columns).convert_dtypes(),
        "polars": lambda: polars.DataFrame(columns),
        "pyarrow": lambda: pyarrow.table(columns),
    }
    frame = kinds[library]()
    filling = FeatureMap(s=16, length_scale=2.0, input={"missing": 0.5}, url=running.url).fit(frame)
    filled = NUMBERS.copy()
    filled[3, 1] = 0.5
    fresh = FeatureMap(s=16, length_scale=2.0, input={"missing": 0.5}, url=running.url).fit(filled)
    np.testing.assert_array_equal(filling.transform(frame), fresh.transform(filled))
    with pytest.raises(ValueError, match="NaN"):
        FeatureMap(s=16, length_scale=2.0, url=running.url).fit(frame)


@each("rows", [[1.0, 2.0], [[1.0, 2.0], [3.0]], [["a", "b"]], 3.0, np.zeros((2, 2, 2)), [[1j]]])
def test_what_is_no_table_of_numbers_is_refused(fitted: FeatureMap, rows: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        fitted.transform(rows)
