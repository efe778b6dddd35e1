"""The root of a kernel block."""

from typing import Any

import numpy as np
import pytest

from app.core.errors import InvalidInput
from app.core.maps.landmarks.landmark_map import root_of

every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@every_dtype
def test_eigenvalues_up_to_the_cut_are_left_out(dtype: Any) -> None:
    rotation = np.linalg.qr(np.random.default_rng(2).normal(size=(6, 6)))[0]
    for least, rank in ((3e-6, 6), (3e-7, 5 if dtype is np.float32 else 6), (3e-13, 5)):
        gram = (rotation * np.array([1, 2, 3, 4, 1, 4 * least])) @ rotation.T
        assert root_of(gram, np.dtype(dtype), "").shape == (6, rank)


@pytest.mark.parametrize("gram", [np.zeros((3, 3)), -np.eye(2)])
def test_a_block_without_anything_above_0_is_refused(gram: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        root_of(gram, np.dtype(np.float64), "/sampler")
    assert refused.value.pointer == "/sampler"


@pytest.mark.parametrize("size", [1e-31, 1e38])
def test_a_block_too_large_or_small_for_a_dtype_is_refused_with_what_helps(size: float) -> None:
    with pytest.raises(InvalidInput, match=r"float32 takes 1.2e-30 to 8.5e\+37; dtype float64"):
        root_of(size * np.eye(3), np.dtype(np.float32), "/sampler")
    assert root_of(size * np.eye(3), np.dtype(np.float64), "/sampler").shape == (3, 3)
