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


@pytest.mark.parametrize("scale", [1e-300, 1e-3, 7.0, 1e300])
def test_the_length_of_a_row_changes_nothing(scale: float) -> None:
    x, y, feature_map = rows(7, 1), rows(5, 2), correlation()
    for posted in (x * scale, csr(x * scale)):
        np.testing.assert_allclose(feature_map.transform(posted), feature_map.transform(x), rtol=0, atol=1e-13)
        np.testing.assert_allclose(feature_map.gram(posted, y), feature_map.gram(x, y), rtol=0, atol=1e-13)
        np.testing.assert_allclose(feature_map.exact_gram(posted, y), feature_map.exact_gram(x, y), rtol=1e-12)


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
