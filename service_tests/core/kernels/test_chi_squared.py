"""The exponential chi-squared kernel against scikit-learn, exact fractions, and where squares would overflow."""

from fractions import Fraction
from itertools import product
from math import exp
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.metrics.pairwise import chi2_kernel

from app.core.errors import InvalidInput
from app.core.kernels.chi_squared import ChiSquared
from service_tests.cases import each
from service_tests.core.specs import kernel

FORMS: list[Any] = [np.asarray, csr_array]
every_form = pytest.mark.parametrize(("of_x", "of_y"), list(product(FORMS, FORMS)))


def chi_squared(**fields: Any) -> ChiSquared:
    made = kernel(kind="chi_squared", **fields)
    assert isinstance(made, ChiSquared)
    return made


def rows(n: int, seed: int, d: int = 6, dtype: str = "float64") -> Any:
    rng = np.random.default_rng(seed)
    return (rng.exponential(size=(n, d)) * (rng.random((n, d)) < 0.6)).astype(dtype)


@every_form
@each("dtype", ["float32", "float64"])
@each("gamma", [1.0, 0.05, 3.0])
@each("d", [1, 6, 700])
def test_it_is_the_kernel_of_scikit_learn(d: int, gamma: float, dtype: str, of_x: Any, of_y: Any) -> None:
    x, y = rows(9, 1, d, dtype) / np.float32(d), rows(7, 2, d, dtype) / np.float32(d)
    expected = chi2_kernel(x.astype(np.float64), y.astype(np.float64), gamma=gamma)
    made = chi_squared(gamma=gamma)
    np.testing.assert_allclose(made.exact(of_x(x), of_y(y)), expected, rtol=1e-13)
    np.testing.assert_allclose(made.pairs(of_x(x[:7]), of_y(y)), np.diag(expected), rtol=1e-13)
    assert np.ptp(expected) > 1e-3
    assert made.exact(of_x(x[:0]), of_y(y)).shape == (0, 7)
    assert made.exact(of_x(x), of_y(y[:0])).shape == (9, 0)


@every_form
def test_a_block_is_that_of_exact_fractions_and_zero_over_zero_is_zero(of_x: Any, of_y: Any) -> None:
    x, y = [3, 0, 0, 7, 1, 0], [1, 0, 5, 7, 0, 2]
    exact = sum(Fraction((a - b) ** 2, a + b) for a, b in zip(x, y, strict=True) if a + b)
    assert exact == 1 + 5 + 1 + 2
    found = chi_squared(gamma=0.25).exact(of_x(np.array([x], float)), of_y(np.array([y], float))).item()
    assert found == pytest.approx(exp(-0.25 * exact), rel=1e-15)
    assert chi_squared().exact(of_x(np.zeros((1, 4))), of_y(np.zeros((1, 4)))).item() == 1


@every_form
def test_large_rows_that_differ_little_keep_their_kernel(of_x: Any, of_y: Any) -> None:
    """Their sums, of which almost all cancels, have an error of some units."""
    rng = np.random.default_rng(4)
    x = np.round(rng.uniform(1, 10, 40) * 1e15 + rng.normal(size=(6, 40)) * 3e6)
    x[:, :5] = rng.random((6, 5)) * (rng.random((6, 5)) < 0.5)
    exact = [
        [sum(Fraction(a - b) ** 2 / Fraction(a + b) for a, b in zip(u, v, strict=True) if a + b) for v in x] for u in x
    ]
    expected = np.exp(-np.array(exact, float))
    assert 0.01 < expected.min() < 0.5
    np.testing.assert_allclose(chi_squared().exact(of_x(x), of_y(x)), expected, rtol=1e-13)


@every_form
@each("size", [1e-320, 1e-280, 1.0, 1e16, 1e300, 1.7e308])
def test_rows_of_any_size_have_kernel_one_with_themselves_and_another_with_their_halves(
    size: float, of_x: Any, of_y: Any
) -> None:
    x = np.abs(np.random.default_rng(2).uniform(0.1, 1, (5, 40))) * size
    made = chi_squared(gamma=1 / size / 40 if size > 1e-290 else 1.0)
    assert (np.diag(made.exact(of_x(x), of_y(x))) == 1).all()
    assert (made.pairs(of_x(x), of_y(x)) == 1).all()
    half = x / 2  # (x − x/2)²/(x + x/2) = x/6
    expected = np.exp(-40 * made.gamma * (x / 240).sum(axis=1))
    np.testing.assert_allclose(np.diag(made.exact(of_x(x), of_y(half))), expected, rtol=1e-13)
    np.testing.assert_allclose(made.pairs(of_x(x), of_y(half)), expected, rtol=1e-13)
    assert size < 1e-290 or expected.max() < 0.97


def test_rows_of_two_to_the_31_entries_stay_sparse() -> None:
    def row(columns: list[int]) -> Any:
        return csr_array((np.arange(1.0, 4), columns, [0, 3]), shape=(1, 1 << 31))

    x, y = row([0, 7, (1 << 31) - 1]), row([9, 7, (1 << 31) - 1])
    made = chi_squared(gamma=0.5)
    assert made.compares_sparse
    assert made.prepare(x) is x
    assert made.exact(x, y).item() == pytest.approx(exp(-0.5 * 2), rel=1e-15)
    assert made.pairs(x, y).item() == pytest.approx(exp(-0.5 * 2), rel=1e-15)
    assert made.exact_bytes(x, y) < 400
    assert made.comparison_operations(x, y) < 100


@pytest.mark.parametrize("form", FORMS)
def test_a_negative_entry_is_refused_with_its_place(form: Any) -> None:
    x = rows(5, 8)
    x[2, 3] = 0.0
    x[3, 4], x[4, 0] = -0.25, -7.0
    with pytest.raises(InvalidInput, match=r"row 3, column 4 is -0.25; kernel chi_squared wants 0 or more") as caught:
        chi_squared().prepare(form(x), "/x")
    assert caught.value.pointer == "/x/3/4"
    x[3, 4], x[4, 0] = -0.0, 0.0
    chi_squared().prepare(form(x))
    chi_squared().prepare(form(x[:0]))
