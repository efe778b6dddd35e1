"""Rows that travel to a job come there as they were."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from app.jobs.attached_rows import from_bytes, to_bytes

DENSE: Any = np.random.default_rng(1).normal(size=(7, 3))


@pytest.mark.parametrize("rows", [DENSE, DENSE.astype(np.float32), DENSE[:0]], ids=["double", "single", "none"])
def test_dense_rows_come_back(rows: Any) -> None:
    found: Any = from_bytes(to_bytes(rows))
    assert (found.dtype, found.flags.c_contiguous) == (rows.dtype, True)
    np.testing.assert_array_equal(found, rows)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sparse_rows_come_back_sparse_however_wide(dtype: Any) -> None:
    parts: Any = (np.array([0.5, -1], dtype), [0, (1 << 31) - 1], [0, 1, 1, 2])
    rows: Any = sparse.csr_array(parts, shape=(3, 1 << 31))
    found: Any = from_bytes(to_bytes(rows))
    assert isinstance(found, sparse.csr_array)
    assert (found.dtype, found.shape) == (dtype, (3, 1 << 31))
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(found, part), getattr(rows, part))
