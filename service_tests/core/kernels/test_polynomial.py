"""The polynomial kernel against scikit-learn, of rows of any width, and where it leaves the range."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.metrics.pairwise import polynomial_kernel

from app.core.errors import InvalidInput
from app.core.kernels.polynomial import Polynomial
from service_tests.cases import each
from service_tests.core.specs import kernel

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
    assert made.exact_bytes(x, y) < 300
    assert made.comparison_operations(x, y) < 1000


@every_form
@each("sign", [1, -1])
def test_values_out_of_range_are_refused_and_not_infinite(of_x: Any, of_y: Any, sign: int) -> None:
    x, y = np.full((2, 3), 1e60), np.full((1, 3), sign * 1e60)
    assert np.isfinite(polynomial(2).exact(of_x(x), of_y(y))).all()
    made = polynomial(3)
    for call in (made.exact, lambda a, b: made.pairs(a[:1], b)):
        with pytest.raises(InvalidInput, match="degree 3 leave float64: take smaller rows"):
            call(of_x(x), of_y(y))
    # Products of both signs that overflow have no sum.
    with pytest.raises(InvalidInput, match="leave float64"):
        polynomial(1).exact(of_x(np.array([[1e200, 1e200]])), of_y(np.array([[1e200, -1e200]])))
