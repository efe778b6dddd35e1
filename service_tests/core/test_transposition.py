"""Transposed squares against NumPy's transposition."""

from typing import Any

import numpy as np
import pytest

from app.core.arrays import Floats
from app.core.compiled import compiled
from app.core.tiles import VECTOR_BYTES
from app.core.transposition import write_transposed


@compiled
def write(entries: Floats, at: int, stride: int, factors: Floats, first: int, out: Floats, i: int, j: int) -> None:
    write_transposed(entries, at, stride, factors, first, out, i, j)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("stride", [16, 32, 37])
def test_a_square_anywhere_is_written_transposed_and_nothing_else(stride: int, dtype: Any) -> None:
    side = VECTOR_BYTES // np.dtype(dtype).itemsize
    rng = np.random.default_rng(stride)
    matrix, factors = rng.normal(size=(40, stride)).astype(dtype), rng.normal(size=50).astype(dtype)
    out = np.full((30, 45), np.nan, dtype)
    write(matrix.reshape(-1), 3 * stride, stride, factors, 7, out, 5, 11)
    wanted = (matrix[3 : 3 + side, :side] * factors[7 : 7 + side, None]).T
    assert (out[5 : 5 + side, 11 : 11 + side] == wanted).all()
    assert np.isnan(out).sum() == out.size - side * side
