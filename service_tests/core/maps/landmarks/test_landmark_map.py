"""Landmark maps against their definition, scikit-learn's Nystroem, and the ends of the dtype."""

import math
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.kernel_approximation import Nystroem

from app.core.building import Building
from app.core.errors import InvalidInput
from app.core.maps import FeatureMap, make_map
from app.core.progress import OutOfTime, TimedProgress
from service_tests.core.combinations import rows, variants
from service_tests.core.specs import KERNELS, spec

D = 4
CLOSE = {"float32": 1e-6, "float64": 1e-10}
every_dtype = pytest.mark.parametrize("dtype", ["float32", "float64"])
every_kernel = pytest.mark.parametrize(
    "kernel", [fields for model in KERNELS for fields in variants(model, D)], ids=lambda fields: fields["kind"]
)


def data(n: int, seed: int, dtype: str = "float64") -> Any:
    """Rows that every kernel takes: none is below 0."""
    return np.abs(rows(n, seed, D, dtype))


def learned(n: int = 150, s: int = 20, **members: Any) -> FeatureMap:
    sampler = {"kind": "landmarks", "dataset": "rows", "selection": "uniform"} | members.pop("sampler", {})
    of = spec(input_dim=D, s=s, sampler=sampler, **members)
    return make_map(of, Building(rows=lambda *_: data(n, 5)))


def uploaded(landmarks: Any, **members: Any) -> FeatureMap:
    sampler = {"kind": "uploaded_landmarks", "landmarks": landmarks.tolist()}
    return make_map(spec(input_dim=landmarks.shape[1], s=None, sampler=sampler, **members))


@every_dtype
@every_kernel
def test_features_are_those_of_the_definition(kernel: dict[str, Any], dtype: str) -> None:
    landmarks, x = data(12, 1, dtype), data(40, 2, dtype)
    found = uploaded(landmarks, kernel=kernel, dtype=dtype)
    of = found.exact_gram(landmarks, landmarks)
    values, vectors = np.linalg.eigh(of)
    kept = values > (1e-6 if dtype == "float32" else 1e-12) * values[-1]
    assert found.n_output == kept.sum()
    assert found.n_frequencies == 12
    # Up to the signs of eigenvectors the features are k(x, L) V Λ^(−1/2), the largest eigenvalue first.
    wanted = (found.exact_gram(x, landmarks) @ (vectors[:, kept] / np.sqrt(values[kept])))[:, ::-1]
    features = found.transform(x)
    assert features.dtype == dtype
    size = np.sqrt(found.exact_pairs(x, x).max())
    np.testing.assert_allclose(np.abs(features), np.abs(wanted), rtol=0, atol=100 * CLOSE[dtype] * size)
    np.testing.assert_allclose(found.gram(x, x), wanted @ wanted.T, rtol=0, atol=20 * CLOSE[dtype] * size**2)


@every_dtype
def test_scikit_learn_makes_the_same_of_the_same_landmarks(dtype: str) -> None:
    landmarks, x = data(15, 1, dtype), data(50, 2, dtype)
    found = uploaded(landmarks, kernel={"kind": "gaussian", "length_scale": 0.7}, dtype=dtype)
    theirs = Nystroem(gamma=1 / (2 * 0.7**2), n_components=15).fit(landmarks)
    features = theirs.transform(x)
    assert found.n_output == 15
    np.testing.assert_allclose(found.gram(x, x), features @ features.T, rtol=0, atol=10 * CLOSE[dtype])


@every_kernel
def test_normalised_rows_have_unit_norm_and_approximate_the_normalised_kernel(kernel: dict[str, Any]) -> None:
    x = data(30, 2)
    found = learned(kernel=kernel, dtype="float64", normalize=True)
    plain = learned(kernel=kernel, dtype="float64")
    np.testing.assert_allclose(np.linalg.norm(found.transform(x), axis=1), 1, rtol=1e-12)
    norms = np.sqrt(plain.exact_pairs(x, x))
    np.testing.assert_allclose(found.exact_gram(x, x), plain.exact_gram(x, x) / np.outer(norms, norms), rtol=1e-12)
    np.testing.assert_allclose(found.exact_pairs(x, x[::-1]), np.diag(found.exact_gram(x, x[::-1])), rtol=1e-9)
    np.testing.assert_allclose(np.diag(found.gram(x, x)), 1, rtol=1e-12)


