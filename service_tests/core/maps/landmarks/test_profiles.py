"""Kernels of a distance from products, against closed forms, and where they are in doubt."""

from typing import Any

import numpy as np
import pytest

from app.core.kernels.gaussian import Gaussian
from app.core.kernels.laplacian import Laplacian
from app.core.kernels.matern import Matern
from app.core.kernels.rational_quadratic import RationalQuadratic
from app.core.maps.landmarks.profiles import (
    EXPONENTIAL,
    MATERN,
    RATIONAL_QUADRATIC,
    profile,
    write_differences,
    write_kernels,
)
from service_tests.cases import each

every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])
FORMS = [
    (EXPONENTIAL, (0.0, 0.0, 0.0), lambda h: np.exp(-h)),
    (MATERN, (0.0, 0.0, 0.0), lambda h: np.exp(-np.sqrt(2 * h))),
    (MATERN, (1.0, 1 / 3, 0.0), lambda h: (1 + np.sqrt(2 * h) + 2 * h / 3) * np.exp(-np.sqrt(2 * h))),
    (RATIONAL_QUADRATIC, (0.3, 0.0, 0.0), lambda h: (1 + h / 0.3) ** -0.3),
    (RATIONAL_QUADRATIC, (1e6, 0.0, 0.0), lambda h: np.exp(-1e6 * np.log1p(h / 1e6))),
]
every_form = pytest.mark.parametrize(("what", "parameters"), [form[:2] for form in FORMS])


def written(what: int, parameters: Any, h: Any, half: Any, dtype: Any) -> tuple[Any, Any]:
    """Kernels (n, k) for values of h, of rows whose half squared norms are `half`, (n,), as those of the landmarks."""
    n, k = h.shape
    padded = np.full((n, k + 3), 7, dtype)
    padded[:, :k] = 2 * half[:, None] - h
    doubtful, halves = np.empty(n, np.bool_), half.astype(dtype)
    for i in range(n):  # so that a row and its landmarks have the same norm
        write_kernels(
            what, np.array(parameters, dtype), padded[i : i + 1], halves[i : i + 1], np.full(k, halves[i]), 0.0,
            doubtful[i : i + 1],
        )  # fmt: skip
    assert (padded[:, k:] == 7).all()
    return padded[:, :k], doubtful


@every_dtype
@each(("what", "parameters", "form"), FORMS)
def test_they_are_those_of_the_closed_forms(what: int, parameters: Any, form: Any, dtype: Any) -> None:
    half = np.full(40, 1.0)
    h = np.random.default_rng(1).uniform(0.3, 2, (40, 53)).astype(dtype).astype(np.float64)
    h = 2 - (2 - h).astype(dtype).astype(np.float64)  # what products of the dtype say
    found, doubtful = written(what, parameters, h, half, dtype)
    assert not doubtful.any()
    np.testing.assert_allclose(found, form(h), rtol=8 * np.finfo(dtype).eps)


@every_dtype
@every_form
def test_what_a_difference_says_too_little_of_is_in_doubt(what: int, parameters: Any, dtype: Any) -> None:
    eps, large = np.finfo(dtype).eps, 1e6 if dtype is np.float32 else 1e9
    h = np.array([[0.5, 0.0], [0.5, 0.5], [0.5, 0.6], [1e3, 2e3], [0.5, -eps]])
    half = np.array([1.0, large, 1.0, 1e3, 1.0])
    found, doubtful = written(what, parameters, h, half, dtype)
    assert doubtful.tolist()[:3] == [True, True, False]
    assert doubtful[4]
    assert np.isnan(found).tolist()[:3] == [[False, True], [True, True], [False, False]]
    if what == EXPONENTIAL:  # far apart, large norms do no harm
        assert not doubtful[3]


@every_dtype
@every_form
def test_kernels_that_leave_the_range_are_in_doubt(what: int, parameters: Any, dtype: Any) -> None:
    half = np.array([np.finfo(dtype).max, np.inf])
    with np.errstate(over="ignore", invalid="ignore"):
        found, doubtful = written(what, parameters, np.ones((2, 3)), half, dtype)
    assert doubtful.all()
    assert np.isnan(found).all()


def test_kernels_without_a_profile_have_none() -> None:
    assert profile(Laplacian(kind="laplacian", length_scale=1)) is None
    assert profile(Matern(kind="matern", length_scale=1, nu=0.7)) is None
    assert profile(RationalQuadratic(kind="rational_quadratic", length_scale=1, alpha=9e-4)) is None
    found = profile(Gaussian(kind="gaussian", length_scale=(1, 2)))
    assert found is not None
    assert found.scales.tolist() == [1, 2]


@every_dtype
def test_differences_are_summed_in_float64(dtype: Any) -> None:
    rng = np.random.default_rng(3)
    rows, landmarks, scales = rng.normal(size=(7, 5)), rng.normal(size=(5, 20)), np.array([1, 2, 0.5, 1, 3])
    rows, landmarks = rows.astype(dtype) + dtype(1000), landmarks.astype(dtype) + dtype(1000)
    found = np.empty((7, 20), dtype)
    write_differences(rows, landmarks, 1 / scales, found)
    lags = (rows[:, :, None].astype(np.float64) - landmarks) / scales[:, None]
    np.testing.assert_allclose(found, -(lags**2).sum(axis=1) / 2, rtol=4 * np.finfo(dtype).eps)
