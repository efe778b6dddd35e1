"""The Laplacian kernel is the L1 one."""

import numpy as np
from scipy.spatial.distance import cityblock

from service_tests.core.specs import product_kernel


def test_the_distance_is_the_city_block_and_not_the_euclidean_one() -> None:
    x, y = np.random.default_rng(1).normal(size=(2, 1, 5))
    value = product_kernel("laplacian", 2.0).gram(x, y).item()
    assert np.isclose(value, np.exp(-cityblock(x[0], y[0]) / 2), rtol=1e-13)
    assert not np.isclose(value, np.exp(-np.linalg.norm(x - y) / 2), rtol=0.1)


def test_its_frequencies_have_no_variance_to_match() -> None:
    assert product_kernel("laplacian", 2.0).frequency_deviations(3) is None
