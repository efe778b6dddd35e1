"""Quantiles of the laws of frequencies against mpmath, in units in the last place."""

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

from app.core.quantiles import CAUCHY, LAPLACE, NORMAL, quantiles
from service_tests.cases import few_and_many


def upper_normal(above: Any) -> Any:
    """The normal quantile of ½ + above: a root of the distribution function, from a guess near by."""
    if above == 0:
        return above
    nearer = 0.5 - above
    guess = mpmath.sqrt(2) * mpmath.erfinv(2 * above) if nearer > 1e-3 else mpmath.sqrt(-2 * mpmath.log(nearer)) - 0.4
    for _ in range(50):
        step = (mpmath.erfc(guess / mpmath.sqrt(2)) / 2 - nearer) / mpmath.npdf(guess)
        guess += step
        if abs(step) < mpmath.mpf(10) ** -30:
            return guess
    raise AssertionError("no root was found")


UPPER: dict[int, Callable[[Any], Any]] = {
    NORMAL: upper_normal,
    CAUCHY: lambda above: mpmath.tan(mpmath.pi * above),
    LAPLACE: lambda above: -mpmath.log(1 - 2 * above),
}
"""Each law's quantile of ½ + above."""
UNITS = {NORMAL: 3.0, CAUCHY: 3.0, LAPLACE: 1.5}
every_law = pytest.mark.parametrize("law", UPPER, ids=["normal", "cauchy", "laplace"])


def uniforms(n: int) -> Any:
    """Multiples of 2⁻⁵³ between 0 and 1: anywhere, far out at both ends, about the middle and where formulas change."""
    rng = np.random.default_rng(5)
    far = 2.0 ** -rng.uniform(1, 53, n)
    middle = 0.5 + rng.normal(size=n) * 2.0 ** -rng.uniform(4, 52, n)
    changes = np.repeat([0.075, 0.25, 0.75, 0.925], n // 4) + rng.normal(size=n // 4 * 4) * 1e-4
    found = np.concatenate([rng.random(n), far, 1 - far, middle, changes])
    return np.clip(np.round(found * 2.0**53) * 2.0**-53, 2.0**-53, 1 - 2.0**-53)


@every_law
@pytest.mark.parametrize("n", few_and_many(60, 2000))
def test_errors_are_below_the_units_that_are_promised(law: int, n: int) -> None:
    u = uniforms(n)
    with mpmath.workprec(160):
        above = [mpmath.mpf(one) - 0.5 for one in u.tolist()]
        wanted = [mpmath.sign(one) * UPPER[law](abs(one)) for one in above]
        found = quantiles(law, u)
        units = [
            abs(float((mpmath.mpf(float(a)) - b) / float(np.spacing(abs(float(b))))))
            for a, b in zip(found, wanted, strict=True)
        ]
    assert max(units) < UNITS[law]


@every_law
def test_the_ends_mirror_each_other_to_the_bit_and_rise(law: int) -> None:
    u = np.unique(uniforms(5000))
    found = quantiles(law, u.copy())
    assert (quantiles(law, 1 - u) == -found).all()
    assert quantiles(law, np.array([0.5])).item() == 0
    # Neighbours may change places by rounding, by no more than the error of both.
    assert (np.diff(found) > -2 * UNITS[law] * np.spacing(np.abs(found[1:]))).all()
    assert np.isfinite(quantiles(law, np.array([2.0**-53, 1 - 2.0**-53]))).all()
