"""What holds for every product kernel, against closed forms and scipy's laws."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from app.core.errors import InvalidInput
from service_tests.cases import each
from service_tests.core.specs import PRODUCT_KERNELS, kind, product_kernel, refusal

FORMULAS: dict[str, Callable[[float, float], float]] = {
    "gaussian": lambda delta, scale: np.exp(-(delta**2) / (2 * scale**2)),
    "laplacian": lambda delta, scale: np.exp(-abs(delta) / scale),
    "cauchy": lambda delta, scale: 1 / (1 + delta**2 / scale**2),
}
"""One coordinate of the kernel."""

LAWS: dict[str, Any] = {"gaussian": stats.norm, "laplacian": stats.cauchy, "cauchy": stats.laplace}
"""Of one coordinate of the frequencies, with scale 1/σ."""

KINDS = [kind(model) for model in PRODUCT_KERNELS]
SCALES: list[float | list[float]] = [1.3, [0.4, 1.0, 2.5, 7.0]]

every_kind = pytest.mark.parametrize("name", KINDS)
every_scale = pytest.mark.parametrize("scale", SCALES, ids=["isotropic", "ard"])


@every_scale
@every_kind
def test_the_gram_block_is_the_product_of_the_formula_over_the_coordinates(
    name: str, scale: float | list[float]
) -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(7, 4)), rng.normal(size=(5, 4))
    scales = np.broadcast_to(scale, 4)
    expected = np.empty((7, 5))
    for i in range(7):
        for j in range(5):
            expected[i, j] = np.prod([FORMULAS[name](x[i, k] - y[j, k], scales[k]) for k in range(4)])
    np.testing.assert_allclose(product_kernel(name, scale).gram(x, y), expected, rtol=1e-12)


@every_kind
def test_rows_out_of_sight_of_each_other_have_kernel_zero_and_no_nan(name: str) -> None:
    x = np.full((1, 4), 1e308)
    assert product_kernel(name, 1.0).gram(x, -x).item() == 0
    assert product_kernel(name, 1e300).gram(x, x).item() == 1


@every_kind
def test_the_quantiles_are_those_of_the_spectral_law(name: str) -> None:
    uniforms = np.concatenate([np.geomspace(1e-16, 0.5, 400), 1 - np.geomspace(1e-12, 0.5, 400)])[:, None]
    expected = LAWS[name].ppf(uniforms, scale=1 / 2.5)
    # Near 1 the law of 1 − t is steep: what a rounding of t makes there is no error of the quantile.
    np.testing.assert_allclose(product_kernel(name, 2.5).frequencies(uniforms.copy()), expected, rtol=2e-4, atol=1e-14)
    inner = np.linspace(0.01, 0.99, 197)[:, None]
    np.testing.assert_allclose(
        product_kernel(name, 2.5).frequencies(inner.copy()),
        LAWS[name].ppf(inner, scale=1 / 2.5),
        rtol=1e-12,
        atol=1e-14,
    )


@every_kind
@each("length", [0, 3, 5])
def test_a_list_of_another_length_than_the_vectors_is_refused(name: str, length: int) -> None:
    error = refusal(kernel={"kind": name, "length_scale": [1.0] * length})
    assert error.pointer == "/kernel/length_scale"
    assert error.detail == f"length_scale has {length} entries; input_dim 4 wants as many, or one"


@every_kind
def test_a_length_scale_whose_frequencies_overflow_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="leave the range of float64") as caught:
        product_kernel(name, 1e-308).frequencies(np.full((2, 3), 1e-3))
    assert caught.value.pointer == "/kernel/length_scale"


@every_kind
def test_the_density_integrates_to_one_and_to_the_kernel(name: str) -> None:
    made, density = product_kernel(name, 1.0), LAWS[name].pdf
    assert 2 * quad(density, 0, np.inf)[0] == pytest.approx(1, abs=1e-9)
    lags = np.array([0.1, 0.7, 1.0, 2.5, 6.0])
    for lag, expected in zip(lags, made.standard_characteristic(lags), strict=True):
        # The law is even: twice the cosine integral over the half line is the characteristic function.
        assert 2 * quad(density, 0, np.inf, weight="cos", wvar=lag)[0] == pytest.approx(expected, abs=1e-8)
        assert expected == pytest.approx(FORMULAS[name](lag, 1.0), rel=1e-14)
        assert expected == pytest.approx(made.gram(np.array([[-lag]]), np.zeros((1, 1))).item(), rel=1e-14)
    assert made.standard_characteristic(np.zeros(1)) == 1
    np.testing.assert_allclose(made.standard_characteristic(-lags), made.standard_characteristic(lags), rtol=1e-15)
