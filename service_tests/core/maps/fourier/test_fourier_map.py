"""Fourier features against a computation of their own from the frozen arrays."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from app.core.arrays import vectors
from app.core.errors import InvalidInput
from app.core.maps import FourierMap
from app.core.maps.fourier import features as features_module
from service_tests.cases import each
from service_tests.core.specs import PRODUCT_KERNELS, kind
from service_tests.core.specs import fourier as built

FORMS = ["complex", "cos_sin", "phase"]
TOLERANCE = {"float32": 2e-5, "float64": 1e-12}

every_form = pytest.mark.parametrize("form", FORMS)
normalized_or_not = pytest.mark.parametrize("normalize", [False, True], ids=["plain", "normalized"])
every_dtype = pytest.mark.parametrize("dtype", ["float32", "float64"])


def expected_features(feature_map: FourierMap, rows: NDArray[Any]) -> NDArray[Any]:
    """The definition of the three forms, in extended precision, with cosine and sine of the same frequencies."""
    arrays = {name: array.astype(np.longdouble) for name, array in feature_map.arrays.items()}
    phases = (rows.astype(np.longdouble)[:, None, :] * arrays["frequencies"][None]).sum(axis=2)
    root = np.sqrt(arrays["weights"])
    features: NDArray[Any]
    if feature_map.spec.form == "complex":
        features = root * np.exp(-1j * phases)
    elif feature_map.spec.form == "cos_sin":
        features = np.concatenate([root * np.cos(phases), root * np.sin(phases)], axis=1)
    else:
        features = np.sqrt(np.longdouble(2)) * root * np.cos(phases + arrays["offsets"])
    if feature_map.spec.normalize:
        features = features / np.sqrt(np.square(np.abs(features)).sum(axis=1, keepdims=True))
    return features


def rows_for(feature_map: FourierMap, n: int, most: float = 50.0, seed: int = 1) -> NDArray[Any]:
    """Rows in the map's dtype, whose largest phase is `most`."""
    rows = np.random.default_rng(seed).normal(size=(n, feature_map.spec.input_dim))
    rows *= most / np.abs(rows @ feature_map.arrays["frequencies"].T.astype(np.float64)).max()
    return rows.astype(feature_map.spec.numpy_dtype)


@every_dtype
@normalized_or_not
@every_form
@each("name", [kind(model) for model in PRODUCT_KERNELS])
def test_features_are_those_of_the_frozen_arrays_at_phases_up_to_fifty(
    name: str, form: str, normalize: bool, dtype: str
) -> None:
    kernel = {"kind": name, "length_scale": [0.5, 1.0, 2.0, 4.0]}
    feature_map = built(kernel=kernel, form=form, normalize=normalize, dtype=dtype, s=100)
    rows = rows_for(feature_map, 40)
    features = feature_map.transform(rows)
    assert features.dtype == np.dtype(dtype if form != "complex" else {"float32": "c8", "float64": "c16"}[dtype])
    assert features.shape == (40, 200 if form == "cos_sin" else 100)
    assert np.abs(features - expected_features(feature_map, rows)).max() < TOLERANCE[dtype]


@every_dtype
@normalized_or_not
@every_form
def test_the_gram_block_is_the_product_of_the_features(form: str, normalize: bool, dtype: str) -> None:
    feature_map = built(form=form, normalize=normalize, dtype=dtype)
    x, y = rows_for(feature_map, 9, 10, seed=1), rows_for(feature_map, 7, 10, seed=2)
    product = expected_features(feature_map, x) @ expected_features(feature_map, y).conj().T
    gram = feature_map.gram(x, y)
    assert gram.dtype == feature_map.gram_dtype
    assert np.abs(gram - product).max() < TOLERANCE[dtype]
    assert np.abs(product).max() < 0.9  # x and y differ, so that a mixed-up block would show


@normalized_or_not
@every_form
@every_dtype
def test_no_bit_of_a_row_depends_on_the_rows_beside_it(
    dtype: str, form: str, normalize: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    feature_map = built(form=form, normalize=normalize, dtype=dtype, s=150)
    rows = rows_for(feature_map, 31)
    whole = feature_map.transform(rows)
    for n, start in ((1, 0), (1, 30), (2, 5), (12, 7), (13, 0), (25, 6)):
        np.testing.assert_array_equal(feature_map.transform(rows[start : start + n]), whole[start : start + n])
    monkeypatch.setattr(features_module, "_ROWS_PER_BLOCK", 5)
    monkeypatch.setattr(features_module, "_LEAST_STEPS_PER_PART", 1)
    np.testing.assert_array_equal(feature_map.transform(rows), whole)


@every_dtype
@normalized_or_not
@every_form
def test_sparse_rows_have_the_features_of_the_dense_ones(form: str, normalize: bool, dtype: str) -> None:
    feature_map = built(input_dim=12, form=form, normalize=normalize, dtype=dtype)
    rows = rows_for(feature_map, 8, 10)
    rows[np.random.default_rng(2).random(rows.shape) < 0.7] = 0
    rows[3] = 0
    csr = vectors(sparse.csr_array(rows), 12, feature_map.spec.numpy_dtype)
    np.testing.assert_array_equal(feature_map.transform(csr), feature_map.transform(rows))
    np.testing.assert_array_equal(feature_map.gram(csr, rows), feature_map.gram(rows, rows))
    assert (feature_map.exact_gram(csr, csr) == feature_map.exact_gram(rows, rows)).all()


@every_form
@every_dtype
def test_entries_whose_phases_would_overflow_are_refused_and_the_largest_allowed_ones_are_not(
    dtype: str, form: str
) -> None:
    feature_map = built(form=form, dtype=dtype)
    norm = np.abs(feature_map.arrays["frequencies"].astype(np.float64)).sum(axis=1).max()
    allowed = float(np.finfo(dtype).max) / 4 / float(norm)
    small = np.ones((1, 4), dtype)
    for factor in (1.001, -1.001):
        large = np.array([[0, 0, allowed * factor, 0]], dtype)
        calls: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
            (feature_map.transform, (large,)),
            (feature_map.transform, (sparse.csr_array(large),)),
            (feature_map.gram, (large, small)),
            (feature_map.gram, (small, large)),
        ]
        for call, rows in calls:
            with pytest.raises(InvalidInput, match=f"phases leave {dtype} for .*; expected entries up to"):
                call(*rows)
    assert np.isfinite(feature_map.transform(np.full((1, 4), allowed * 0.999, dtype))).all()


@pytest.mark.parametrize("weight", [1e-250, 1e-160, 1e-3, 1e160, 1e250])
def test_normalised_grams_are_products_of_normalised_features_however_large_the_weights_are(weight: float) -> None:
    kernel = {"kind": "anova", "length_scale": 1.0, "subsets": [[0, 1], [2, 3]], "weights": [weight, weight / 2]}
    feature_map = built(input_dim=4, kernel=kernel, s=64, dtype="float64", form="phase", normalize=True)
    x = np.random.default_rng(5).normal(size=(3, 4))
    features = feature_map.transform(x)
    np.testing.assert_allclose(feature_map.gram(x, x), features @ features.T, rtol=1e-12)
