"""Simulated variances beside their closed forms."""

from typing import Any

import numpy as np
import pytest

from app.core.diagnostics.variance import PairVariance, Variance
from app.core.errors import InvalidInput
from app.core.maps import FeatureMap
from app.core.maps.terms import Form
from service_tests.cases import few_and_many, with_nightly
from service_tests.core.combinations import (
    Fields,
    named,
    rows,
    variants,
    with_frequencies,
)
from service_tests.core.diagnostics.measure import variances
from service_tests.core.specs import KERNELS, fourier, hashing, kind

# One standard error of a variance of so many is 8 and 6 % of it, where the errors are normal.
repeated = pytest.mark.parametrize("repeats", few_and_many(300, 600))
BY_MOMENTS = ("gaussian", "anova", "correlation_rbf")


def agrees(pair: PairVariance, repeats: int, slack: float = 0.0) -> bool:
    """Within four standard errors, and what a formula of first order may be off by."""
    wanted = pair["closed_form"]
    assert wanted is not None
    empirical = pair["empirical"]
    assert empirical["standard_error"] < 3 / repeats**0.5 * empirical["variance"]
    return abs(empirical["variance"] - wanted) < 4 * empirical["standard_error"] + slack * wanted


@pytest.mark.parametrize("form", [form.value for form in Form])
@pytest.mark.parametrize(
    "its_kernel", [variants(model)[-1] for model in KERNELS if kind(model) in with_frequencies(KERNELS)], ids=named
)
@repeated
def test_monte_carlo_has_its_closed_form(its_kernel: Fields, form: str, repeats: int) -> None:
    made = fourier(kernel=its_kernel, form=form, s=64, dtype="float64")
    x, y = rows(2, 1), rows(2, 2)
    found = variances(made, x, y, repeats=repeats, seed=3)
    assert (found["form"], found["s"], found["repeats"], found["own"]) == (form, 64, repeats, "monte_carlo")
    exact = np.diag(made.exact_gram(x, y))
    for i, pair in enumerate(found["pairs"]):
        assert pair["exact"] == pytest.approx(exact[i], rel=1e-10)
        assert pair["closed_form"] == pair["closed_forms"]["monte_carlo"]
        assert agrees(pair, repeats)
        off = abs(pair["empirical"]["mean"] - exact[i])
        assert off < 4 * np.sqrt(pair["empirical"]["variance"] / repeats)
        assert pair["rbf_empirical"] is None


@pytest.mark.parametrize(
    ("form", "repeats"), with_nightly([("cos_sin", 300)], [("cos_sin", 600), ("complex", 600), ("phase", 600)])
)
@pytest.mark.parametrize(
    "its_kernel", [variants(model)[-1] for model in KERNELS if kind(model) in BY_MOMENTS], ids=named
)
def test_moment_matching_has_that_of_the_second_control_variate(its_kernel: Fields, form: str, repeats: int) -> None:
    made = fourier(kernel=its_kernel, form=form, s=1024, sampler={"kind": "moment_matching"}, dtype="float64")
    for pair in variances(made, rows(2, 1), rows(2, 2), repeats=repeats, seed=3)["pairs"]:
        assert pair["closed_form"] == pair["closed_forms"]["cv2"]
        assert agrees(pair, repeats, slack=0.02)


