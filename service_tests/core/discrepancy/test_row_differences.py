"""Errors over the differences of rows: beside sums over all pairs, and finite differences."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from app.core.building import Use
from app.core.discrepancy.row_differences import RowDifferences
from service_tests.core.specs import kernel

KERNELS: list[dict[str, Any]] = [
    {"kind": "gaussian", "length_scale": [0.5, 1.0, 2.0]},
    {"kind": "laplacian", "length_scale": 1.3},
    {"kind": "matern", "nu": 1.5, "length_scale": 1.1},
]
kernels = pytest.mark.parametrize("its", KERNELS, ids=lambda its: its["kind"])
forms = pytest.mark.parametrize("is_complex", [False, True])


def example(its: dict[str, Any], is_complex: bool, n: int = 11, s: int = 5) -> tuple[RowDifferences, Any, Any, Any]:
    """A measure of rows in three dimensions, these rows, frequencies and weights of both signs."""
    rng = np.random.default_rng(n + s)
    rows, frequencies, weights = rng.normal(size=(n, 3)), rng.normal(size=(s, 3)), rng.normal(0.2, 0.3, size=s)
    return RowDifferences(kernel(**its), rows, Use(is_complex=is_complex)), rows, frequencies, weights


@kernels
@forms
def test_all_is_a_mean_over_all_pairs(its: dict[str, Any], is_complex: bool) -> None:
    measure, rows, frequencies, weights = example(its, is_complex)
    exact = kernel(**its).gram(rows, rows)
    pairs = [*product(range(11), repeat=2)]
    waves = np.array([np.exp(1j * frequencies @ (rows[i] - rows[j])) for i, j in pairs])
    if not is_complex:
        waves = waves.real.astype(complex)
    k = np.array([exact[i, j] for i, j in pairs])
    assert measure.energy == pytest.approx((k**2).mean(), rel=1e-14)
    np.testing.assert_allclose(measure.means(frequencies), (waves.T @ k).real / 121, rtol=0, atol=1e-15)
    np.testing.assert_allclose(measure.gram(frequencies), (waves.T @ waves.conj()).real / 121, rtol=0, atol=1e-15)
    error = float((np.abs(waves @ weights - k) ** 2).mean())
    assert measure.evaluate(frequencies, weights) == pytest.approx(error, rel=1e-12)
    assert measure.value_and_gradient(frequencies, weights)[0] == pytest.approx(error, rel=1e-12)
    equal = float((np.abs(waves.mean(axis=1) - k) ** 2).mean())
    assert measure.evaluate(frequencies) == pytest.approx(equal, rel=1e-12)


@kernels
@forms
def test_gradients_equal_finite_differences(its: dict[str, Any], is_complex: bool) -> None:
    measure, _, frequencies, weights = example(its, is_complex)
    _, gradients = measure.value_and_gradient(frequencies, weights)
    means, slopes = measure.means_and_gradients(frequencies)
    np.testing.assert_allclose(means, measure.means(frequencies), rtol=0, atol=1e-15)
    own, turns = measure.own_terms(frequencies)
    np.testing.assert_allclose(1 + own, np.diagonal(measure.gram(frequencies)), rtol=0, atol=1e-15)
    step = 1e-5
    for place in np.ndindex(frequencies.shape):
        up, down = frequencies.copy(), frequencies.copy()
        up[place] += step
        down[place] -= step
        above, below = (
            np.array([measure.evaluate(at, weights), measure.means(at).sum(), measure.own_terms(at)[0].sum()])
            for at in (up, down)
        )
        found = (above - below) / (2 * step)
        np.testing.assert_allclose(found, [gradients[place], slopes[place], turns[place]], rtol=0, atol=1e-9)
