"""The one-dimensional rule against the normal law's own moments."""

from math import prod

import numpy as np
import pytest

from app.core.samplers.normal_law import gauss_hermite

every_size = pytest.mark.parametrize("n_points", [1, 2, 3, 5, 8, 11, 25, 60, 200])


@every_size
def test_moments_are_exact_to_degree_two_n_minus_one_and_not_beyond(n_points: int) -> None:
    nodes, weights = gauss_hermite(n_points)
    for degree in range(min(2 * n_points, 60)):
        exact = 0 if degree % 2 else prod(range(1, degree, 2))
        # Odd sums cancel exactly, node against node.
        assert abs(float(np.sum(weights * nodes**degree)) - exact) <= 1e-11 * exact + 1e-15 * prod(range(1, degree, 2))
    if n_points <= 8:
        assert float(weights @ nodes ** (2 * n_points)) < 0.99 * prod(range(1, 2 * n_points, 2))
