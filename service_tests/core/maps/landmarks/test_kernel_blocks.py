"""Blocks of exact kernels, and what is counted of them."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from app.core.errors import InvalidInput
from app.core.kernels.anova import Anova
from app.core.kernels.gmm import GeneralizedMinMax
from app.core.kernels.laplacian import Laplacian
from app.core.maps.landmarks.kernel_blocks import ExactBlocks

LAPLACIAN = Laplacian(kind="laplacian", length_scale=2.0)
GMM = GeneralizedMinMax(kind="gmm")
ROWS = np.random.default_rng(1).uniform(0.1, 1, (6, 300_000))


@pytest.mark.parametrize("kernel", [LAPLACIAN, GMM])
@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_long_landmarks_are_compared_some_at_a_time(kernel: Laplacian | GeneralizedMinMax, form: type) -> None:
    blocks, out = ExactBlocks(kernel, form(ROWS[:5] * 1e-4)), np.full((2, 8), 7.0)
    assert blocks.rows_per_block == 3
    blocks.write(ROWS[4:] * 1e-4, out)
    np.testing.assert_allclose(out[:, :5], kernel.exact(ROWS[4:] * 1e-4, ROWS[:5] * 1e-4), rtol=1e-12)
    assert (out[:, 5:] == 7).all()
    again = np.zeros(5)
    blocks.write_some(csr_array(ROWS[5:] * 1e-4), np.array([4, 1]), again)
    assert (again == np.where([0, 1, 0, 0, 1], out[1, :5], 0)).all()


def test_work_is_that_of_the_kernel_and_of_entries() -> None:
    kernel = Anova(kind="anova", length_scale=1.0, subsets=((0, 1), (2,)))
    blocks = ExactBlocks(kernel, ROWS[:3, :4].copy())
    of_kernel = kernel.exact_operations(ROWS[:2, :4], ROWS[:3, :4])
    assert blocks.operations(ROWS[:2, :4]) == of_kernel + 2 * 3 * blocks.operations_per_entry


def test_kernels_outside_the_range_of_the_dtype_are_refused() -> None:
    kernel = Anova(kind="anova", length_scale=1.0, subsets=((0, 1),), weights=(1e39,))
    blocks, rows = ExactBlocks(kernel, ROWS[:3, :4].copy()), ROWS[:2, :4].copy()
    blocks.write(rows, np.empty((2, 3)))
    with pytest.raises(InvalidInput, match="kernel anova leaves the range of float32"):
        blocks.write(rows, np.empty((2, 3), np.float32))
