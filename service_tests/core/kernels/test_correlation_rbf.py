"""The Gaussian kernel of directions: free of length, and nothing for a row without a direction."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from app.core.arrays import vectors
from app.core.errors import InvalidInput
from app.core.maps import FourierMap
from service_tests.core.specs import fourier

D, GAMMA = 6, 1.7


def rows(n: int, seed: int) -> NDArray[np.float64]:
    return np.random.default_rng(seed).normal(size=(n, D))


def correlation(**members: Any) -> FourierMap:
    default = {"kernel": {"kind": "correlation_rbf", "gamma": GAMMA}, "input_dim": D, "dtype": "float64"}
    return fourier(**default | members)


def csr(matrix: NDArray[Any], dtype: str = "float64") -> Any:
    return vectors(sparse.csr_array(matrix), D, np.dtype(dtype))


@pytest.mark.parametrize("gamma", [0.1, 1.7, 30.0])
def test_the_kernel_is_the_exponential_of_the_cosine(gamma: float) -> None:
    x, y = rows(7, 1), rows(5, 2)
    exact = correlation(kernel={"kind": "correlation_rbf", "gamma": gamma}).exact_gram(x, y)
    for i in range(7):
        for j in range(5):
            cosine = (x[i] @ y[j]) / np.sqrt((x[i] @ x[i]) * (y[j] @ y[j]))
            assert exact[i, j] == pytest.approx(np.exp(-gamma * (1 - cosine)), rel=1e-13)


@pytest.mark.parametrize("form", ["complex", "cos_sin", "phase"])
def test_the_features_approximate_the_kernel(form: str) -> None:
    x, y = rows(7, 1), rows(5, 2)
    feature_map = correlation(s=20_000, form=form)
    error = np.abs(feature_map.gram(x, y) - feature_map.exact_gram(x, y)).max()
    # One standard error is at most √(1.5/20,000) = 0.0087.
    assert 1e-5 < error < 4 * np.sqrt(1.5 / 20_000)


def test_the_frequencies_have_the_root_of_gamma_for_their_deviation() -> None:
    frequencies = correlation(s=40_000).arrays["frequencies"]
    # One standard error of a deviation is √(γ/(2·40,000)), 0.35 % of it.
    assert np.abs(frequencies.std(axis=0) / np.sqrt(GAMMA) - 1).max() < 4 * np.sqrt(0.5 / 40_000)


@pytest.mark.parametrize("scale", [1e-300, 1e-3, 7.0, 1e300])
def test_the_length_of_a_row_changes_nothing(scale: float) -> None:
    x, y, feature_map = rows(7, 1), rows(5, 2), correlation()
    for posted in (x * scale, csr(x * scale)):
        np.testing.assert_allclose(feature_map.transform(posted), feature_map.transform(x), rtol=0, atol=1e-13)
        np.testing.assert_allclose(feature_map.gram(posted, y), feature_map.gram(x, y), rtol=0, atol=1e-13)
        np.testing.assert_allclose(feature_map.exact_gram(posted, y), feature_map.exact_gram(x, y), rtol=1e-12)


@pytest.mark.parametrize("entry", [3e38, 1e-30, 1e-38])
def test_huge_and_tiny_rows_of_float32_have_the_features_of_their_direction(entry: float) -> None:
    x = rows(7, 1)
    x /= np.abs(x).max(axis=1, keepdims=True)
    single, double = correlation(dtype="float32"), correlation()
    posted = vectors(x * entry, D, np.dtype(np.float32))
    for given in (posted, csr(x * entry, "float32")):
        np.testing.assert_allclose(single.transform(given), double.transform(x), rtol=0, atol=2e-6)
        np.testing.assert_allclose(single.exact_gram(given, given), double.exact_gram(x, x), rtol=2e-6)
        assert single.transform(given).dtype == np.float32


def test_a_row_of_zeros_is_refused_by_its_number() -> None:
    x, feature_map = rows(5, 1), correlation()
    zeros = x.copy()
    zeros[3] = 0
    explicit = csr(x)
    explicit.data[explicit.indptr[3] : explicit.indptr[4]] = 0
    for bad in (zeros, csr(zeros), explicit):
        for call in (feature_map.transform, lambda row: feature_map.gram(x, row), lambda row: feature_map.gram(row, x)):
            with pytest.raises(InvalidInput, match="row 3 is all zero: it has no direction"):
                call(bad)
        with pytest.raises(InvalidInput, match="row 3 is all zero"):
            feature_map.exact_gram(x, bad)


def test_rows_of_zeros_are_named_up_to_ten_where_they_stood_in_the_request() -> None:
    x, few, many, feature_map = rows(20, 1), rows(20, 1), rows(20, 1), correlation()
    few[[2, 5]] = 0
    many[3:] = 0
    for bad in (few, csr(few)):
        for pointer, call, given in (
            ("/vectors/2", feature_map.transform, (bad,)),
            ("/x/2", feature_map.gram, (bad, bad)),
            ("/y/2", feature_map.gram, (x, bad)),
            ("/x/2", feature_map.exact_gram, (bad, x)),
            ("/y/2", feature_map.exact_gram, (x, bad)),
        ):
            with pytest.raises(InvalidInput, match="row 2, 5 is all zero: it has no direction") as caught:
                call(*given)
            assert caught.value.pointer == pointer
    with pytest.raises(InvalidInput, match="row 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, … is all zero"):
        feature_map.transform(many)


def test_sparse_rows_have_the_features_of_the_dense_ones() -> None:
    x = rows(8, 3)
    x[np.random.default_rng(4).random(x.shape) < 0.6] = 0
    x[:, 0] = 1
    feature_map = correlation()
    np.testing.assert_allclose(feature_map.transform(csr(x)), feature_map.transform(x), rtol=0, atol=1e-14)
    np.testing.assert_allclose(feature_map.gram(csr(x), x), feature_map.gram(x, x), rtol=0, atol=1e-14)
    np.testing.assert_allclose(feature_map.exact_gram(csr(x), x), feature_map.exact_gram(x, x), rtol=1e-14)


def test_the_posted_rows_are_left_as_they_were() -> None:
    x = rows(8, 3)
    before, as_csr = x.copy(), csr(x)
    for posted in (x, as_csr):
        correlation().transform(posted)
        correlation().gram(posted, posted)
        correlation().exact_gram(posted, posted)
    assert (x == before).all()
    assert (as_csr.toarray() == before).all()


@pytest.mark.parametrize("form", ["complex", "cos_sin"])
def test_a_row_has_kernel_one_with_itself_and_least_with_its_negative(form: str) -> None:
    x, feature_map = rows(4, 5), correlation(form=form)
    np.testing.assert_allclose(np.diag(feature_map.gram(x, 3 * x)), 1, rtol=1e-12)
    np.testing.assert_allclose(np.diag(feature_map.exact_gram(x, -x)), np.exp(-2 * GAMMA), rtol=1e-13)


def test_no_rows_have_no_features() -> None:
    none: Any = sparse.csr_array((0, D), dtype=np.float64)
    feature_map = correlation()
    for rows_ in (np.empty((0, D)), vectors(none, D, np.dtype(np.float64))):
        assert feature_map.transform(rows_).shape == (0, 128)
        assert feature_map.gram(rows_, rows(3, 1)).shape == (0, 3)


@pytest.mark.parametrize("gamma", [5e-324, 1e-300, 1e300])
def test_a_gamma_at_the_ends_of_float64_still_has_frequencies(gamma: float) -> None:
    feature_map = correlation(kernel={"kind": "correlation_rbf", "gamma": gamma})
    deviation = feature_map.arrays["frequencies"].std()
    assert 0.8 < deviation / np.sqrt(gamma) < 1.2
