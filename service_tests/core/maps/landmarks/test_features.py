"""Features by landmarks against the exact kernel, and what no bit of a row may depend on."""

import json
from typing import Any
from unittest.mock import Mock, patch

import numpy as np
import pytest
from pydantic import TypeAdapter
from scipy.sparse import csr_array

from app.core.errors import InvalidInput
from app.core.kernels import Kernel
from app.core.kernels.base import AnyKernel
from app.core.maps.landmarks.features import LandmarkFeatures, landmark_block
from app.core.maps.landmarks.landmark_map import root_of
from app.core.progress import Abandoned, no_pause
from service_tests.cases import each
from service_tests.core.combinations import variants
from service_tests.core.specs import KERNELS

D = 4
MORE = [
    {"kind": "matern", "length_scale": 1.2, "nu": nu} for nu in (0.5, 1.5, 3.5, 0.7, 4.5)
] + [
    {"kind": "gmm", "p": 2.5},
    {"kind": "gmm", "center": [0.5, 0.1, 0.2, 0.3]},
]  # fmt: skip
NARROW = [{"kind": "correlation_rbf", "gamma": 60.0}, {"kind": "gaussian", "length_scale": 0.05}]
FIELDS = [fields for model in KERNELS for fields in variants(model, D)] + MORE + NARROW
every_dtype = pytest.mark.parametrize("dtype", ["float32", "float64"])
every_kernel = pytest.mark.parametrize(
    "fields",
    FIELDS,
    ids=lambda fields: "-".join(str(value) for value in fields.values() if not isinstance(value, list)),
)
GAUSSIAN = {"kind": "gaussian", "length_scale": [1.5, 0.5, 2.0, 1.0]}
MATERN = {"kind": "matern", "length_scale": 1.2, "nu": 0.5}


def kernel_of(fields: dict[str, Any]) -> AnyKernel:
    found: AnyKernel = TypeAdapter(Kernel).validate_json(json.dumps(fields))
    return found


def data(n: int, seed: int, dtype: str, d: int = D, share: float = 1.0) -> Any:
    """Rows that every kernel takes: none is below 0, and none is all 0."""
    rng = np.random.default_rng(seed)
    rows = np.abs(rng.normal(size=(n, d))) * (rng.random((n, d)) < share)
    rows[:, 0] += 0.1
    return rows.astype(dtype)


def opened(kernel: AnyKernel, landmarks: Any, threads: int = 1) -> tuple[LandmarkFeatures, Any]:
    """The features by landmarks, and the root, in float64."""
    root = root_of(kernel.exact(landmarks, landmarks), landmarks.dtype, "")
    return LandmarkFeatures(kernel, landmarks, root, threads), root.astype(np.float64)


@every_dtype
@every_kernel
@each("of_landmarks", [np.asarray, csr_array])
def test_features_are_exact_kernels_times_the_root(fields: dict[str, Any], of_landmarks: Any, dtype: str) -> None:
    kernel = kernel_of(fields)
    landmarks, x = (kernel.prepare(data(n, n, dtype, share=0.7)) for n in (30, 400))
    features, root = opened(kernel, of_landmarks(landmarks))
    exact = kernel.exact(x, landmarks)
    # Kernels err by some roundings of the largest there is, and the root says how much that is of a feature. Where rows
    # are long beside the length scale, products may lose as much as is lost by other means.
    close = {"float32": 1e-6, "float64": 1e-12}[dtype] if fields in NARROW else float(8 * np.finfo(dtype).eps)
    most = close * (kernel.pairs(x, x).max() * np.abs(root).sum(axis=0) + np.abs(exact @ root))
    found = features.of(x, no_pause)
    assert found.dtype == dtype
    assert (np.abs(found - exact @ root) <= most + 1e-15).all()
    assert (features.of(csr_array(x), no_pause) == found).all()


@every_dtype
@pytest.mark.parametrize("kind", ["gaussian", "matern", "laplacian"])
@pytest.mark.parametrize("d", [4, 37])
def test_no_bit_of_a_row_depends_on_its_batch_the_threads_or_its_form(kind: str, d: int, dtype: str) -> None:
    scales = {"gaussian": np.linspace(1, 3, d).tolist()}.get(kind, 3.0)
    kernel = kernel_of({"kind": kind, "length_scale": scales} | ({"nu": 0.5} if kind == "matern" else {}))
    landmarks, x = data(70, 1, dtype, d, share=0.6), data(2000, 2, dtype, d, share=0.6)
    x[5:50] = landmarks[:45]  # some are in doubt
    features, root = opened(kernel, landmarks)
    wanted = features.of(x, no_pause)
    for n, start in ((1, 0), (2, 3), (7, 5), (13, 1), (400, 190), (1000, 999)):
        for form in (np.asarray, csr_array):
            assert (features.of(form(x[start : start + n]), no_pause) == wanted[start : start + n]).all()
    of_sparse = LandmarkFeatures(kernel, csr_array(landmarks), root.astype(dtype), 1)
    backwards = csr_array(x[::-1, ::-1])
    backwards.indices = d - 1 - backwards.indices
    assert (of_sparse.of(x, no_pause) == of_sparse.of(backwards, no_pause)[::-1]).all()
    assert (features.of(backwards, no_pause)[::-1] == wanted).all()
    shared = LandmarkFeatures(kernel, landmarks, root.astype(dtype), 3)
    assert (shared.of(np.tile(x, (10, 1)), no_pause) == np.tile(wanted, (10, 1))).all()


