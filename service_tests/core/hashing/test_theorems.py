"""Theorems 2, 3 and 4 of the GMM paper by simulation, through this project's own maps."""

import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.hashing.estimates import kernel_estimate, rbf_estimate
from service_tests.core.specs import hashing, pairs

Numbers = NDArray[np.float64]

D, GAMMA = 5, 3.0


def within_four_errors(estimates: Numbers, variance: float) -> bool:
    """Whether the sample variance is `variance`, up to four of its own standard errors √((μ₄ − σ⁴)/n)."""
    squares = np.square(estimates - estimates.mean())
    return bool(abs(squares.mean() - variance) < 4 * squares.std() / np.sqrt(len(squares)))


def theorem_4(rho: float, gamma: float) -> tuple[float, float]:
    """g and s times the variance (26), as the paper writes them."""
    root = np.sqrt((1 - rho) / 2)
    g = (1 - root) / (1 + root)
    return float(g), float(np.exp(-2 * gamma * (1 - rho)) * g * (1 - g) ** 3 / (1 + g) ** 6 * 64 * gamma**2)


@pytest.mark.parametrize(("rho", "gamma"), [(0.0, 1.0), (0.5, 5.0), (0.8, 2.0), (0.9, 10.0)])
def test_binomial_collisions_give_the_variance_of_theorem_4(rho: float, gamma: float) -> None:
    s, n = 4000, 20_000
    g, variance = theorem_4(rho, gamma)
    rates = np.random.default_rng(4).binomial(s, g, n) / s
    estimate = rbf_estimate(kernel_estimate(rates, s, 0.0), gamma)
    exact = np.exp(-gamma * (1 - rho))
    # The bias is of order 1/s, the standard error of the mean √(variance/(s n)).
    assert abs(estimate.value.mean() - exact) < 4 * np.sqrt(variance / s / n) + 10 / s
    assert within_four_errors(np.sqrt(s) * estimate.value, variance)
    np.testing.assert_allclose(np.square(estimate.standard_error).mean() * s, variance, rtol=0.03)


def test_codes_of_rows_of_many_coordinates_have_the_variance_of_theorem_4() -> None:
    d, maps, s, gamma = 100, 1000, 400, 5.0
    rng = np.random.default_rng(6)
    x = rng.standard_normal(d)
    rows = np.array([x, 0.9 * x + np.sqrt(1 - 0.81) * rng.standard_normal(d)])
    sampling = hashing(input_dim=d, s=maps * s)
    codes = pairs(sampling, rows)
    rates = (codes[0] == codes[1]).all(axis=1).reshape(maps, s).mean(axis=1)
    g = float(sampling.exact_pairs(rows[:1], rows[1:])[0])
    z = (1 - g) / (1 + g)
    _, variance = theorem_4(1 - 2 * z**2, gamma)
    estimate = rbf_estimate(kernel_estimate(rates, s, 0.0), gamma)
    assert within_four_errors(np.sqrt(s) * estimate.value, variance)
    # The link between g and ρ, on which the estimate rests, is rough at d = 100.
    rho = float(rows[0] @ rows[1] / np.linalg.norm(rows[0]) / np.linalg.norm(rows[1]))
    assert abs(np.exp(-2 * gamma * z**2) - np.exp(-gamma * (1 - rho))) < 0.1
