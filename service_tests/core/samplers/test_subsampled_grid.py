"""Draws from the grid by its weights, counted equally."""

import numpy as np
import pytest
from numpy.polynomial import hermite_e
from scipy import stats

from service_tests.core.specs import kernel, refusal, sampler


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


@pytest.mark.parametrize("points_per_dim", [3, 11, 200])
def test_low_moments_are_those_of_the_law(points_per_dim: int) -> None:
    s, scale = 50_000, 2.0
    frequencies = draws(points_per_dim, s, 4, length_scale=scale) * scale
    # Standard errors: of a mean 1/√s, of a product of two 1/√s, of a square √2/√s, of a fourth power √96/√s at most.
    assert np.abs(frequencies.mean(axis=0)).max() < 4 / np.sqrt(s)
    second = frequencies.T @ frequencies / s
    assert np.abs(second - np.eye(4)).max() < 4 * np.sqrt(2 / s)
    assert np.abs((frequencies**4).mean(axis=0) - 3).max() < 4 * np.sqrt(96 / s)


def test_the_kernel_is_unbiased_where_the_rule_is_exact() -> None:
    seeds, delta = 2000, np.array([0.5, -0.4, 0.3])
    sums = [np.cos(draws(11, 16, 3, seed=seed) @ delta).mean() for seed in range(seeds)]
    assert abs(np.mean(sums) - np.exp(-delta @ delta / 2)) < 4 * np.std(sums) / np.sqrt(seeds)


def test_weighting_the_draws_again_would_be_another_kernel() -> None:
    frequencies, nodes_weights = draws(5, 5000, 3), hermite_e.hermegauss(5)
    cells = np.abs(frequencies[:, :, None] - nodes_weights[0]).argmin(axis=2)
    again = nodes_weights[1][cells].prod(axis=1)
    exact, cosines = np.exp(-0.5), np.cos(frequencies[:, 0])
    assert abs(cosines.mean() - exact) < 4 * (1 - exact**2) / np.sqrt(2 * 5000)
    assert abs(cosines @ again / again.sum() - exact) > 0.1


def test_s_must_be_given() -> None:
    error = refusal(s=None, sampler={"kind": "subsampled_grid", "points_per_dim": 3})
    assert error.pointer == "/s"
    assert "s is missing" in error.detail
