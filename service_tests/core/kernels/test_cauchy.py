"""What the product Cauchy kernel costs."""

import numpy as np
from scipy.sparse import csr_array

from app.core.kernels.cauchy import Cauchy


def test_a_pair_of_many_coordinates_costs_what_its_steps_take() -> None:
    """Ten microseconds each; a matrix product has some 7e9 multiplications a second."""
    kernel, pair, many = Cauchy(kind="cauchy", length_scale=1.0), csr_array((1, 1 << 22)), np.ones((1000, 100))
    assert kernel.exact_operations(pair, pair) > 2e11
    assert kernel.exact_operations(many, many) < 1.1 * 30 * 1000 * 1000 * 102
