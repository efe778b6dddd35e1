"""The generalized min-max kernel against the explicitly transformed vectors."""

from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from app.core.arrays import vectors
from app.core.errors import InvalidInput
from app.core.kernels.gmm import GeneralizedMinMax
from service_tests.cases import each
from service_tests.core.specs import kernel, refusal

Vectors = NDArray[np.float64]

D = 6
CENTER = [0.5, -1.0, 0.0, 2.0, 0.25, -0.125]


def rows(kind: str, n: int, seed: int) -> Vectors:
    rng = np.random.default_rng(seed)
    signed = rng.normal(size=(n, D))
    if kind == "positive":
        return np.abs(signed)
    if kind == "sparse":
        signed[rng.random((n, D)) < 0.6] = 0
        signed[:, 0] = rng.normal(size=n)
    return signed


def transformed(row: Vectors, center: Any = None) -> list[Decimal]:
    """The row of 2d non-negative entries, as equation (7) writes it."""
    double = []
    for entry, middle in zip(row, np.zeros(D) if center is None else center, strict=True):
        difference = Decimal(float(entry - middle))
        double += [max(difference, Decimal(0)), max(-difference, Decimal(0))]
    return double


def min_max(u: Vectors, v: Vectors, p: float = 1.0, center: Any = None) -> float:
    """Equation (8) in sixty digits, whose exponents do not run out."""
    with localcontext() as context:
        context.prec = 60
        a, b, power = transformed(u, center), transformed(v, center), Decimal(p)
        low = sum((min(pair) ** power if min(pair) else Decimal(0)) for pair in zip(a, b, strict=True))
        high = sum((max(pair) ** power if max(pair) else Decimal(0)) for pair in zip(a, b, strict=True))
        return float(low / high)


def csr(rows: Vectors, *, explicit_zeros: bool = False) -> Any:
    """Sparse rows, on request with every second zero stored."""
    n, d = rows.shape
    stored = rows != 0
    if explicit_zeros:
        stored |= np.arange(n * d).reshape(n, d) % 2 == 0
    row, column = np.nonzero(stored)
    made = sparse.csr_array((rows[row, column], column, np.searchsorted(row, np.arange(n + 1))), shape=(n, d))
    assert (made.nnz > np.count_nonzero(rows)) == explicit_zeros
    return vectors(made, d, np.dtype(np.float64))


def gmm(**fields: Any) -> GeneralizedMinMax:
    made = kernel(kind="gmm", **fields)
    assert isinstance(made, GeneralizedMinMax)
    return made


@each("center", [None, CENTER])
@each("p", [0.5, 1.0, 2.0, 10.0])
@each("kind", ["signed", "sparse", "positive"])
def test_the_gram_block_is_the_ratio_of_sums_over_the_transformed_vectors(kind: str, p: float, center: Any) -> None:
    x, y = rows(kind, 5, 1), rows(kind, 4, 2)
    expected = [[min_max(u, v, p, center) for v in y] for u in x]
    np.testing.assert_allclose(gmm(p=p, center=center).exact(x, y), expected, rtol=1e-12, atol=1e-300)


def test_pairs_are_the_diagonal_of_the_gram_block() -> None:
    x, y = rows("signed", 6, 3), rows("signed", 6, 4)
    made = gmm(p=1.5, center=CENTER)
    assert (made.pairs(x, y) == np.diag(made.exact(x, y))).all()


def test_a_vector_agrees_wholly_with_itself_and_not_at_all_with_its_negative() -> None:
    x = rows("signed", 4, 5)
    assert (gmm().pairs(x, x) == 1).all()
    assert (gmm().pairs(x, -x) == 0).all()


@each("scale", [1e-300, 1e-3, 1e3, 1e300])
@each("p", [1.0, 3.0])
def test_one_factor_on_both_vectors_changes_nothing(p: float, scale: float) -> None:
    x, y = rows("signed", 5, 6), rows("signed", 4, 7)
    np.testing.assert_allclose(gmm(p=p).exact(x * scale, y * scale), gmm(p=p).exact(x, y), rtol=1e-11)