def test_hashes_have_the_binomial_variance_and_that_of_theorem_4() -> None:
    d, s, gamma = 30, 128, 2.0
    made = hashing(input_dim=d, s=s)
    x = np.random.default_rng(0).standard_normal((3, d))
    y = x + np.array([[0.2], [0.7], [3.0]]) * np.random.default_rng(1).standard_normal((3, d))
    found = variances(made, x, y, gamma=gamma, repeats=600, seed=2)
    assert (found["form"], found["own"], found["s"]) == (None, "gcws", s)
    exact = made.exact_pairs(x, y)
    for g, pair in zip(exact, found["pairs"], strict=True):
        assert pair["exact"] == g
        assert pair["closed_form"] == pytest.approx(g * (1 - g) / s)
        assert agrees(pair, 600)
        rbf, wanted = pair["rbf_empirical"], pair["closed_forms"]["rbf_from_gcws"]
        assert rbf is not None
        assert wanted is not None
        # First order in 1/128.
        assert abs(rbf["variance"] - wanted) < 4 * rbf["standard_error"] + 0.1 * wanted
    for pair, a, b in zip(found["pairs"], x, y, strict=True):
        cosine = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
        assert pair["rbf_exact"] == pytest.approx(np.exp(-gamma * (1 - cosine)), rel=1e-12)
    assert {pair["rbf_exact"] for pair in variances(made, x, y, repeats=2)["pairs"]} == {None}


CORRELATIONS = (-1.0, -0.3, 0.0, 0.5, 0.95, 1.0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "its_kernel", [{}, {"p": 3.0}, {"center": [5.0, 1.0, 0.0, -2.0]}, {"center": [-0.1, 0.0, 0.0, 0.0], "p": 0.5}]
)
def test_pairs_of_hashed_rows_have_the_kernel_of_theorem_4(its_kernel: Fields, dtype: str) -> None:
    made = hashing(kernel={"kind": "gmm"} | its_kernel, dtype=dtype)
    root = np.sqrt((1 - np.array(CORRELATIONS)) / 2)
    x, y = Variance(correlations=CORRELATIONS).pairs(made, {})
    # The kernel is that of the rows before they are rounded.
    np.testing.assert_allclose(made.exact_pairs(x, y), (1 - root) / (1 + root), atol=1e-12)
    for pair in variances(made, x, y, repeats=400)["pairs"]:
        if 0.05 < pair["exact"] < 0.95:
            assert agrees(pair, 400)
        elif pair["exact"] in (0, 1):
            assert pair["empirical"] == {"mean": pair["exact"], "variance": 0, "standard_error": 0}


@pytest.mark.parametrize(
    ("made", "options", "pointer"),
    [
        (fourier(), {"gamma": 1.0}, "/gamma"),
        (hashing(kernel={"kind": "gmm", "p": 2.0}), {"gamma": 1.0}, "/gamma"),
        (fourier(), {"extra": 1}, "/y"),
        (fourier(sampler={"kind": "weighted", "box": 2.0}), {}, ""),
        (fourier(kernel={"kind": "correlation_rbf", "gamma": 1.0}), {"zero": True}, "/x/1"),
        (hashing(), {"zero": True}, "/x/1"),
    ],
)
def test_what_has_no_meaning_is_refused(made: FeatureMap, options: dict[str, Any], pointer: str) -> None:
    x, y = rows(2, 1, dtype="float32"), rows(2 + options.pop("extra", 0), 2, dtype="float32")
    if options.pop("zero", False):
        x[1] = 0
    with pytest.raises(InvalidInput) as caught:
        variances(made, x, y, repeats=2, **options)
    assert caught.value.pointer == pointer


def test_two_maps_tell_little_of_a_variance() -> None:
    """Of two numbers ± a about their mean, the sample variance is 2a² and the mean fourth power a⁴."""
    for pair in variances(fourier(s=64), rows(2, 1), rows(2, 2), repeats=2)["pairs"]:
        found = pair["empirical"]
        assert found["standard_error"] == pytest.approx((5 / 8) ** 0.5 * found["variance"], rel=1e-9)


@pytest.mark.parametrize("normalize", [False, True])
def test_a_weight_counts_as_often_as_in_the_estimate(normalize: bool) -> None:
    kernel = {"kind": "anova", "subsets": [[0, 1, 2]], "weights": [3.0], "length_scale": 1.5}
    made = fourier(kernel=kernel, form="phase", s=256, normalize=normalize, dtype="float64")
    for pair in variances(made, rows(2, 1), rows(2, 2), repeats=600, seed=5)["pairs"]:
        assert agrees(pair, 600, slack=0.02)
