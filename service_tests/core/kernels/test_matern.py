"""The Matérn kernel against the Bessel function, and what one shared chi-square makes of it."""

from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from app.core.errors import InvalidInput
from app.core.kernels.matern import Matern
from service_tests.cases import each
from service_tests.core.specs import kernel

NUS = [0.3, 0.5, 1.0, 1.5, 2.5, 30.0, 99.0, 100.0, 150.0]
DISTANCES = [0.0, 1e-300, 1e-12, 1e-6, 1e-3, 0.05, 0.3, 1.0, 2.0, 5.0, 20.0, 200.0]

every_nu = pytest.mark.parametrize("nu", NUS)


def matern(nu: float, length_scale: Any = 1.0) -> Matern:
    made = kernel(kind="matern", nu=nu, length_scale=length_scale)
    assert isinstance(made, Matern)
    return made


def at_distance(nu: float, distances: Any) -> NDArray[np.float64]:
    return matern(nu).gram(np.array(distances, ndmin=2).T, np.zeros((1, 1)))[:, 0]


def formula(nu: float, r: float) -> float:
    """2^(1−ν)/Γ(ν) z^ν K_ν(z) in sixty digits."""
    if r == 0:
        return 1.0
    with mpmath.workdps(60):
        order, z = mpmath.mpf(nu), mpmath.sqrt(2 * mpmath.mpf(nu)) * mpmath.mpf(r)
        return float(2 ** (1 - order) / mpmath.gamma(order) * z**order * mpmath.besselk(order, z))


def mean_cosine(kernel_: Matern, delta: Any) -> tuple[float, float]:
    """The mean of 10⁶ cosines and its standard error."""
    rng = np.random.default_rng(1)
    cosines = np.cos(kernel_.frequencies(rng.random((1_000_000, len(delta) + 1))) @ np.array(delta))
    return float(cosines.mean()), float(cosines.std() / 1000)


@every_nu
def test_the_gram_block_is_the_bessel_formula_from_no_distance_to_a_large_one(nu: float) -> None:
    expected = [formula(nu, r) for r in DISTANCES]
    # Rounding is raised to the power ν, and the expansion for large ν is good to ν^−4 = 1e-8 at ν = 100.
    np.testing.assert_allclose(at_distance(nu, DISTANCES), expected, rtol=1e-11 if nu < 90 else 1e-8, atol=1e-300)


@pytest.mark.parametrize("nu", [1e3, 1e4])
def test_large_orders_lose_no_digits_to_terms_that_cancel(nu: float) -> None:
    distances = [1e-9, 0.1, 1.0, 3.0, 6.0]
    np.testing.assert_allclose(at_distance(nu, distances), [formula(nu, r) for r in distances], rtol=1e-13)


@pytest.mark.parametrize(("delta", "exact", "wrong"), [([1.0, 1.0, 1.0], 0.199, 0.114), ([1.0], 0.483, 0.416)])
def test_one_chi_square_is_shared_by_the_coordinates_of_a_frequency(
    delta: list[float], exact: float, wrong: float
) -> None:
    """ν = 3/2. Independent t(ν) coordinates would give 0.114, t(2ν) without the factor √(2ν/q) 0.416."""
    value = matern(1.5).gram(np.array([delta]), np.zeros((1, len(delta)))).item()
    assert value == pytest.approx(exact, abs=5e-4)
    mean, error = mean_cosine(matern(1.5), delta)
    # One standard error is about 0.0006.
    assert abs(mean - value) < 4 * error
    assert abs(mean - wrong) > 50 * error


def test_a_chi_square_that_rounds_to_zero_is_refused_and_not_infinite() -> None:
    with pytest.raises(InvalidInput, match="leave the range of float64"):
        matern(1e-3).frequencies(np.full((2, 4), 2.0**-53))


@every_nu
@each("dim", [1, 8, 1024])
def test_lengths_have_the_law_of_a_quotient_in_one_step(nu: float, dim: int) -> None:
    uniforms = np.array([1e-9, 1e-3, 0.1, 0.5, 0.9, 0.999, 1 - 1e-9])
    expected = np.sqrt(dim * stats.f(dim, 2 * nu).ppf(uniforms))
    np.testing.assert_allclose(matern(nu, 3.0).radial_quantile(uniforms, dim), expected, rtol=1e-9)
    # As drawn in two steps, from a normal vector and one chi-square.
    frequencies = matern(nu).frequencies(np.random.default_rng(1).random((4000, 9)))
    squares = np.square(frequencies).sum(axis=1)
    drawn = np.square(matern(nu).radial_quantile(np.random.default_rng(2).random(4000), 8))
    assert stats.ks_2samp(squares, drawn).pvalue > 1e-3