@every_dtype
def test_unit_rows_are_right_far_from_landmarks_that_are_far_from_each_other(dtype: str) -> None:
    """Their norms before are a thousandth of those of other rows, of which rounding would be a large part."""
    rng, near = np.random.default_rng(0), np.array([500.0, 0, 0, 0])
    around = rng.normal(size=(10, D))
    landmarks = np.concatenate([around + near, around - near]).astype(dtype)
    directions = rng.normal(size=(40, D))
    x = (near + 6 * directions / np.linalg.norm(directions, axis=1, keepdims=True)).astype(dtype)
    found = uploaded(landmarks, kernel={"kind": "gaussian", "length_scale": 1.0}, dtype=dtype, normalize=True)
    wide, wide_x = landmarks.astype(np.float64), x.astype(np.float64)
    of_landmarks, of_rows = (np.exp(-((rows[:, None] - wide) ** 2).sum(axis=2) / 2) for rows in (wide, wide_x))
    values, vectors = np.linalg.eigh(of_landmarks)
    wanted = of_rows @ (vectors / np.sqrt(values))
    norms = np.linalg.norm(wanted, axis=1, keepdims=True)
    assert np.median(norms) < 0.1
    wanted /= norms
    close = 2e-5 if dtype == "float32" else 1e-11
    np.testing.assert_allclose(found.gram(x, x), wanted @ wanted.T, rtol=0, atol=close)


def test_features_of_rows_so_far_that_their_squares_underflow_have_unit_norm() -> None:
    """Kernels with the landmarks are e^(-r²/2): 1e-98 at 21 length scales, 1e-200 at 30, and subnormal from 37.6 on."""
    found = uploaded(np.eye(3), kernel={"kind": "gaussian", "length_scale": 1.0}, dtype="float64", normalize=True)
    x = np.array([[far, 0.3, -0.2] for far in (21.0, 26.5, 27.0, 30.0, 36.0)])
    features = found.transform(x)
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1, rtol=1e-12)
    kernels = np.exp(-((x[:, None] - np.eye(3)) ** 2).sum(axis=2) / 2 + x[:, :1] ** 2 / 2)
    values, vectors = np.linalg.eigh(np.exp(-((np.eye(3)[:, None] - np.eye(3)) ** 2).sum(axis=2) / 2))
    wanted = kernels @ (vectors / np.sqrt(values))
    wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
    np.testing.assert_allclose(features @ features.T, wanted @ wanted.T, rtol=1e-9)


@pytest.mark.parametrize(
    ("dtype", "sizes"), [("float32", [1, 1e8, 1.5e12, 1e-10]), ("float64", [1, 1e40, 1e52, 1e60, 4e101, 1e-90])]
)
def test_features_whose_norms_or_squares_leave_the_dtype_have_unit_norm(dtype: str, sizes: list[float]) -> None:
    """Kernels with the landmarks are cubes of single entries; the largest is near the end of the dtype."""
    kernel = {"kind": "polynomial", "degree": 3, "gamma": 1.0, "coef0": 0.0}
    found = uploaded(np.eye(3), kernel=kernel, dtype=dtype, normalize=True)
    x = np.array([[4.0, 4.1, 4.2]])
    wanted = x**3 / np.linalg.norm(x**3)
    features = found.transform((np.array(sizes)[:, None] * x).astype(dtype)).astype(np.float64)
    np.testing.assert_allclose(np.abs(features @ found.transform(x).T), 1, rtol=1e-6)
    np.testing.assert_allclose(np.sort(np.abs(features)), np.sort(wanted).repeat(len(sizes), 0), rtol=1e-5)


