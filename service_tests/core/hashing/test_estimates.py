"""Estimates of kernels from collision rates, by simulation and against the paper's variance."""

import numpy as np
import pytest

from app.core.hashing.estimates import collision_rate, estimate_variances, kernel_estimate, rbf_estimate
from service_tests.cases import each

REPEATS = 100_000


def test_the_rate_counts_hashes_whose_codes_agree_and_pairs_agree_in_both_numbers() -> None:
    x, y = np.array([[1, 2, 3, 4], [5, 6, 7, 8]]), np.array([[1, 2, 0, 0], [5, 6, 7, 8]])
    assert collision_rate(x, y).tolist() == [0.5, 1.0]
    pairs = np.stack([np.stack([x, x], axis=2), np.stack([x, y], axis=2), np.stack([y, x], axis=2)])
    assert collision_rate(pairs[0], pairs[1]).tolist() == [0.5, 1.0]
    assert collision_rate(pairs[1], pairs[2]).tolist() == [0.5, 1.0]
    assert collision_rate(x[:0], y[:0]).shape == (0,)


@each("bits", [0, 1, 2, 8])
@each("kernel", [0.0, 0.1, 0.5, 0.93])
def test_the_estimate_is_unbiased_and_its_standard_error_is_its_deviation(kernel: float, bits: int) -> None:
    s, chance = 500, 2.0**-bits if bits else 0.0
    agree = kernel + (1 - kernel) * chance
    rates = np.random.default_rng(bits).binomial(s, agree, REPEATS) / s
    estimate = kernel_estimate(rates, s, chance)
    error = np.sqrt(agree * (1 - agree) / s) / (1 - chance)
    # Standard errors: of the mean, error/√REPEATS; of a mean square, √(m₄ − m₂²)/√REPEATS.
    assert abs(estimate.value.mean() - kernel) <= 4 * error / np.sqrt(REPEATS)
    squares = np.square(estimate.value - kernel)
    assert abs(squares.mean() - error**2) <= 4 * squares.std() / np.sqrt(REPEATS)
    # The square of the estimated standard error is too small by the factor 1 − 1/s, and no more.
    estimated = np.square(estimate.standard_error)
    assert abs(estimated.mean() - error**2 * (1 - 1 / s)) <= 4 * estimated.std() / np.sqrt(REPEATS) + 1e-18


@pytest.mark.parametrize("bits", [0, 1, 8, 16, 64])
def test_no_rate_gives_anything_but_numbers(bits: int) -> None:
    chance = 2.0**-bits if bits else 0.0
    rates = np.array([0.0, chance / 2, chance, (1 + chance) / 2, 1.0])
    kernel = kernel_estimate(rates, 64, chance)
    assert kernel.value[0] == -chance / (1 - chance)
    assert kernel.value[-1] == 1
    assert kernel.standard_error[[0, -1]].tolist() == [0, 0]
    for gamma in (1e-6, 5.0, 1e6):
        rbf = rbf_estimate(kernel, gamma)
        assert np.isfinite(rbf).all()
        assert ((rbf.value >= 0) & (rbf.value <= 1)).all()
        assert rbf.value[-1] == 1
        # Below a kernel of 0 the estimate stays at its value there, the least that the link knows.
        np.testing.assert_allclose(rbf.value[:3], np.exp(-2 * gamma), rtol=1e-14)


@pytest.mark.parametrize(("g", "gamma"), [(1 / 3, 5.0), (0.0, 1.0), (0.7, 2.0), (1.0, 3.0)])
def test_the_forms_of_theorem_4(g: float, gamma: float) -> None:
    s = 1000
    closed = estimate_variances(np.array([g]), s, gamma)
    assert closed["gcws"] == pytest.approx(g * (1 - g) / s)
    z = (1 - g) / (1 + g)
    wanted = 64 * gamma**2 * np.exp(-4 * gamma * z**2) * g * (1 - g) ** 3 / (1 + g) ** 6 / s
    assert closed["rbf_from_gcws"] == pytest.approx(wanted, rel=1e-12)
    same = rbf_estimate(kernel_estimate(np.array([g]), s, 0.0), gamma).standard_error[0]
    assert closed["rbf_from_gcws"] == pytest.approx(same**2, rel=1e-12)
    assert set(estimate_variances(np.array([g]), s, None)) == {"gcws"}
    # ρ = ½, γ = 5, as measured independently.
    if g == 1 / 3:
        assert s * wanted == pytest.approx(0.1895, abs=1e-4)
