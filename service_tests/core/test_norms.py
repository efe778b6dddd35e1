"""Unit rows: of every size of entries, and the same bits for a row alone, in a batch, dense and sparse."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from app.core.errors import InvalidInput
from app.core.norms import unit_rows
from service_tests.cases import each

every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def rows(d: int, dtype: Any) -> Any:
    rng = np.random.default_rng(d)
    found = rng.normal(size=(30, d)) * (rng.random((30, d)) < 0.5) * 10.0 ** rng.integers(-30, 30, (30, 1))
    found[:, 0] += 1e-30
    return found.astype(dtype)


@every_dtype
@each("d", [1, 7, 16, 53, 300])
def test_rows_have_unit_norm_and_their_direction(d: int, dtype: Any) -> None:
    given = rows(d, dtype)
    found: Any = unit_rows(given)
    exact = given / np.sqrt(np.square(given.astype(np.longdouble)).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(found, exact.astype(np.float64), rtol=4 * np.finfo(dtype).eps, atol=1e-40)
    assert found.dtype == dtype


@every_dtype
@each("d", [1, 7, 16, 53, 300])
def test_a_row_has_the_same_bits_alone_in_a_batch_and_sparse(d: int, dtype: Any) -> None:
    given = rows(d, dtype)
    wanted = unit_rows(given)
    for start, n in ((0, 1), (29, 1), (3, 2), (11, 17)):
        np.testing.assert_array_equal(unit_rows(given[start : start + n]), wanted[start : start + n])
    sparse = csr_array(given)
    found: Any = unit_rows(sparse)
    np.testing.assert_array_equal(found.toarray(), wanted)
    assert (sparse.toarray() == given).all()


@pytest.mark.parametrize("made", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_a_row_without_direction_is_named(made: Any) -> None:
    with pytest.raises(InvalidInput, match="row 2 is all zero") as caught:
        unit_rows(made(np.array([[1.0], [-2.0], [0.0]])), "/x")
    assert caught.value.pointer == "/x/2"