@pytest.mark.parametrize("zeros", [0.0, 1e-200])
def test_a_row_without_a_kernel_of_its_own_has_normalised_kernel_0(zeros: float) -> None:
    x = data(5, 2)
    x[2] = zeros
    found = learned(kernel={"kind": "polynomial", "degree": 3, "coef0": 0.0}, dtype="float64", normalize=True)
    for gram in (found.exact_gram(x, x), found.gram(x, x)):
        np.testing.assert_allclose(np.diag(gram), [1, 1, 0, 1, 1], atol=1e-12)
        assert (np.abs(gram[2]) < 1e-100).all()
    np.testing.assert_allclose(found.exact_pairs(x, x), [1, 1, 0, 1, 1], atol=1e-12)


@every_dtype
def test_features_and_products_beyond_the_dtype_are_refused_and_not_infinite(dtype: str) -> None:
    kernel, tiny = {"kind": "polynomial", "degree": 2, "gamma": 1.0, "coef0": 0.0}, float(np.finfo(dtype).tiny)
    found = uploaded(np.array([[tiny**0.15]]), kernel=kernel, dtype=dtype)
    far, farther = (np.array([[tiny**-power]], dtype) for power in (0.27, 0.6))
    assert np.isfinite(found.transform(far)).all()
    with pytest.raises(InvalidInput, match=f"product of features leaves the range of {dtype}; smaller rows work"):
        found.gram(far, far)
    with pytest.raises(InvalidInput, match=f"a feature leaves the range of {dtype}; smaller rows work"):
        found.transform(farther)


@every_dtype
def test_sparse_landmarks_stay_sparse_and_give_the_same(dtype: str) -> None:
    rng = np.random.default_rng(4)
    matrix = (rng.random((9, 300)) * (rng.random((9, 300)) < 0.05)).astype(dtype)
    matrix[np.arange(9), np.arange(9)] = 1
    parts = [{"indices": np.flatnonzero(row).tolist(), "values": row[row != 0].tolist()} for row in matrix]
    members: dict[str, Any] = {"input_dim": 300, "s": None, "kernel": {"kind": "gmm"}, "dtype": dtype}
    sparse = make_map(spec(sampler={"kind": "uploaded_landmarks", "landmarks": parts}, **members))
    dense = uploaded(matrix, kernel={"kind": "gmm"}, dtype=dtype)
    assert set(sparse.arrays) == {"landmark_values", "landmark_columns", "landmark_ends", "root"}
    assert set(dense.arrays) == {"landmarks", "root"}
    x = np.abs(rng.normal(size=(5, 300))).astype(dtype)
    for given in (x, csr_array(x)):
        np.testing.assert_allclose(sparse.gram(given, given), dense.gram(x, x), rtol=0, atol=CLOSE[dtype])


@every_kernel
@pytest.mark.parametrize("normalize", [False, True])
def test_no_feature_is_larger_than_is_said(kernel: dict[str, Any], normalize: bool) -> None:
    made = learned(kernel=kernel, normalize=normalize)
    assert np.abs(made.transform(data(200, 9))).max() <= made.largest_feature * (1 + 1e-6)
    assert made.largest_feature < np.inf or not normalize


@pytest.mark.parametrize(("s", "is_for_a_job"), [(3, False), (4, True)])
@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_landmarks_that_may_have_many_entries_are_for_a_job(
    monkeypatch: pytest.MonkeyPatch, form: Any, s: int, is_for_a_job: bool
) -> None:
    """Each takes up to 160 bytes while the map is built; one row of 6,800,000 took 1.1 GB of a request."""
    monkeypatch.setattr("app.core.maps.landmarks.landmark_map._MOST_ENTRIES_IN_REQUEST", 4 * D - 1)
    building = Building(progress=TimedProgress(math.inf), rows=lambda *_: form(data(30, 1)))
    made = spec(input_dim=D, sampler={"kind": "landmarks", "dataset": "rows"}, s=s)
    with pytest.raises(OutOfTime) if is_for_a_job else nullcontext():
        make_map(made, building)
