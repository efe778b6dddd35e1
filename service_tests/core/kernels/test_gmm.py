"""The generalized min-max kernel against the explicitly transformed vectors."""

from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from app.core.arrays import vectors
from app.core.kernels.gmm import GeneralizedMinMax
from service_tests.cases import each
from service_tests.core.specs import kernel, refusal, spec

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


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_a_large_power_neither_overflows_nor_underflows(scale: float) -> None:
    rng = np.random.default_rng(9)
    x = rows("positive", 4, 9)
    y = x * (1 + 1e-3 * rng.normal(size=x.shape))
    expected = [min_max(u, v, 1000) for u, v in zip(x, y, strict=True)]
    assert all(0.05 < value < 0.999 for value in expected)
    np.testing.assert_allclose(gmm(p=1000.0).pairs(x * scale, y * scale), expected, rtol=1e-9)


def test_a_row_equal_to_the_center_is_empty_and_a_row_of_zeros_is_not() -> None:
    x = np.array([np.zeros(D), CENTER])
    assert gmm(center=CENTER).empty(x).tolist() == [False, True]
    assert gmm(center=CENTER).pairs(x[:1], x[:1]) == 1


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


def test_coordinates_past_two_to_the_31_need_no_memory_of_their_number() -> None:
    far = (1 << 31) - 1
    x, y = (
        sparse.csr_array((np.array(values), np.array([0, far]), np.array([0, 2])), shape=(1, 1 << 31))
        for values in ([1.0, -2.0], [3.0, -1.0])
    )
    assert gmm().exact(x, y).tolist() == [[2 / 5]]


def test_a_sparse_block_against_a_dense_one_of_few_entries_is_not_made_dense() -> None:
    d = 1 << 20
    few = np.zeros((1, d))
    few[0, [0, d - 1]] = [1.0, -2.0]
    n = 20_000
    many = sparse.csr_array((np.full(n, -1.0), np.full(n, d - 1), np.arange(n + 1)), shape=(n, d))
    # Dense it would take 168 GB.
    assert (gmm().exact(few, many) == 1 / 3).all()
    assert (gmm().exact(many, few) == 1 / 3).all()


@each("made_by", [{}, {"input": {"scale": 2.0}}])
def test_sparse_rows_are_made_dense_at_the_gate_for_a_centre_and_their_size_is_checked(made_by: Any) -> None:
    came, sizes = sparse.csr_array(rows("sparse", 7, 1)), list[int]()
    its_spec = spec(input_dim=D, kernel={"kind": "gmm", "center": CENTER}, sampler={"kind": "gcws"}, **made_by)
    found = its_spec.gate(came, "/vectors", sizes.append)
    assert isinstance(found, np.ndarray)
    np.testing.assert_array_equal(found, came.toarray() / (2.0 if made_by else 1.0))
    assert sizes[-2:] == [found.nbytes, 64 * D]
    plain = spec(input_dim=D, kernel={"kind": "gmm"}, sampler={"kind": "gcws"}, **made_by)
    assert sparse.issparse(plain.gate(came, "/vectors", sizes.append))
    assert sizes[-1] == 64 * np.diff(came.indptr).max(), "a row is hashed as a whole, with so many bytes for an entry"


@each("form", [np.asarray, sparse.csr_array])
@each("center", [tuple(CENTER), None])
def test_powers_of_rows_count(center: tuple[float, ...] | None, form: Any) -> None:
    """A thousand logarithms and exponentials of each entry take longer than the comparison of two rows."""
    x, made = form(np.ones((1, D))), GeneralizedMinMax(kind="gmm", center=center)
    assert made.exact_operations(x, x) > 20 * made.comparison_operations(x, x) > 0