def test_a_factor_on_one_vector_is_the_kernel_of_the_vector_and_its_multiple() -> None:
    x = rows("signed", 3, 8)
    np.testing.assert_allclose(gmm(p=2.0).pairs(x, 3 * x), np.full(3, 1 / 9), rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_a_large_power_neither_overflows_nor_underflows(scale: float) -> None:
    rng = np.random.default_rng(9)
    x = rows("positive", 4, 9)
    y = x * (1 + 1e-3 * rng.normal(size=x.shape))
    expected = [min_max(u, v, 1000) for u, v in zip(x, y, strict=True)]
    assert all(0.05 < value < 0.999 for value in expected)
    np.testing.assert_allclose(gmm(p=1000.0).pairs(x * scale, y * scale), expected, rtol=1e-9)


def test_rows_of_very_different_size_share_almost_nothing_and_no_nan() -> None:
    x = rows("signed", 3, 10)
    assert (gmm(p=10.0).pairs(x * 1e200, x * 1e-100) == 0).all()
    np.testing.assert_allclose(gmm().pairs(x * 1e200, x * 1e-100), np.full(3, 1e-300), rtol=1e-9)


def test_a_row_of_zeros_is_empty() -> None:
    x = rows("signed", 3, 11)
    x[2] = 0
    assert gmm().empty(x).tolist() == [False, False, True]
    assert gmm().empty(x[:0]).tolist() == []


def test_a_row_equal_to_the_center_is_empty_and_a_row_of_zeros_is_not() -> None:
    x = np.array([np.zeros(D), CENTER])
    assert gmm(center=CENTER).empty(x).tolist() == [False, True]
    assert gmm(center=CENTER).pairs(x[:1], x[:1]) == 1


def test_an_entry_that_its_center_makes_infinite_is_refused() -> None:
    with pytest.raises(InvalidInput, match="leaves the range of float64"):
        gmm(center=[-1e308] * D).exact(np.full((1, D), 1e308), np.ones((1, D)))


def test_a_center_of_another_length_than_the_vectors_is_refused() -> None:
    error = refusal(kernel={"kind": "gmm", "center": [1.0, 2.0]}, sampler={"kind": "gcws"})
    assert error.pointer == "/kernel/center"
    assert error.detail == "center has 2 entries; input_dim 4 wants as many"


@each("explicit_zeros", [False, True])
@each("center", [None, CENTER])
@each("p", [0.5, 1.0, 2.0, 10.0])
def test_sparse_rows_have_the_kernel_of_dense_ones(p: float, center: Any, explicit_zeros: bool) -> None:
    x, y = rows("sparse", 6, 1), rows("sparse", 5, 2)
    made = gmm(p=p, center=center)
    a, b = csr(x, explicit_zeros=explicit_zeros), csr(y, explicit_zeros=explicit_zeros)
    assert made.stays_sparse(a) == (center is None)
    dense = made.exact(x, y)
    # The order of the sums differs, nothing else.
    for one, other in ((a, b), (a, y), (x, b)):
        np.testing.assert_allclose(made.exact(one, other), dense, rtol=1e-14)
        np.testing.assert_allclose(made.pairs(one[:5], other), np.diag(dense[:5]), rtol=1e-14)
    assert np.ptp(dense) > 0.1


@each("scale", [1e-300, 1e300])
@each("p", [1.0, 10.0, 1000.0])
def test_sparse_rows_of_any_size_too(p: float, scale: float) -> None:
    x = rows("sparse", 4, 9)
    y = x * (1 + 1e-3 * np.random.default_rng(9).normal(size=x.shape))
    made = gmm(p=p)
    np.testing.assert_allclose(made.pairs(csr(x * scale), csr(y * scale)), made.pairs(x, y), rtol=1e-9)
    np.testing.assert_allclose(gmm().pairs(csr(x * 1e200), csr(x * 1e-100)), np.full(4, 1e-300), rtol=1e-9)
    assert (made.pairs(csr(x), csr(x)) == 1).all()
    assert (made.pairs(csr(x), csr(-x)) == 0).all()


def test_sparse_rows_without_a_shared_coordinate_share_nothing_and_leave_their_neighbours_alone() -> None:
    x = np.array([[1.0, 0, -2.0, 0, 0, 0], [0, 3.0, 0, 0, 0, 1.0], [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]])
    y = np.array([[0, 1.0, 0, 0, 0, 5.0], [-1.0, 0, 2.0, 0, 0, 0], [0, 0, 0, 0, -4.0, 0]])
    expected = np.array([[0, 0, 0], [2 / 8, 0, 0], [2 / 10, 1 / 8, 0]])
    np.testing.assert_allclose(gmm().exact(csr(x), csr(y)), expected, rtol=1e-15)


def test_coordinates_past_two_to_the_31_need_no_memory_of_their_number() -> None:
    far = (1 << 31) - 1
    x, y = (
        sparse.csr_array((np.array(values), np.array([0, far]), np.array([0, 2])), shape=(1, 1 << 31))
        for values in ([1.0, -2.0], [3.0, -1.0])
    )
    assert gmm().exact(x, y).tolist() == [[2 / 5]]


@pytest.mark.parametrize("center", [None, CENTER], ids=["plain", "centered"])
def test_a_sparse_row_of_zeros_or_at_the_center_is_empty(center: Any) -> None:
    x = rows("signed", 4, 11)
    x[2] = np.zeros(D) if center is None else center
    made = gmm(center=center)
    assert made.empty(csr(x)).tolist() == [False, False, True, False]
    stored = csr(rows("signed", 4, 11))
    stored.data[3 * D :] = 0
    assert made.empty(stored).tolist() == [False, False, False, center is None]
    if center is not None:
        assert made.pairs(stored, stored).tolist() == [1, 1, 1, 1]


def test_float32_sparse_rows_are_counted_in_float64() -> None:
    x, y = rows("sparse", 5, 1).astype(np.float32), rows("sparse", 5, 2).astype(np.float32)
    a, b = (sparse.csr_array(part) for part in (x, y))
    np.testing.assert_allclose(gmm(p=2.0).exact(a, b), gmm(p=2.0).exact(x.astype(float), y.astype(float)), rtol=1e-14)


def test_empty_blocks_have_empty_kernels() -> None:
    x = rows("sparse", 3, 1)
    for none, some in ((np.empty((0, D)), x), (csr(x)[:0], csr(x))):
        assert gmm().exact(none, some).shape == (0, 3)
        assert gmm().exact(some, none).shape == (3, 0)
        assert gmm().pairs(none, none).shape == (0,)
