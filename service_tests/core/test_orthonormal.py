"""Orthonormal columns and inverse roots against those of LAPACK, for matrices easy and hard."""

import numpy as np
import pytest

from app.core.panels import inverse_root, orthonormal
from service_tests.cases import each, with_nightly


def by_lapack(columns: np.ndarray) -> np.ndarray:
    """Q where R has a positive diagonal."""
    q, r = np.linalg.qr(columns)
    return np.asarray(q * np.sign(np.diagonal(r, axis1=1, axis2=2))[:, None, :])


@pytest.mark.parametrize(
    ("k", "d", "n"),
    with_nightly(
        [(1, 1, 1), (40, 3, 3), (5, 20, 20), (3, 64, 64), (2, 65, 65), (2, 150, 131), (1, 9, 2)], [(1, 700, 700)]
    ),
)
def test_columns_are_those_of_the_decomposition_and_orthonormal_to_rounding(k: int, d: int, n: int) -> None:
    columns = np.random.default_rng(d).standard_normal((k, d, n))
    before = columns.copy()
    q = orthonormal(columns)
    np.testing.assert_array_equal(columns, before)
    np.testing.assert_allclose(q.swapaxes(1, 2) @ q, np.broadcast_to(np.eye(n), (k, n, n)), rtol=0, atol=3e-15)
    # A column is as exact as those before it are independent.
    conditions = [np.linalg.cond(one) for one in columns]
    assert (np.abs(q - by_lapack(columns)).max(axis=(1, 2)) < 1e-14 * np.array(conditions) * d**0.5).all()


@each("condition", [1e4, 1e10, 1e13])
@each("n", [40, 90])
def test_columns_that_nearly_depend_on_each_other_become_orthonormal_too(n: int, condition: float) -> None:
    rng = np.random.default_rng(2)
    left, right = (np.linalg.qr(rng.standard_normal((n, n)))[0] for _ in range(2))
    columns = (left * np.geomspace(1, 1 / condition, n)) @ right
    q = orthonormal(columns[None])[0]
    np.testing.assert_allclose(q.T @ q, np.eye(n), rtol=0, atol=5e-15)
    # They span the columns in turn: R is upper triangular.
    assert np.abs(np.tril(q.T @ columns, -1)).max() < 1e-14
    assert (np.diag(q.T @ columns) > 0).all()


@each("condition", [1.0, 1 + 1e-9, 3.0, 1e3, 1e8])
@each(("d", "size"), [(1, 1.0), (3, 1e-200), (20, 1.0), (20, 1e200), (100, 7.0)])
def test_the_inverse_root_is_symmetric_and_makes_the_identity(d: int, size: float, condition: float) -> None:
    vectors = np.linalg.qr(np.random.default_rng(d).standard_normal((d, d)))[0]
    values = np.geomspace(1, 1 / condition, d)
    matrix = (vectors * values) @ vectors.T
    root = inverse_root(size * (matrix + matrix.T) / 2)
    assert root is not None
    root *= np.sqrt(size)
    wanted = (vectors / np.sqrt(values)) @ vectors.T
    rounding = 1e-15 * condition * np.abs(wanted).max() * np.sqrt(d)
    np.testing.assert_allclose(root, wanted, rtol=0, atol=rounding)
    np.testing.assert_allclose(root, root.T, rtol=0, atol=rounding)


@pytest.mark.parametrize("d", [2, 5, 40])
def test_a_matrix_without_inverse_has_no_root(d: int) -> None:
    rows = np.random.default_rng(d).standard_normal((d - 1, d))
    assert inverse_root(rows.T @ rows) is None
    assert inverse_root(np.zeros((d, d))) is None
    assert inverse_root(-np.eye(d)) is None
    enough = np.concatenate([rows, np.ones((1, d))])
    assert inverse_root(enough.T @ enough) is not None
