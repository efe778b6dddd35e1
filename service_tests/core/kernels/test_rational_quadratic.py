"""The rational quadratic kernel against its formula, and what one shared variance makes."""

from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from app.core.kernels import rational_quadratic
from app.core.kernels.rational_quadratic import RationalQuadratic
from service_tests.cases import with_nightly
from service_tests.core.specs import kernel

ALPHAS = [1e-300, 1e-18, 1e-3, 0.25, 1.0, 2.5, 30.0, 1e6]
DISTANCES = [0.0, 1e-300, 1e-12, 1e-6, 1e-3, 0.05, 0.3, 1.0, 2.0, 5.0, 20.0, 200.0, 1e100, 1e160, 1e300]
ENDS = np.array([2.0**-53, 1e-9, 1e-3, 0.1, 0.5, 0.9, 0.999, 1 - 1e-9, 1 - 2.0**-53])

every_alpha = pytest.mark.parametrize("alpha", ALPHAS)


def rational(alpha: float, length_scale: Any = 1.0) -> RationalQuadratic:
    made = kernel(kind="rational_quadratic", alpha=alpha, length_scale=length_scale)
    assert isinstance(made, RationalQuadratic)
    return made


def at_distance(alpha: float, distances: Any) -> NDArray[np.float64]:
    return rational(alpha).gram(np.array(distances, ndmin=2).T, np.zeros((1, 1)))[:, 0]


def formula(alpha: float, r: float) -> float:
    """(1 + r²/(2α))^(−α) in seven hundred digits, of which small α take six hundred."""
    with mpmath.workdps(700):
        shape, distance = mpmath.mpf(alpha), mpmath.mpf(r)
        return float((1 + distance**2 / (2 * shape)) ** -shape)


@every_alpha
def test_the_gram_block_is_the_formula_from_no_distance_to_those_whose_squares_overflow(alpha: float) -> None:
    expected = [formula(alpha, r) for r in DISTANCES]
    np.testing.assert_allclose(at_distance(alpha, DISTANCES), expected, rtol=1e-13, atol=1e-300)


@pytest.mark.parametrize("at_once", [2, 7, 1 << 16])
def test_near_rows_keep_their_kernel_beside_rows_whose_distance_overflows(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rational_quadratic, "_FAR_NUMBERS", at_once)
    x, y = np.array([[0.0, 0.0, 0.0], [1e200, 0.0, 1.0]]), np.array([[0.1, 0.2, 0.3], [1e200, 0.0, 3.0]])
    far = formula(0.01, 1e200)
    assert 5e-5 < far < 2e-4
    expected = [[formula(0.01, 0.14**0.5), far], [far, formula(0.01, 2.0)]]
    np.testing.assert_allclose(rational(0.01).gram(np.tile(x, (9, 1)), y), np.tile(expected, (9, 1)), rtol=1e-12)
    np.testing.assert_allclose(rational(0.01).gram(y, np.tile(x, (9, 1))), np.tile(expected, (1, 9)), rtol=1e-12)


@pytest.mark.parametrize("alpha", with_nightly([0.25, 2.5], [0.05, 10.0]))
def test_the_mean_of_the_cosines_is_the_kernel_and_not_that_of_independent_variances(alpha: float) -> None:
    made, delta = rational(alpha, [0.5, 1.0, 2.0]), np.array([0.5, -1.0, 2.0])
    cosines = np.cos(made.frequencies(np.random.default_rng(1).random((1_000_000, 4))) @ delta)
    # One standard error is at most 0.0007.
    error = cosines.std() / 1000
    exact = made.gram(delta[None], np.zeros((1, 3))).item()
    assert exact == pytest.approx((1 + 3 / (2 * alpha)) ** -alpha, rel=1e-13)
    assert abs(cosines.mean() - exact) < 4 * error
    independent = (1 + 1 / (2 * alpha)) ** (-3 * alpha)
    assert abs(cosines.mean() - independent) > 20 * error


@every_alpha
def test_variances_are_quantiles_of_the_gamma_law_to_both_ends(alpha: float) -> None:
    middle = np.column_stack([np.full((len(ENDS), 2), stats.norm.cdf(1.0)), ENDS])
    found = rational(alpha).frequencies(middle)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[:, 0], np.sqrt(stats.gamma(alpha).ppf(ENDS) / alpha), rtol=1e-9, atol=1e-140)
    if alpha == 1:
        np.testing.assert_allclose(found[:, 1], np.sqrt(-np.log1p(-ENDS)), rtol=1e-12)


@pytest.mark.parametrize("alpha", [1e-3, 0.4, 4.0, 200.0])
def test_lengths_are_those_of_the_frequencies_and_rise_with_their_level(alpha: float) -> None:
    made = rational(alpha)
    squares = np.square(made.frequencies(np.random.default_rng(1).random((4000, 9)))).sum(axis=1)
    drawn = np.square(made.radial_quantile(np.random.default_rng(2).random(4000), 8))
    assert stats.ks_2samp(squares, drawn).pvalue > 1e-3
    assert stats.ks_2samp(squares[squares > 0], 1.3 * drawn[drawn > 0]).pvalue < 1e-3 or alpha < 0.01
    levels = np.linspace(2.0**-53, 1 - 2.0**-53, 100_001)
    lengths = made.radial_quantile(levels, 1024)
    assert np.isfinite(lengths).all()
    assert (np.diff(lengths) >= 0).all()
