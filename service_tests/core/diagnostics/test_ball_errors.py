"""Greatest errors around the rows that a map was made from."""

from typing import Any

import numpy as np
import pytest

from app.core.maps import FeatureMap, make_map
from service_tests.cases import each
from service_tests.core.combinations import rows, variants
from service_tests.core.diagnostics.measure import max_errors
from service_tests.core.specs import KERNELS, spec

D = 3


def around(landmarks: Any, **members: Any) -> FeatureMap:
    sampler = {"kind": "uploaded_landmarks", "landmarks": landmarks}
    return make_map(spec(**{"input_dim": D, "s": None, "sampler": sampler, "dtype": "float64"} | members))


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
