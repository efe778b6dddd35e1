"""Where a centre is subtracted, and what sparse landmarks hold."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from app.core.arrays import Matrix
from app.core.kernels.base import AnyKernel
from app.core.kernels.gaussian import Gaussian
from app.core.maps.landmarks import distance_blocks
from app.core.maps.landmarks.distance_blocks import DistanceBlocks
from app.core.maps.landmarks.kernel_blocks import ExactBlocks
from app.core.maps.landmarks.profiles import profile, write_differences
from service_tests.cases import each
from service_tests.core.specs import kernel

KERNEL = Gaussian(kind="gaussian", length_scale=(1.0, 2.0, 0.5))
LANDMARKS = np.random.default_rng(1).normal(size=(20, 3))


def blocks(landmarks: Matrix | csr_array) -> DistanceBlocks:
    shape = profile(KERNEL)
    assert shape is not None
    return DistanceBlocks(KERNEL, shape, landmarks, landmarks.dtype)


def exact_rows(monkeypatch: pytest.MonkeyPatch, landmarks: Matrix, rows: Matrix) -> int:
    """How many rows have kernels that are computed from differences."""
    counted: list[int] = []

    def counting(rows: Matrix, *others: Any) -> None:
        counted.append(len(rows))
        write_differences(rows, *others)

    found = blocks(landmarks)
    monkeypatch.setattr(distance_blocks, "write_differences", counting)
    out = np.empty((len(rows), len(landmarks)))
    found.write(rows, out)
    monkeypatch.undo()
    np.testing.assert_allclose(out, KERNEL.exact(rows, landmarks), rtol=0, atol=1e-9)
    return sum(counted)


def test_differences_are_taken_where_products_say_too_little_and_only_there(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(2).normal(size=(30, 3))
    assert exact_rows(monkeypatch, LANDMARKS, rows) == 0
    assert exact_rows(monkeypatch, LANDMARKS, LANDMARKS[:4]) == 4
    assert exact_rows(monkeypatch, LANDMARKS, rows + 1e5) == 0  # all of whose kernels are 0
    assert exact_rows(monkeypatch, LANDMARKS + 1e5, rows + 1e5) == 0  # a centre is subtracted
    two = np.concatenate([LANDMARKS + 1e5, LANDMARKS - 1e5])  # none helps
    assert exact_rows(monkeypatch, two, rows + 1e5) == 30


@each("dtype", ["float32", "float64"])
@each(
    "its_kernel",
    [
        kernel(kind="rational_quadratic", alpha=0.7, length_scale=0.5),
        kernel(kind="matern", nu=1.5, length_scale=np.linspace(0.1, 0.4, 5000).tolist()),
        kernel(kind="gaussian", length_scale=0.1),
    ],
)
def test_long_sparse_rows_are_never_made_dense(
    monkeypatch: pytest.MonkeyPatch, its_kernel: AnyKernel, dtype: str
) -> None:
    """Rows long beside the length scale, of which norms and products say too little, and rows that are landmarks."""
    rng, shape = np.random.default_rng(3), profile(its_kernel)
    assert shape is not None
    entries = 3 * rng.random((40, 5000)) * (rng.random((40, 5000)) < 0.004)
    rows, close = csr_array(entries.astype(dtype)), 2e-6 if dtype == "float32" else 1e-11
    rows.data[5] = 0  # stored, as clients may
    wide = rows.toarray()

    def refuse(*_: Any) -> None:
        raise AssertionError("a row was compared in its dense form")

    monkeypatch.setattr(ExactBlocks, "write_some", refuse)
    found = DistanceBlocks(its_kernel, shape, rows[:30], np.dtype(dtype))
    out, of_dense = np.empty((40, 30), dtype), np.empty((40, 30), dtype)
    found.write(rows, out)
    found.write(wide, of_dense)
    np.testing.assert_allclose(out, its_kernel.exact(wide, wide[:30]), rtol=0, atol=close)
    assert (np.diag(out) == 1).all()
    assert (out == of_dense).all()
