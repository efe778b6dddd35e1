"""Theorems 2, 3 and 4 of the GMM paper, simulated through the maps themselves.

A variance that was itself measured on n values has the standard error √((m₄ − m₂²)/n), m₂ and m₄ being the second and
fourth central moments.
"""

import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.hashing.estimates import collision_rate, kernel_estimate, rbf_estimate
from app.core.maps import FourierMap
from service_tests.core.specs import hashing, pairs, spec

Vector = NDArray[np.float64]

RHOS = [0.99, 0.8, 0.3, -0.5]
GAMMAS = [0.5, 3.0]


def rows_at(rho: float, d: int = 6) -> Vector:
    """Two rows of cosine ρ, of no particular length or direction."""
    rng = np.random.default_rng(21)
    basis, _ = np.linalg.qr(rng.normal(size=(d, 2)))
    made: Vector = np.array([3 * basis[:, 0], 0.7 * (rho * basis[:, 0] + np.sqrt(1 - rho**2) * basis[:, 1])])
    return made


def fourier(gamma: float, s: int, seed: int, normalize: bool) -> FourierMap:
    made = spec(
        kernel={"kind": "correlation_rbf", "gamma": gamma},
        form="phase",
        normalize=normalize,
        input_dim=6,
        dtype="float64",
        s=s,
        seed=seed,
    )
    return FourierMap(made, FourierMap.build(made).arrays)


def variance(values: Vector) -> tuple[float, float]:
    """Of a sample, with its standard error."""
    squares = np.square(values - values.mean())
    n = len(values)
    return float(squares.sum() / (n - 1)), float(squares.std() / np.sqrt(n))


def of_rff(rho: float, gamma: float) -> float:
    """(18)."""
    return 0.5 + 0.5 * float(1 - np.exp(-2 * gamma * (1 - rho))) ** 2


def of_nrff(rho: float, gamma: float) -> float:
    """(20)."""
    exponent = gamma * (1 - rho)
    return of_rff(rho, gamma) - 0.25 * float(np.exp(-2 * exponent) * (3 - np.exp(-4 * exponent)))


def of_gcws(g: float, gamma: float) -> float:
    """(26), with e^(−2γ(1 − ρ)) written in g by (23)."""
    rbf = np.exp(-2 * gamma * ((1 - g) / (1 + g)) ** 2)
    return float(64 * gamma**2 * rbf**2 * g * (1 - g) ** 3 / (1 + g) ** 6)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_theorem_2_the_variance_of_random_fourier_features(gamma: float) -> None:
    s = 200_000
    feature_map = fourier(gamma, s, 3, normalize=False)
    for rho in RHOS:
        x, y = feature_map.transform(rows_at(rho))
        # Each frequency is one independent product √2cos(·)·√2cos(·).
        products = (s * x * y).astype(np.float64)
        exact = np.exp(-gamma * (1 - rho))
        measured, error = variance(products)
        assert abs(products.mean() - exact) < 4 * np.sqrt(of_rff(rho, gamma) / s)
        # One standard error is below 0.5 % of the variance.
        assert error < 0.005 * measured
        assert abs(measured - of_rff(rho, gamma)) < 4 * error


@pytest.mark.parametrize("gamma", GAMMAS)
def test_theorem_3_the_smaller_variance_of_normalised_features(gamma: float) -> None:
    s, repeats = 1000, 1500
    rows = [rows_at(rho) for rho in RHOS]
    inner: dict[bool, list[list[float]]] = {True: [], False: []}
    for seed in range(repeats):
        for normalize, measured in inner.items():
            features = fourier(gamma, s, seed, normalize).transform(np.concatenate(rows))
            measured.append([float(x @ y) for x, y in zip(features[::2], features[1::2], strict=True)])
    for k, rho in enumerate(RHOS):
        plain, normalized = (np.array(inner[normalize])[:, k] for normalize in (False, True))
        for values, formula in ((plain, of_rff(rho, gamma)), (normalized, of_nrff(rho, gamma))):
            measured_variance, error = variance(values)
            # One standard error is near √(2/1500) = 3.7 % of the variance; the terms of order 1/s² are below 1 % of it.
            assert error < 0.06 * measured_variance
            assert abs(s * measured_variance - formula) < 4 * s * error
        exact = np.exp(-gamma * (1 - rho))
        # The bias of the ratio is of order 1/s, below 1/s here.
        assert abs(normalized.mean() - exact) < 4 * np.sqrt(of_nrff(rho, gamma) / s / repeats) + 1 / s
        assert normalized.var() < plain.var() or exact < 0.05


@pytest.mark.parametrize("gamma", [0.5, 5.0, 11.0])
@pytest.mark.parametrize("rho", [0.95, 0.5, 0.0, -0.5])
def test_theorem_4_the_variance_of_the_rbf_estimate_of_binomial_collisions(rho: float, gamma: float) -> None:
    s, repeats = 100_000, 50_000
    link = np.sqrt((1 - rho) / 2)
    g = (1 - link) / (1 + link)
    rates = np.random.default_rng(17).binomial(s, g, repeats) / s
    estimates = rbf_estimate(kernel_estimate(rates, s, 0.0), gamma)
    measured, error = variance(estimates.value)
    exact = np.exp(-gamma * (1 - rho))
    # One standard error is √(2/50,000) = 0.6 % of the variance; terms of order 1/s² are a thousandth of it or less.
    assert error < 0.01 * measured
    assert abs(s * measured - of_gcws(g, gamma)) < 4 * s * error
    formula = 64 * gamma**2 * np.exp(-2 * gamma * (1 - rho)) * g * (1 - g) ** 3 / (1 + g) ** 6
    assert of_gcws(g, gamma) == pytest.approx(formula, rel=1e-12)
    assert abs(np.square(estimates.standard_error).mean() - measured) < 4 * error
    # The bias, of order 1/s: below γ/s.
    assert abs(estimates.value.mean() - exact) < 4 * np.sqrt(measured / repeats) + gamma / s


def test_theorem_4_the_variance_of_the_rbf_estimate_of_codes_of_rows_of_a_hundred_entries() -> None:
    s, repeats, rho = 500, 300, 0.5
    rng = np.random.default_rng(19)
    x = rng.normal(size=(2, 100))
    x[1] = rho * x[0] + np.sqrt(1 - rho**2) * x[1]
    sampling = hashing(threads=2, input_dim=100, s=s * repeats)
    codes = pairs(sampling, x).reshape(2, repeats, s, 2)
    rates = collision_rate(codes[0], codes[1])
    g = float(sampling.exact_pairs(x[:1], x[1:])[0])
    assert abs(rates.mean() - g) < 4 * np.sqrt(g * (1 - g) / (s * repeats))
    for gamma in (1.0, 5.0):
        estimates = rbf_estimate(kernel_estimate(rates, s, 0.0), gamma)
        measured, error = variance(estimates.value)
        # One standard error is near √(2/300) = 8 % of the variance.
        assert error < 0.12 * measured
        assert abs(s * measured - of_gcws(g, gamma)) < 4 * s * error
        assert abs(estimates.value.mean() - np.exp(-2 * gamma * ((1 - g) / (1 + g)) ** 2)) < (
            4 * np.sqrt(measured / repeats) + gamma / s
        )
        # The link to ρ holds in the limit of many coordinates; at a hundred it is a few hundredths off.
        exact = float(sampling.rbf_pairs(x[:1], x[1:], gamma)[0])
        assert abs(estimates.value.mean() - exact) < 0.1
