"""The one-dimensional rule against the normal law's own moments and against numpy."""

from math import prod

import numpy as np
import pytest
from numpy.polynomial import hermite_e

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


@every_size
def test_the_rule_is_symmetric_positive_and_sums_to_one(n_points: int) -> None:
    nodes, weights = gauss_hermite(n_points)
    assert len(nodes) == len(weights) == n_points
    assert (nodes == -nodes[::-1]).all()
    assert (weights == weights[::-1]).all()
    assert (weights > 0).all()
    assert (np.diff(nodes) > 0).all()
    assert weights.sum() == pytest.approx(1, abs=1e-15)
    assert n_points % 2 == 0 or nodes[n_points // 2] == 0


@pytest.mark.parametrize("n_points", [2, 7, 11, 60])
def test_nodes_and_weights_are_numpys(n_points: int) -> None:
    nodes, weights = hermite_e.hermegauss(n_points)
    np.testing.assert_allclose(gauss_hermite(n_points)[0], nodes, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(gauss_hermite(n_points)[1], weights / np.sqrt(2 * np.pi), rtol=1e-11, atol=1e-300)


def test_nobody_can_change_the_rule_for_everybody() -> None:
    nodes, _ = gauss_hermite(5)
    with pytest.raises(ValueError, match="read-only"):
        nodes[0] = 1
