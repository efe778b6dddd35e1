"""The rational quadratic kernel against its formula, scikit-learn, its limits, and what one shared variance makes."""

from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from sklearn.gaussian_process import kernels as peers

from app.core.errors import InvalidInput
from app.core.kernels.gaussian import Gaussian
from app.core.kernels.rational_quadratic import RationalQuadratic
from service_tests.cases import with_nightly
from service_tests.core.combinations import VarianceGamma
from service_tests.core.specs import kernel, refusal, spec

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


def test_near_rows_keep_their_kernel_beside_rows_whose_distance_overflows() -> None:
    x, y = np.array([[0.0, 0.0, 0.0], [1e200, 0.0, 1.0]]), np.array([[0.1, 0.2, 0.3], [1e200, 0.0, 3.0]])
    far = formula(0.01, 1e200)
    assert 5e-5 < far < 2e-4
    np.testing.assert_allclose(
        rational(0.01).gram(x, y), [[formula(0.01, 0.14**0.5), far], [far, formula(0.01, 2.0)]], rtol=1e-12
    )


@pytest.mark.parametrize("alpha", [0.05, 1.0, 7.0])
def test_it_is_the_kernel_of_scikit_learn(alpha: float) -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(7, 5)), rng.normal(size=(6, 5))
    peer = peers.RationalQuadratic(length_scale=1.7, alpha=alpha)
    np.testing.assert_allclose(rational(alpha, 1.7).gram(x, y), peer(x, y), rtol=1e-13)
    assert np.abs(rational(alpha, 1.7).gram(x, y) - peers.RationalQuadratic(1.7, 2 * alpha)(x, y)).max() > 1e-3


def test_with_a_large_alpha_it_is_the_gaussian_kernel_and_with_a_tiny_one_constant() -> None:
    r = np.linspace(0, 4, 81)
    np.testing.assert_allclose(at_distance(1e6, r), np.exp(-(r**2) / 2), rtol=0, atol=1e-6)
    assert np.abs(at_distance(2.5, r) - np.exp(-(r**2) / 2)).max() > 0.05
    assert (at_distance(1e-300, r) == 1).all()


@every_alpha
def test_the_kernel_falls_from_one_and_has_no_nan(alpha: float) -> None:
    values = at_distance(alpha, np.concatenate([[0.0], np.geomspace(1e-308, 1e307, 2000)]))
    assert values[0] == 1
    assert ((values >= 0) & (values <= 1)).all()
    assert np.diff(values).max() < 1e-15


@pytest.mark.parametrize("alpha", [0.25, 2.5])
def test_each_coordinate_has_its_own_scale(alpha: float) -> None:
    x, y = np.random.default_rng(2).normal(size=(2, 5, 4))
    scales = np.array([0.4, 1.0, 2.5, 7.0])
    distances = np.linalg.norm((x[:, None] - y[None]) / scales, axis=2)
    expected = np.reshape(at_distance(alpha, distances.ravel()), (5, 5))
    np.testing.assert_allclose(rational(alpha, scales.tolist()).gram(x, y), expected, rtol=1e-13)
    assert rational(alpha).gram(np.empty((0, 4)), y).shape == (0, 5)
    assert rational(alpha).gram(x, np.empty((0, 4))).shape == (5, 0)


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


@pytest.mark.parametrize("alpha", with_nightly([1.0], [0.25, 30.0]))
def test_each_coordinate_alone_has_the_variance_gamma_law_and_its_squares_go_together(alpha: float) -> None:
    frequencies = rational(alpha, [0.5, 1.0, 2.0]).frequencies(np.random.default_rng(3).random((20_000, 4)))
    for j, scale in enumerate([0.5, 1.0, 2.0]):
        # Level 1e-3; a scale wrong by a quarter has a p-value far below it.
        assert stats.kstest(frequencies[:, j] * scale, VarianceGamma(alpha).cdf).pvalue > 1e-3
        assert stats.kstest(frequencies[:, j] * scale * 1.25, VarianceGamma(alpha).cdf).pvalue < 1e-3
    if alpha == 1:
        assert stats.kstest(frequencies[:, 1], stats.laplace(scale=0.5**0.5).cdf).pvalue > 1e-3
    ranks = np.atleast_2d(np.corrcoef(stats.rankdata(np.abs(frequencies), axis=0).T))[np.triu_indices(3, 1)]
    # One standard error is 1/√20,000 = 0.007.
    assert (ranks > 4 / np.sqrt(20_000)).all() if alpha < 30 else (np.abs(ranks) < 0.06).all()


