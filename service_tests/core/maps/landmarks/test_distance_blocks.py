"""Where a centre is subtracted, and what sparse landmarks hold."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from app.core.kernels.base import Matrix
from app.core.kernels.gaussian import Gaussian
from app.core.maps.landmarks import distance_blocks
from app.core.maps.landmarks.distance_blocks import DistanceBlocks
from app.core.maps.landmarks.profiles import profile, write_differences

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


def test_sparse_landmarks_count_what_they_hold() -> None:
    sparse, dense = blocks(csr_array(LANDMARKS)), blocks(LANDMARKS)
    assert sparse.nbytes >= LANDMARKS.nbytes
    assert dense.nbytes >= LANDMARKS.nbytes
    assert dense.operations(LANDMARKS) == 20 * 20 * (3 + dense.operations_per_entry)
    out = np.empty((4, 20))
    sparse.write(csr_array((4, 3)), out)
    np.testing.assert_allclose(out, KERNEL.exact(np.zeros((4, 3)), LANDMARKS), rtol=1e-14)
    none = blocks(csr_array((2, 3)))
    none.write(LANDMARKS[:4], out)
    np.testing.assert_allclose(out[:, :2], KERNEL.exact(LANDMARKS[:4], np.zeros((2, 3))), rtol=1e-14)
