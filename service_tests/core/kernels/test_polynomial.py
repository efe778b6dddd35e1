"""The polynomial kernel against scikit-learn, exact fractions, and the features that it is the product of."""

from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import factorial, prod
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.metrics.pairwise import polynomial_kernel

from app.core.errors import InvalidInput
from app.core.kernels.polynomial import Polynomial
from service_tests.cases import each
from service_tests.core.specs import kernel, refusal

FORMS: list[Any] = [np.asarray, csr_array]
every_form = pytest.mark.parametrize(("of_x", "of_y"), list(product(FORMS, FORMS)))


def polynomial(degree: int, **fields: Any) -> Polynomial:
    made = kernel(kind="polynomial", degree=degree, **fields)
    assert isinstance(made, Polynomial)
    return made


def rows(n: int, seed: int, d: int = 6, dtype: str = "float64") -> Any:
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)).astype(dtype)


@every_form
@each("dtype", ["float32", "float64"])
@each("fields", [{}, {"gamma": 0.3, "coef0": 0.0}, {"gamma": 2.0, "coef0": 2.5}])
@each("degree", [1, 2, 3, 7, 12])
def test_it_is_the_kernel_of_scikit_learn(
    degree: int, fields: dict[str, Any], dtype: str, of_x: Any, of_y: Any
) -> None:
    x, y = rows(9, 1, dtype=dtype), rows(7, 2, dtype=dtype)
    wide = [part.astype(np.float64) for part in (x, y)]
    expected = polynomial_kernel(*wide, degree=degree, gamma=fields.get("gamma"), coef0=fields.get("coef0", 1))
    made = polynomial(degree, **fields)
    # A rounding of x·y, beside which coef0 may nearly cancel it, is raised to the power.
    close: Any = {"rtol": 1e-12, "atol": 1e-13 * float(np.abs(expected).max())}
    np.testing.assert_allclose(made.exact(of_x(x), of_y(y)), expected, **close)
    np.testing.assert_allclose(made.pairs(of_x(x[:7]), of_y(y)), np.diag(expected), **close)
    assert made.exact(of_x(x[:0]), of_y(y)).shape == (0, 7)
    assert made.exact(of_x(x), of_y(y[:0])).shape == (9, 0)


@pytest.mark.parametrize("degree", [1, 2, 5, 31, 1000])
def test_powers_are_those_of_exact_fractions(degree: int) -> None:
    x, y = np.array([[0.5, 0.25, 1.0]]), np.array([[0.75, -0.5, 0.5]])
    base = Fraction(3, 4) * Fraction(3, 4) + Fraction(1, 8)
    expected = float(base**degree)
    found = polynomial(degree, gamma=0.75, coef0=0.125).exact(x, y).item()
    # x·y is 3/4, and each of some 2·log₂ products doubles an error that is a rounding.
    assert found == pytest.approx(expected, rel=2e-16 * (degree + 2))


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_it_is_the_inner_product_of_all_products_of_entries(degree: int) -> None:
    """With a constant entry √coef0; each product once, weighted by how often it comes."""
    x = rows(8, 3, 3)
    extended = np.column_stack([np.sqrt(0.7) * x, np.full(8, np.sqrt(1.3))])
    features = [
        np.sqrt(factorial(degree) / prod(factorial(chosen.count(j)) for j in range(4)))
        * extended[:, list(chosen)].prod(axis=1)
        for chosen in combinations_with_replacement(range(4), degree)
    ]
    gram = polynomial(degree, gamma=0.7, coef0=1.3).exact(x, x)
    np.testing.assert_allclose(gram, np.transpose(features) @ features, rtol=1e-12, atol=1e-13)
    assert np.linalg.matrix_rank(polynomial(degree, gamma=0.7, coef0=1.3).exact(rows(60, 4, 3), rows(60, 4, 3))) == len(
        features
    )


def test_gamma_is_one_over_the_dimension_of_the_rows_and_not_of_what_is_stored() -> None:
    dense = np.zeros((2, 50))
    dense[:, 3] = [2.0, 5.0]
    for form in FORMS:
        gram = polynomial(2).exact(form(dense), form(dense))
        np.testing.assert_allclose(gram, [[(1 + 4 / 50) ** 2, 1.44], [1.44, 2.25]], rtol=1e-15)


def test_rows_of_two_to_the_31_entries_stay_sparse() -> None:
    def row(columns: list[int]) -> Any:
        return csr_array((np.arange(1.0, 4), columns, [0, 3]), shape=(1, 1 << 31))

    x, y = row([0, 7, (1 << 31) - 1]), row([7, 9, (1 << 31) - 1])
    made = polynomial(3, gamma=1.0, coef0=2.0)
    assert made.compares_sparse
    assert made.exact(x, y).item() == made.pairs(x, y).item() == (2 + 2 * 1 + 3 * 3) ** 3
    assert made.exact_bytes(x, y) < 200
    assert made.exact_operations(x, y) < 1000


def test_the_bits_of_a_row_do_not_depend_on_the_rows_beside_it() -> None:
    x, y = rows(50, 5, 37), rows(23, 6, 37)
    made = polynomial(3)
    for form in FORMS:
        whole = made.exact(form(x), form(y))
        for i in (0, 17, 49):
            assert (made.exact(form(x[i : i + 1]), form(y))[0] == whole[i]).all()
        assert (made.exact(form(x), form(y[5:6]))[:, 0] == whole[:, 5]).all()


@every_form
@each("sign", [1, -1])
def test_values_out_of_range_are_refused_and_not_infinite(of_x: Any, of_y: Any, sign: int) -> None:
    x, y = np.full((2, 3), 1e60), np.full((1, 3), sign * 1e60)
    assert np.isfinite(polynomial(2).exact(of_x(x), of_y(y))).all()
    made = polynomial(3)
    for call in (made.exact, lambda a, b: made.pairs(a[:1], b)):
        with pytest.raises(InvalidInput, match="degree 3 leaves the range of float64; smaller rows"):
            call(of_x(x), of_y(y))
    # Products of both signs that overflow have no sum.
    with pytest.raises(InvalidInput, match="leaves the range of float64"):
        polynomial(1).exact(of_x(np.array([[1e200, 1e200]])), of_y(np.array([[1e200, -1e200]])))


@pytest.mark.parametrize(
    "fields", [{"degree": 0}, {"degree": 1001}, {"degree": 2.5}, {"degree": 2, "gamma": 0}, {"degree": 2, "coef0": -1}]
)
def test_what_makes_no_positive_kernel_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=list(fields)[-1]):
        kernel(kind="polynomial", **fields)


def test_samplers_of_frequencies_are_refused_and_landmarks_named() -> None:
    error = refusal(kernel={"kind": "polynomial", "degree": 2})
    assert error.pointer == "/sampler/kind"
    assert error.detail == "kernel polynomial has no frequencies for sampler monte_carlo; its sampler is landmarks"
