"""Draws from the grid by its weights, counted equally."""

import numpy as np
from numpy.polynomial import hermite_e
from scipy import stats

from service_tests.core.specs import kernel, sampler


def draws(points_per_dim: int, s: int, d: int, seed: int = 1, length_scale: float = 1.0) -> np.ndarray:
    made = sampler(kind="subsampled_grid", points_per_dim=points_per_dim)
    drawn = made.frequency_set(kernel(kind="gaussian", length_scale=length_scale), s, d, np.random.default_rng(seed))
    assert (drawn.weights == 1 / s).all()
    assert drawn.warnings == ()
    frequencies: np.ndarray = drawn.frequencies
    return frequencies


def test_draws_follow_the_products_of_the_weights() -> None:
    n, s = 3, 60_000
    nodes, weights = hermite_e.hermegauss(n)
    weights /= weights.sum()
    cells = np.abs(draws(n, s, 3)[:, :, None] - nodes).argmin(axis=2)
    np.testing.assert_allclose(nodes[cells], draws(n, s, 3), rtol=0, atol=1e-13)
    observed = np.bincount(cells @ [9, 3, 1], minlength=27)
    expected = s * np.einsum("i,j,k->ijk", weights, weights, weights).ravel()
    # 27 cells of at least 277 expected draws; level 1e-3.
    assert expected.min() > 250
    assert stats.chisquare(observed, expected).pvalue > 1e-3
