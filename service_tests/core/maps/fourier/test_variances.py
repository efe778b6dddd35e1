"""Closed forms of variances: a frequency of a large map is an estimate of its own."""

from typing import Any

import numpy as np
import pytest

from app.core.maps import FourierMap
from app.core.maps.fourier.fourier_map import closed_forms as forms_of
from app.core.maps.terms import Form
from service_tests.cases import each, with_nightly
from service_tests.core.combinations import Fields, named, variants, with_frequencies
from service_tests.core.specs import KERNELS, fourier, kind

S = 100_000
NORMAL = ("gaussian", "correlation_rbf", "anova")
SINGLE = [
    fields
    for model in KERNELS
    if kind(model) in with_frequencies(KERNELS) and kind(model) != "anova"
    for fields in variants(model)
]


def closed_forms(made: FourierMap, lags: Any) -> Any:
    return forms_of(made.spec, made.baseline(0), lags).by_name


def lags_of(made: Any, x: Any, y: Any) -> Any:
    return made.kernel.prepare(x) - made.kernel.prepare(y)


def pair() -> tuple[Any, Any]:
    rng = np.random.default_rng(8)
    x = rng.standard_normal((3, 4))
    return x, x + np.array([[0.2], [0.6], [1.5]]) * rng.standard_normal((3, 4))


@pytest.mark.parametrize("form", [form.value for form in Form])
@pytest.mark.parametrize("its_kernel", SINGLE, ids=named)
def test_a_frequency_has_the_variance_said(its_kernel: Fields, form: str) -> None:
    made = fourier(kernel=its_kernel, form=form, s=S, dtype="float64")
    x, y = pair()
    exact, closed = made.exact_pairs(x, y), closed_forms(made, lags_of(made, x, y))
    np.testing.assert_allclose(exact, np.diag(made.exact_gram(x, y)), rtol=1e-10)
    products = S * made.transform(x) * made.transform(y).conj()
    if form == "cos_sin":
        products = products[:, :S] + products[:, S:]
    squares = np.abs(products - exact[:, None]) ** 2
    wanted = S * closed["monte_carlo"]
    error = squares.std(axis=1) / np.sqrt(S)
    # One standard error, in % of the variance.
    assert (error < 0.03 * wanted).all()
    assert (np.abs(squares.mean(axis=1) - wanted) < 4 * error).all()
    assert not {"gcws", "rbf_from_gcws"} & set(closed)
    assert ("cv1" in closed) == (its_kernel["kind"] in NORMAL)
    if form == "phase":
        assert (closed["rff"] == closed["monte_carlo"]).all()


@pytest.mark.parametrize(
    "its_kernel", with_nightly(SINGLE[::4], [one for i, one in enumerate(SINGLE) if i % 4]), ids=named
)
def test_normalized_frequencies_have_the_variance_said(its_kernel: Fields) -> None:
    # Slices of one map, normalised one by one as `normalize` does; first order in 1/512.
    maps, s = 3000, 512
    made = fourier(kernel=its_kernel, form="phase", s=maps * s, dtype="float64")
    x, y = (rows[1:2] for rows in pair())
    of_x, of_y = (made.transform(row).reshape(maps, s) for row in (x, y))
    estimates = (of_x * of_y).sum(axis=1) / np.sqrt(np.square(of_x).sum(axis=1) * np.square(of_y).sum(axis=1))
    squares = s * np.square(estimates - estimates.mean())
    normalized = fourier(kernel=its_kernel, form="phase", s=s, dtype="float64", normalize=True)
    closed = closed_forms(normalized, lags_of(made, x, y))
    assert closed["monte_carlo"] == closed["nrff"]
    assert "cv2" not in closed
    error = squares.std() / np.sqrt(maps)
    assert error < 0.04 * s * closed["nrff"]
    assert abs(squares.mean() - s * closed["nrff"]) < 4 * error + 0.01 * s * closed["nrff"]


@each("rho", [-0.5, 0.0, 0.5, 0.9, 1.0])
@each("gamma", [0.5, 3.0])
def test_the_forms_of_theorems_2_and_3(gamma: float, rho: float) -> None:
    made = fourier(kernel={"kind": "correlation_rbf", "gamma": gamma}, s=100, form="phase", dtype="float64")
    lag = np.array([[1 - rho, -np.sqrt(1 - rho**2), 0, 0]])
    x = np.array([[1.0, 0, 0, 0]])
    (exact,), closed = made.exact_pairs(x, x - lag), closed_forms(made, lag)
    assert exact == pytest.approx(np.exp(-gamma * (1 - rho)), rel=1e-12)
    plain = 1 / 2 + (1 - exact**2) ** 2 / 2
    assert closed["rff"] == pytest.approx(plain / 100, rel=1e-12)
    assert closed["nrff"] == pytest.approx((plain - exact**2 * (3 - exact**4) / 4) / 100, rel=1e-11, abs=1e-17)


def test_rows_that_lie_as_far_apart_as_can_be_have_the_variances_of_kernel_0() -> None:
    found = closed_forms(fourier(kernel={"kind": "gaussian", "length_scale": 1.0}, s=64), np.full((1, 4), 1e150))
    assert found["cv1"] == found["cv2"] == found["moment_matching"] == found["monte_carlo"] == 0.5 / 64