@every_alpha
def test_variances_are_quantiles_of_the_gamma_law_to_both_ends(alpha: float) -> None:
    middle = np.column_stack([np.full((len(ENDS), 2), stats.norm.cdf(1.0)), ENDS])
    found = rational(alpha).frequencies(middle)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[:, 0], np.sqrt(stats.gamma(alpha).ppf(ENDS) / alpha), rtol=1e-9, atol=1e-140)
    if alpha == 1:
        np.testing.assert_allclose(found[:, 1], np.sqrt(-np.log1p(-ENDS)), rtol=1e-12)


def test_deviations_and_fourth_moments_are_finite_for_every_alpha() -> None:
    for alpha in ALPHAS:
        made = rational(alpha, [0.5, 1.0, 1e200])
        np.testing.assert_array_equal(made.frequency_deviations(3), 1 / np.array([0.5, 1.0, 1e200]))
        assert made.is_heavy_tailed() == (alpha <= 0.5)
        assert made.normal_deviations(3) is None
    frequencies = rational(1.0).frequencies(np.random.default_rng(5).random((400_000, 4)))
    # Standard errors: √(5/400,000) = 0.0035, and √(2484/400,000) = 0.08.
    assert np.square(frequencies).mean(axis=0) == pytest.approx(np.ones(3), abs=0.016)
    assert (frequencies**4).mean(axis=0) == pytest.approx(np.full(3, 6.0), abs=0.35)


@pytest.mark.parametrize(
    ("alpha", "dim"), [(0.3, 1), (1e-2, 8), (4.0, 8), (1.3, 64), (30.3, 8)]
)  # an order that is whole takes long
@pytest.mark.nightly
def test_lengths_have_the_law_of_a_product_of_gammas(alpha: float, dim: int) -> None:
    found = rational(alpha, 3.0).radial_quantile(ENDS, dim)
    half, shape = mpmath.mpf(dim) / 2, mpmath.mpf(alpha)
    with mpmath.workdps(22):

        def density(t: Any) -> Any:
            """Of the logarithm of the product, a Bessel function."""
            bessel = mpmath.besselk(shape - half, 2 * mpmath.exp(t / 2))
            return 2 * mpmath.exp(t * (shape + half) / 2) * bessel / (mpmath.gamma(shape) * mpmath.gamma(half))

        for level, length in zip(ENDS[5::6], found[5::6], strict=True):
            if length < 1e-140:
                assert alpha < 0.01
                continue
            end = 2 * mpmath.log(length) + mpmath.log(shape / 2)
            above = mpmath.quad(density, mpmath.linspace(end, 9, 9))
            # An error of the quantile is one of the level divided by the density.
            assert abs(float((above - (1 - mpmath.mpf(level))) / density(end))) < 1e-9


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


def test_lengths_are_those_of_the_gaussian_kernel_for_a_large_alpha_and_zero_for_a_tiny_one() -> None:
    gaussian = Gaussian(kind="gaussian", length_scale=1.0)
    np.testing.assert_allclose(rational(1e6).radial_quantile(ENDS, 16), gaussian.radial_quantile(ENDS, 16), rtol=2e-5)
    assert not rational(1e-300).radial_quantile(ENDS, 16).any()
    assert rational(1.0).radial_quantile(np.empty(0), 16).shape == (0,)


def test_a_length_scale_whose_frequencies_overflow_is_refused_for_every_alpha() -> None:
    for alpha in (0.3, 1e6):
        with pytest.raises(InvalidInput, match="leave the range of float64") as caught:
            rational(alpha, 1e-309).frequencies(np.full((2, 4), 0.999))
        assert caught.value.pointer == "/kernel/length_scale"
    with pytest.raises(InvalidInput, match="divided by its length_scale leaves the range of float64"):
        rational(1.0, 1e-3).gram(np.full((1, 4), 1e307), np.zeros((1, 4)))


@pytest.mark.parametrize("alpha", [0.0, -1.0, 1.1e6])
def test_an_alpha_out_of_range_is_refused(alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha"):
        rational(alpha)


def test_samplers_of_normal_laws_are_refused_and_others_serve() -> None:
    fields = {"kind": "rational_quadratic", "length_scale": 1.0, "alpha": 0.01}
    assert refusal(kernel=fields, sampler={"kind": "orthogonal"}).detail.endswith("sampler sobol works")
    assert spec(kernel=fields, sampler={"kind": "moment_matching"}).s == 64
    assert spec(kernel=fields, sampler={"kind": "structured_orthogonal"}, input_dim=8).s == 64
    lengths = {"kind": "rational_quadratic", "length_scale": [1.0] * 3, "alpha": 1.0}
    assert refusal(kernel=lengths).pointer == "/kernel/length_scale"