@every_dtype
@each("fields", [GAUSSIAN, MATERN, {"kind": "correlation_rbf", "gamma": 500.0}])
@each("form", [np.asarray, csr_array])
def test_equal_rows_have_the_kernel_of_a_row_with_itself(fields: dict[str, Any], form: Any, dtype: str) -> None:
    kernel, landmarks = kernel_of(fields), data(20, 3, dtype)
    landmarks = kernel.prepare(landmarks * 7)
    plain = LandmarkFeatures(kernel, form(landmarks), np.eye(20, dtype=dtype), 1)
    assert (np.diag(plain.of(landmarks, no_pause)) == 1).all()


@each("form", [np.asarray, csr_array])
def test_a_tiny_length_scale_of_a_column_of_zeros_changes_nothing(form: Any) -> None:
    """Its reciprocal is infinite."""
    kernel, landmarks = kernel_of(GAUSSIAN | {"length_scale": [5e-309, 1.0, 1.0, 1.0]}), data(20, 3, "float64")
    landmarks[:, 0] = 0
    plain = LandmarkFeatures(kernel, form(landmarks), np.eye(20), 1)
    wanted = kernel_of(GAUSSIAN | {"length_scale": 1.0}).exact(landmarks, landmarks)
    np.testing.assert_allclose(plain.of(landmarks, no_pause), wanted, rtol=1e-12)


@every_dtype
@each("fields", [GAUSSIAN, MATERN])
@each("places", [[1e4], [-1e4, 1e4], [0.0, 1e18]])
def test_far_from_the_origin_nothing_is_lost(fields: dict[str, Any], places: Any, dtype: str) -> None:
    """Distances of some units between rows 1e4 away, where a float32 has a thousandth."""
    kernel = kernel_of(fields)
    landmarks, x = (np.concatenate([data(n, n, dtype) + np.array(at, dtype) for at in places]) for n in (30, 50))
    plain = LandmarkFeatures(kernel, landmarks, np.eye(len(landmarks), dtype=dtype), 1)
    found, exact = plain.of(x, no_pause), kernel.exact(x, landmarks)
    # The exact kernel divides rows by the length scale before it takes differences, and so rounds them in float64.
    np.testing.assert_allclose(found, exact, rtol=0, atol=float(4 * np.finfo(dtype).eps) + 1e-11)
    assert 0.1 < exact.max() <= 1
    assert (plain.of(csr_array(x), no_pause) == found).all()


@every_dtype
@each("fields", [GAUSSIAN, MATERN, {"kind": "rational_quadratic", "length_scale": 1.2, "alpha": 0.01}])
@each("of_landmarks", [np.asarray, csr_array])
def test_kernels_of_rows_that_are_very_far_away_are_their_limits(fields: Any, of_landmarks: Any, dtype: str) -> None:
    """Squares of their distances leave the range of float32."""
    kernel, landmarks = kernel_of(fields), data(9, 1, dtype)
    x = data(20, 2, dtype) + np.array([[0.0], [1e30]] * 10, dtype)
    plain = LandmarkFeatures(kernel, of_landmarks(landmarks), np.eye(9, dtype=dtype), 1)
    found, exact = plain.of(x, no_pause), kernel.exact(x, landmarks)
    np.testing.assert_allclose(found, exact, rtol=1e-6, atol=1e-6)
    assert (exact[1::2] == 0).all() or (exact[1::2] > 0.1).all()
    assert (plain.of(csr_array(x), no_pause) == found).all()


@each(("dtype", "scale"), [("float64", 1.0), ("float64", 1e-150), ("float32", 1e-150)])
@each("of_landmarks", [np.asarray, csr_array])
def test_rational_quadratic_kernels_are_right_where_squares_divided_by_alpha_overflow(
    of_landmarks: Any, dtype: str, scale: float
) -> None:
    """The squares themselves are up to 1e307; the kernel of distance r is (1 + r²/(2α))^(−α)."""
    alpha, far = 1e-3, np.array([1e150, 5e152, 1e153, 4e153])
    kernel, landmarks = kernel_of({"kind": "rational_quadratic", "length_scale": scale, "alpha": alpha}), np.eye(3)
    x = (far[:, None] * [[0.6, 0.8, 0.0]] * scale).astype(dtype)
    plain = LandmarkFeatures(kernel, of_landmarks(landmarks.astype(dtype)), np.eye(3, dtype=dtype), 1)
    distances = np.linalg.norm(x[:, None].astype(np.float64) - landmarks, axis=2) / scale
    wanted = np.exp(-alpha * (2 * np.log(distances) - np.log(2 * alpha)))
    np.testing.assert_allclose(plain.of(x, no_pause), wanted, rtol=1e-6)
    assert 0.4 < wanted.min() < wanted.max() < 0.6


