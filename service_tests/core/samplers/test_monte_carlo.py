"""Independent points."""

import numpy as np
from scipy import stats

from service_tests.core.specs import sampler


def test_the_coordinates_are_uniform_and_independent() -> None:
    points = sampler(kind="monte_carlo").points(20_000, 4, np.random.default_rng(1))
    assert points.shape == (20_000, 4)
    for j in range(4):
        # Level 1e-3.
        assert stats.kstest(points[:, j], "uniform").pvalue > 1e-3
    correlations = np.corrcoef(points, rowvar=False)[np.triu_indices(4, 1)]
    # One standard error of a correlation of independent coordinates is 1/√20,000.
    assert np.abs(correlations).max() < 4 / np.sqrt(20_000)
