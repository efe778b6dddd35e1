"""What a map does to a row first: the order of it, sparse rows, what is refused; and numbers taken from a dataset."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn import preprocessing

from app.core.errors import InvalidInput
from app.core.input import Fit, Input, fitted
from app.core.spec import MapSpec
from service_tests.cases import each

RNG = np.random.default_rng(7)
CENTER, SCALE = (1.0, -2.0, 0.1, 1e9), (3.0, 0.5, 7.0, 1e3)
SCALERS: dict[Fit, tuple[Any, str | None, str]] = {
    Fit.standardize: (preprocessing.StandardScaler, "mean_", "scale_"),
    Fit.min_max: (preprocessing.MinMaxScaler, "data_min_", "data_range_"),
    Fit.robust: (preprocessing.RobustScaler, "center_", "scale_"),
    Fit.max_abs: (preprocessing.MaxAbsScaler, None, "scale_"),
}


def refused(made: Input, rows: Any) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        made.applied(rows, "/x")
    return caught.value


def spread_rows(n: int = 501) -> Any:
    """Rows of columns of many sizes, one far from 0, one of whole numbers, and two that are constant."""
    columns = [RNG.normal(size=n), 1e9 * RNG.random(n), 1.7e9 + 100 * RNG.random(n), 1e-20 * RNG.standard_cauchy(n)]
    return np.column_stack([*columns, RNG.integers(-9, 9, n), np.full(n, 0.1), np.zeros(n)])


def test_what_is_missing_is_filled_in_before_rows_are_shifted_scaled_and_brought_to_unit_length() -> None:
    rows = RNG.normal(size=(200, 4)) * [1, 1, 1, 1e9]
    rows[RNG.random(rows.shape) < 0.2] = np.nan
    filled = np.where(np.isnan(rows), 5.0, rows)
    wanted = (filled - CENTER) / SCALE
    made = Input(center=CENTER, scale=SCALE, missing=5.0)
    np.testing.assert_array_equal(made.applied(rows, "/x"), wanted)
    of_unit_norm: Any = Input(center=CENTER, scale=SCALE, missing=5.0, unit_norm=True).applied(rows, "/x")
    np.testing.assert_allclose(of_unit_norm, wanted / np.linalg.norm(wanted, axis=1, keepdims=True), rtol=1e-14)


def test_rows_keep_what_the_client_sent() -> None:
    rows = np.full((3, 4), np.nan)
    Input(missing=0.0, scale=2.0).applied(rows, "/x")
    assert np.isnan(rows).all()
    made_sparse = sparse.csr_array(np.eye(4))
    Input(scale=2.0, unit_norm=True).applied(made_sparse, "/x")
    np.testing.assert_array_equal(made_sparse.toarray(), np.eye(4))


def test_many_rows_go_through_in_blocks_alike() -> None:
    rows = RNG.normal(size=(3000, 70))  # several blocks, the last of them short
    made = Input(center=tuple(range(70)), scale=2.0, unit_norm=True)
    whole: Any = made.applied(rows, "/x")
    for i in (0, 935, 936, 2999):
        np.testing.assert_array_equal(whole[i : i + 1], made.applied(rows[i : i + 1], "/x"))
    rows[2998, 13] = np.nan
    assert refused(made, rows).pointer == "/x/2998/13"


@pytest.mark.parametrize("unit_norm", [False, True])
@pytest.mark.parametrize("scale", [2.5, SCALE])
def test_sparse_rows_stay_sparse_with_the_bits_of_dense_ones(scale: Any, unit_norm: bool) -> None:
    rows = RNG.normal(size=(40, 4)) * (RNG.random((40, 4)) < 0.5)
    made_sparse = sparse.csr_array(rows)
    made_sparse.data[3] = np.nan
    found: Any = Input(scale=scale, unit_norm=unit_norm, missing=-1.0).applied(made_sparse, "/x")
    assert isinstance(found, sparse.csr_array)
    assert found.nnz == made_sparse.nnz  # what was left out is 0, and not missing
    dense: Any = Input(scale=scale, unit_norm=unit_norm, missing=-1.0).applied(made_sparse.toarray(), "/x")
    np.testing.assert_array_equal(found.toarray(), dense)


def test_centring_sparse_rows_is_refused_and_a_center_of_zeros_is_none() -> None:
    rows = sparse.csr_array(np.eye(4))
    assert "would make them dense" in refused(Input(center=(0.0, 0.0, 1.0, 0.0)), rows).detail
    scaled: Any = Input(center=(0.0, 0.0, 0.0, 0.0)).applied(rows, "/x")
    assert scaled.nnz == 4


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_a_bad_entry_is_named_whatever_else_is_done(form: Any) -> None:
    rows = np.ones((3, 4))
    rows[1, 2] = np.nan
    missing = refused(Input(scale=2.0), form(rows))
    assert missing.pointer == "/x/1/2"
    assert missing.detail.startswith("row 1, column 2 is missing")
    rows[2, 0] = -np.inf
    infinite = refused(Input(scale=2.0, missing=0.0), form(rows))
    assert infinite.detail == "row 2, column 0 is not finite"
    rows[2, 0] = 1e300
    far = refused(Input(scale=1e-10, missing=0.0), form(rows))
    assert far.detail == "row 2, column 0 leaves the range of float64 once it is shifted and scaled"


@pytest.mark.parametrize(
    ("members", "pointer"),
    [
        ({"center": [1.0, 2.0]}, "/input/center"),
        ({"scale": [1.0, 2.0, 3.0]}, "/input/scale"),
    ],
)
def test_lists_have_an_entry_for_each_column(members: dict[str, Any], pointer: str) -> None:
    spec = {"input_dim": 4, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "s": 8}
    with pytest.raises(InvalidInput, match="input_dim 4 wants as many, or one number") as caught:
        MapSpec.model_validate({**spec, "input": members}, strict=False)
    assert caught.value.pointer == pointer


@each("dtype", [np.float32, np.float64])
@each("fit", list(Fit))
def test_numbers_taken_from_rows_are_those_of_scikit_learn(fit: Fit, dtype: Any) -> None:
    rows = spread_rows().astype(dtype)
    found = fitted(fit, rows, missing=3.0, unit_norm=True)
    assert (found.missing, found.unit_norm) == (3.0, True)
    scaler, center, scale = SCALERS[fit]
    # A column that is tiny as a whole counts as constant there.
    some = [0, 1, 2, 4, 5, 6] if fit is not Fit.standardize else [*range(7)]
    theirs = scaler().fit(rows.astype(np.float64))
    wanted = getattr(theirs, scale).copy()
    wanted[wanted == 0] = 1
    np.testing.assert_allclose(np.array(found.scale)[some], wanted[some], rtol=1e-12)
    if center is None:
        assert found.center == 0.0
    else:
        wanted = getattr(theirs, center)
        np.testing.assert_allclose(found.center, wanted, rtol=1e-12, atol=1e-14)


def test_sparse_rows_are_fitted_without_a_center_only() -> None:
    rows = sparse.csr_array(np.array([[0, -4.0, 0], [0, 2.0, 0.5]]))
    assert fitted(Fit.max_abs, rows) == Input(scale=(1.0, 4.0, 0.5))
    for fit in (Fit.standardize, Fit.min_max, Fit.robust):
        with pytest.raises(InvalidInput, match="take max_abs") as caught:
            fitted(fit, rows)
        assert caught.value.pointer == "/input/fit"


def test_what_cannot_be_fitted_is_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match="column 1 spans 2e\\+200"):
        fitted(Fit.standardize, np.array([[0.0, -1e200], [1.0, 1e200]]))
    with pytest.raises(InvalidInput, match="up to 65536 columns"):
        fitted(Fit.max_abs, sparse.csr_array((2, 65537), dtype=np.float64))


def test_moments_are_right_far_from_zero_and_in_many_blocks() -> None:
    exact = RNG.integers(0, 1 << 20, (70_001, 3))
    rows = exact + 2.0**50  # exact in float64
    made = fitted(Fit.standardize, rows)
    wanted = exact.astype(np.longdouble)
    np.testing.assert_allclose(np.array(made.center) - 2.0**50, wanted.mean(axis=0).astype(float), atol=0.125)
    np.testing.assert_allclose(made.scale, wanted.std(axis=0).astype(float), rtol=1e-12)