def test_only_rows_that_may_be_refused_are_computed_when_they_are_checked() -> None:
    """A rational quadratic kernel of squares that leave the range of float64 is refused; others have limits."""
    landmarks, identity = data(9, 1, "float64"), np.eye(9)
    x, pause = data(20, 2, "float64") * 1e160, Mock()
    for fields in (GAUSSIAN | {"length_scale": 1e-299}, MATERN):
        features = LandmarkFeatures(kernel_of(fields), landmarks, identity, 1)
        with patch.object(features, "of", side_effect=AssertionError):
            features.check(x, pause)
        assert (features.of(x, no_pause) == 0).all()
    far = LandmarkFeatures(
        kernel_of({"kind": "rational_quadratic", "length_scale": 1.2, "alpha": 1}), landmarks, identity, 1
    )
    far.check(x / 1e20, pause)
    assert not pause.called
    with pytest.raises(InvalidInput, match="too many length scales away"):
        far.check(x, pause)
    pause.side_effect = Abandoned
    with pytest.raises(Abandoned):
        far.check(np.full((150_000, 4), 5e153), pause)


def test_rows_that_are_made_dense_cost_as_much() -> None:
    """Of one entry among a thousand; those that are compared in sparse form cost the same however many columns."""
    rows = csr_array(np.eye(3, 1000, dtype=np.float32))
    for of_landmarks, fields, is_dense in (
        (np.asarray, GAUSSIAN | {"length_scale": 1.0}, True),
        (csr_array, {"kind": "laplacian", "length_scale": 1.0}, True),
        (csr_array, GAUSSIAN | {"length_scale": 1.0}, False),
    ):
        landmarks = of_landmarks(np.eye(2, 1000, dtype=np.float32))
        cost = LandmarkFeatures(kernel_of(fields), landmarks, np.eye(2, dtype=np.float32), 1).operations(rows)
        assert (cost > 300 * 3 * 1000) == is_dense


def test_work_for_the_landmarks_counts_as_often_as_it_is_done() -> None:
    """Dense ones are made ready for each block of rows, and rows for each part of the landmarks."""
    d, identity = 600_000, np.eye(6, dtype=np.float32)
    kernel = kernel_of({"kind": "gmm", "center": [1.0] * d})
    features = LandmarkFeatures(kernel, csr_array(np.eye(6, d, dtype=np.float32)), identity, 1)
    one, ten = (features.operations(csr_array(np.eye(n, d, dtype=np.float32))) for n in (1, 10))
    assert ten == pytest.approx(10 * one, rel=0.01)
    assert one > 200 * d * (6 + 6)  # powers


def test_short_rows_of_many_columns_are_compared_many_at_a_time() -> None:
    """A step for each row would take a hundred times as long as its comparison."""
    d = 1 << 22
    landmarks, rows = (csr_array((np.ones(n, np.float32), (range(n), range(n))), shape=(n, d)) for n in (2, 100))
    for fields in (GAUSSIAN | {"length_scale": 1.0}, {"kind": "gmm"}):
        features = LandmarkFeatures(kernel_of(fields), landmarks, np.eye(2, dtype=np.float32), 1)
        with patch.object(features._blocks, "write", wraps=features._blocks.write) as write:
            features.of(rows, no_pause)
        assert write.call_count <= 3


def test_columns_in_no_subset_cost_nothing() -> None:
    d = 1 << 22
    rows = csr_array(
        (np.ones(600, np.float32), (np.repeat(range(200), 3), np.tile([5, 70, d - 1], 200))), shape=(200, d)
    )
    kernel = kernel_of({"kind": "anova", "length_scale": 1.0, "subsets": [[0, 5], [d - 1, 9]]})
    features = LandmarkFeatures(kernel, rows[:7], np.eye(7, dtype=np.float32), 1)
    assert features.operations(rows) < 1e7
    np.testing.assert_array_equal(features.of(rows, no_pause), np.full((200, 7), 2))


def test_comparing_many_landmarks_pauses() -> None:
    pauses: list[None] = []
    landmark_block(
        kernel_of({"kind": "laplacian", "length_scale": 1.0}), data(200, 1, "float64"), lambda: pauses.append(None)
    )
    assert pauses
