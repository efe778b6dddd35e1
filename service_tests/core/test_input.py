"""What a map does to a row first: the order of it, sparse rows, what is refused; and numbers taken from a dataset."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn import preprocessing

from app.core.errors import InvalidInput
from app.core.input import Fit, Input, MissingOfRows, fit_input, mostly_missing
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
        made.apply(rows, "/x")
    return caught.value


def spread_rows(n: int = 501) -> Any:
    """Rows of columns of many sizes, one far from 0, one of whole numbers, and two that are constant."""
    columns = [RNG.normal(size=n), 1e9 * RNG.random(n), 1.7e9 + 100 * RNG.random(n), 1e-20 * RNG.standard_cauchy(n)]
    return np.column_stack([*columns, RNG.integers(-9, 9, n), np.full(n, 0.1), np.zeros(n)])


@each("missing", [5.0, (1.0, -2.0, 0.0, 3.0)])
@each("fill", ["before", "after"])
def test_what_is_missing_is_filled_in_before_or_after_rows_are_shifted_and_scaled(fill: Any, missing: Any) -> None:
    rows = RNG.normal(size=(200, 4)) * [1, 1, 1, 1e9]
    rows[RNG.random(rows.shape) < 0.2] = np.nan
    if fill == "before":
        wanted = (np.where(np.isnan(rows), missing, rows) - CENTER) / SCALE
    else:
        wanted = np.where(np.isnan(rows), missing, (rows - CENTER) / SCALE)
    made = Input(center=CENTER, scale=SCALE, missing=missing, fill=fill)
    np.testing.assert_array_equal(made.apply(rows, "/x"), wanted)
    of_unit_norm: Any = made.model_copy(update={"unit_norm": True}).apply(rows, "/x")
    np.testing.assert_allclose(of_unit_norm, wanted / np.linalg.norm(wanted, axis=1, keepdims=True), rtol=1e-14)


def test_a_spec_that_does_not_say_fills_in_before_where_it_is_stored_and_after_where_it_is_asked() -> None:
    stored = Input.model_validate_json('{"missing": 0.0}')
    assert stored.fill == "before"
    assert "fill" not in stored.model_dump_json()
    asked = stored.with_defaults()
    assert asked.fill == "after"
    assert asked.as_before() == stored
    for fill in ("before", "after"):
        said = Input.model_validate({"missing": 0.0, "fill": fill})
        assert said.with_defaults() == said.as_before() == said
    assert Input(center=1.0).with_defaults().fill == "before"  # which says nothing


def test_rows_keep_what_the_client_sent() -> None:
    rows = np.full((3, 4), np.nan)
    Input(missing=0.0, scale=2.0).apply(rows, "/x")
    assert np.isnan(rows).all()
    made_sparse = sparse.csr_array(np.eye(4))
    Input(scale=2.0, unit_norm=True).apply(made_sparse, "/x")
    np.testing.assert_array_equal(made_sparse.toarray(), np.eye(4))


def test_a_robust_scale_does_not_hang_on_how_far_away_the_outliers_are() -> None:
    rows = 1e-3 * RNG.normal(size=(1000, 3))
    rows[:5, 1], rows[:5, 2] = 1e20, 1e12
    known = preprocessing.RobustScaler().fit(rows)
    made = fit_input(Fit.robust, rows)
    np.testing.assert_allclose(made.scale, known.scale_, rtol=1e-12)
    np.testing.assert_allclose(made.center, known.center_, rtol=1e-12)


def test_many_rows_go_through_in_blocks_alike() -> None:
    rows = RNG.normal(size=(3000, 70))  # several blocks, the last of them short
    made = Input(center=tuple(range(70)), scale=2.0, unit_norm=True)
    whole: Any = made.apply(rows, "/x")
    for i in (0, 935, 936, 2999):
        np.testing.assert_array_equal(whole[i : i + 1], made.apply(rows[i : i + 1], "/x"))
    rows[2998, 13] = np.nan
    assert refused(made, rows).pointer == "/x/2998/13"


@pytest.mark.parametrize("unit_norm", [False, True])
@pytest.mark.parametrize("scale", [2.5, SCALE])
def test_sparse_rows_stay_sparse_with_the_bits_of_dense_ones(scale: Any, unit_norm: bool) -> None:
    rows = RNG.normal(size=(40, 4)) * (RNG.random((40, 4)) < 0.5)
    made_sparse = sparse.csr_array(rows)
    made_sparse.data[3] = np.nan
    found: Any = Input(scale=scale, unit_norm=unit_norm, missing=-1.0).apply(made_sparse, "/x")
    assert isinstance(found, sparse.csr_array)
    assert found.nnz == made_sparse.nnz  # what was left out is 0, and not missing
    dense: Any = Input(scale=scale, unit_norm=unit_norm, missing=-1.0).apply(made_sparse.toarray(), "/x")
    np.testing.assert_array_equal(found.toarray(), dense)


def test_centring_sparse_rows_is_refused_and_a_center_of_zeros_is_none() -> None:
    rows = sparse.csr_array(np.eye(4))
    assert "cannot be centred" in refused(Input(center=(0.0, 0.0, 1.0, 0.0)), rows).detail
    scaled: Any = Input(center=(0.0, 0.0, 0.0, 0.0)).apply(rows, "/x")
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
        ({"missing": [1.0, 2.0, 3.0]}, "/input/missing"),
    ],
)
def test_lists_have_an_entry_for_each_column(members: dict[str, Any], pointer: str) -> None:
    spec = {"input_dim": 4, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "s": 8}
    with pytest.raises(InvalidInput, match="input_dim 4 wants as many, or one number") as caught:
        MapSpec.model_validate({**spec, "input": members}, strict=False)
    assert caught.value.pointer == pointer


@each("missing", ["mean", "median", 2.0])
@each("fit", list(Fit))
def test_a_column_is_fitted_on_what_it_has(fit: Fit, missing: Any) -> None:
    rows = spread_rows()[:, :3]
    holes = RNG.random(rows.shape) < [0.0, 0.3, 0.9]
    rows[holes] = np.nan
    found = fit_input(fit, rows, missing)
    alone = [fit_input(fit, rows[~holes[:, [j]][:, 0]][:, [j]]) for j in range(3)]
    np.testing.assert_allclose(np.broadcast_to(found.center, 3), [np.ravel(one.center)[0] for one in alone], rtol=1e-12)
    np.testing.assert_allclose(found.scale, [np.ravel(one.scale)[0] for one in alone], rtol=1e-12)
    statistic: Any = {"mean": np.nanmean, "median": np.nanmedian}.get(missing)
    filled = np.where(holes, 2.0 if statistic is None else statistic(rows, axis=0), rows)
    seen: Any = found.apply(rows, "/x")
    np.testing.assert_allclose(seen[~holes], ((filled - found.center) / found.scale)[~holes], rtol=1e-12, atol=1e-12)
    of_gaps = np.full(seen.shape, 2.0) if statistic is None else (filled - found.center) / found.scale
    np.testing.assert_allclose(seen[holes], of_gaps[holes], rtol=1e-9, atol=1e-6)


def test_sparse_rows_are_fitted_on_what_they_have() -> None:
    rows = sparse.csr_array(np.array([[0.0, 2.0, np.nan], [-4.0, 0.0, 1.0], [0.0, np.nan, 0.0]]))
    found = fit_input(Fit.max_abs, rows, (1.0, -1.0, 0.5))
    assert found.scale == (4.0, 2.0, 1.0)
    seen: Any = found.apply(rows, "/x")
    np.testing.assert_array_equal(seen.toarray(), [[0, 1, 0.5], [-1, 0, 1], [0, -1, 0]])
    with pytest.raises(InvalidInput, match="missing mean is taken of dense rows"):
        fit_input(Fit.max_abs, rows, "mean")


def test_columns_that_are_mostly_missing_are_told_of() -> None:
    rows = np.ones((10, 8))
    rows[:6, 1:7] = np.nan
    rows[:5, 0] = np.nan
    for form in (rows, sparse.csr_array(rows)):
        (said,) = mostly_missing(form, "x")
        assert said.endswith(
            "are missing: " + ", ".join(f"column {j} in 6" for j in range(1, 6)) + ", and 1 more of 10 rows"
        )
    assert mostly_missing(rows[:, [0, 7]], "x") == ()
    rows[:, 3] = np.nan
    with pytest.raises(InvalidInput, match="column 3 has no entry that is not missing"):
        fit_input(Fit.min_max, rows)


@each("dtype", [np.float32, np.float64])
@each("fit", list(Fit))
def test_numbers_taken_from_rows_are_those_of_scikit_learn(fit: Fit, dtype: Any) -> None:
    rows = spread_rows().astype(dtype)
    found = fit_input(fit, rows, missing=3.0, unit_norm=True)
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
    assert fit_input(Fit.max_abs, rows) == Input(scale=(1.0, 4.0, 0.5))
    for kind in (Fit.standardize, Fit.min_max, Fit.robust):
        with pytest.raises(InvalidInput, match="take max_abs") as caught:
            fit_input(kind, rows)
        assert caught.value.pointer == "/input/fit"


def test_what_cannot_be_fitted_is_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match="column 1 spans 2e\\+200"):
        fit_input(Fit.standardize, np.array([[0.0, -1e200], [1.0, 1e200]]))
    wide: MissingOfRows
    for wide in ("mean", "median"):
        with pytest.raises(InvalidInput, match="column 0 spans inf"):
            fit_input(Fit.max_abs, np.array([[1.7e308], [-1.7e308]]), wide)
    assert fit_input(Fit.max_abs, np.array([[1.7e308], [-1.7e308]])).scale == (1.7e308,)
    with pytest.raises(InvalidInput, match="up to 65536 columns"):
        fit_input(Fit.max_abs, sparse.csr_array((2, 65537), dtype=np.float64))


def test_moments_are_right_far_from_zero_and_in_many_blocks() -> None:
    exact = RNG.integers(0, 1 << 20, (70_001, 3))
    rows = exact + 2.0**50  # exact in float64
    made = fit_input(Fit.standardize, rows)
    wanted = exact.astype(np.longdouble)
    np.testing.assert_allclose(np.array(made.center) - 2.0**50, wanted.mean(axis=0).astype(float), atol=0.125)
    np.testing.assert_allclose(made.scale, wanted.std(axis=0).astype(float), rtol=1e-12)
