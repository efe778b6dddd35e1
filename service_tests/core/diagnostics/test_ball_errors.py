"""Greatest errors around the rows that a map was made from."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from app.core.diagnostics.max_error import MaxError
from app.core.errors import InvalidInput
from app.core.maps import FeatureMap, made
from service_tests.cases import each
from service_tests.core.combinations import rows, variants
from service_tests.core.diagnostics.measure import max_errors
from service_tests.core.interrupted import Interrupted, WatchedWork
from service_tests.core.specs import KERNELS, spec

D = 3


def around(landmarks: Any, **members: Any) -> FeatureMap:
    sampler = {"kind": "uploaded_landmarks", "landmarks": landmarks}
    return made(spec(**{"input_dim": D, "s": None, "sampler": sampler, "dtype": "float64"} | members))


@each("normalize", [False, True])
@each("kernel", [fields for model in KERNELS for fields in variants(model, D)])
def test_errors_are_those_of_pairs_drawn_another_way(kernel: dict[str, Any], normalize: bool) -> None:
    landmarks = np.abs(rows(5, 1, D, "float64")) + 0.5
    its_map = around(landmarks.tolist(), kernel=kernel, normalize=normalize)
    found = max_errors(its_map, [1.5, 0.4], samples=4000, seed=3)
    assert found["form"] is None
    # Points by rejection from a cube, of another seed.
    cube = np.random.default_rng(7).uniform(-1, 1, (12_000, D))
    ball = cube[np.linalg.norm(cube, axis=1) <= 1][:3000]
    anchors = np.asarray(its_map.anchors())[np.random.default_rng(8).integers(0, 5, len(ball))]
    for of, diameter in zip(found["diameters"], (1.5, 0.4), strict=True):
        x, y = anchors - diameter / 2 * ball, anchors + diameter / 2 * ball
        if kernel["kind"] == "chi_squared":
            x, y = np.abs(x), np.abs(y)
        products = np.einsum("ij,ij->i", its_map.transform(x), its_map.transform(y))
        error = np.abs(its_map.exact_pairs(x, y) - products)
        # Both RMS have a relative standard error of √(E e⁴/(E e²)² − 1)/2/√n.
        spread = np.sqrt(np.mean(error**4) / np.mean(error**2) ** 2 - 1) / 2 / np.sqrt(3000)
        assert of["rms"] == pytest.approx(np.sqrt(np.mean(error**2)), rel=5 * 1.4 * spread, abs=1e-12)
        assert 0.6 * error.max() - 1e-12 < of["max"] < 1.7 * error.max() + 1e-12
        assert of["bound"] is None


def test_pairs_have_a_landmark_midway_and_fill_the_ball() -> None:
    # A kernel so wide that it is 1 − |x − y|²/2ℓ², with ℓ = 1000, and one landmark c: rows c ± δ/2 have the features
    # 1 − |δ|²/8ℓ², whose product misses k = 1 − |δ|²/2ℓ² by |δ|²/4ℓ².
    its_map = around([[5.0, -3.0, 1.0]], kernel={"kind": "gaussian", "length_scale": 1e3})
    large, small = max_errors(its_map, [2.0, 1.0], samples=50_000)["diameters"]
    # Uniform in the ball of three dimensions E |δ|⁴ = 3/7 M⁴; 0.4 % is more than three standard errors of the root.
    assert large["rms"] == pytest.approx(0.25e-6 * 4 * np.sqrt(3 / 7), rel=0.013)
    assert 0.97 * 0.25e-6 * 4 < large["max"] <= 0.25e-6 * 4
    assert small["rms"] == pytest.approx(large["rms"] / 4, rel=1e-4)


def test_each_landmark_has_its_turn() -> None:
    # Two landmarks without kernel between them, one of which has a far one on its side.
    near, far = [[0.0, 0.0, 0.0]], [[100.0, 0.0, 0.0], [100.0, 0.0, 0.2]]
    kernel = {"kind": "gaussian", "length_scale": 1.0}
    alone, beside = (
        max_errors(around(some, kernel=kernel), [1.0], samples=2000)["diameters"][0]["rms"] for some in (near, far)
    )
    both = max_errors(around(near + far, kernel=kernel), [1.0], samples=30_000)["diameters"][0]["rms"]
    assert beside < 0.9 * alone
    assert both == pytest.approx(np.sqrt((alone**2 + 2 * beside**2) / 3), rel=0.05)


@pytest.mark.parametrize("most", [1, 4, 7])
def test_work_goes_on_where_it_was(most: int) -> None:
    its_map = around(rows(40, 1, D, "float64").tolist(), kernel={"kind": "gaussian", "length_scale": 1.0})
    diagnostic = MaxError(diameters=(0.5, 2.0), samples=60_000)
    whole = WatchedWork()
    wanted = diagnostic.run(its_map, {}, whole).answer
    assert len(whole.states) > 8
    work = WatchedWork(most=most)
    with pytest.raises(Interrupted):
        diagnostic.run(its_map, {}, work)
    assert diagnostic.run(its_map, {}, WatchedWork(work.states[-1])).answer == wanted
    assert whole.told[-1][:2] == (120_000, 120_000)


def test_rows_beyond_the_dtype_are_refused() -> None:
    its_map = around([[1.0, 2.0, 3.0]], dtype="float32", kernel={"kind": "gaussian", "length_scale": 1e30})
    with pytest.raises(InvalidInput, match="float32") as caught:
        max_errors(its_map, [1e38])
    assert caught.value.pointer == "/diameters"


def test_rows_of_unit_length_differ_by_two_at_most() -> None:
    its_map = around([[1.0, 2.0, 3.0]], kernel={"kind": "correlation_rbf", "gamma": 1.0})
    with pytest.raises(InvalidInput, match="at most 2") as caught:
        max_errors(its_map, [1.0, 2.1])
    assert caught.value.pointer == "/diameters/1"


def test_sparse_landmarks_are_measured_as_dense_ones() -> None:
    landmarks = rows(6, 2, D, "float64")
    landmarks[:, 1] = 0
    parts = csr_array(landmarks)
    sparse = [
        {"indices": parts[[i]].indices.tolist(), "values": parts[[i]].data.tolist()} for i in range(landmarks.shape[0])
    ]
    members: dict[str, Any] = {"kernel": {"kind": "gmm"}}
    dense, of_sparse = (
        max_errors(around(some, **members), [0.5], samples=500)["diameters"][0] for some in (landmarks.tolist(), sparse)
    )
    assert (of_sparse["max"], of_sparse["rms"]) == pytest.approx((dense["max"], dense["rms"]), rel=1e-9)
    assert dense["rms"] > 1e-3
