"""Points that lie on the border of the unit cube."""

from typing import Literal

import numpy as np
import pytest

from app.core.arrays import Matrix
from app.core.samplers.base import PointSampler
from service_tests.core.specs import PRODUCT_KERNELS, kind, product_kernel


class Corners(PointSampler):
    """A sampler whose points are all 0 and all 1, in turn."""

    kind: Literal["corners"] = "corners"

    def points(self, n: int, d: int, rng: np.random.Generator) -> Matrix:
        del rng
        return np.repeat((np.arange(n) % 2)[:, None].astype(np.float64), d, axis=1)


@pytest.mark.parametrize("name", [kind(model) for model in PRODUCT_KERNELS])
def test_points_of_exactly_zero_and_one_have_finite_and_opposite_frequencies(name: str) -> None:
    kernel = product_kernel(name, [0.5, 1.0, 2.0])
    drawn = Corners().frequency_set(kernel, 4, 3, np.random.default_rng(1))
    assert np.isfinite(drawn.frequencies).all()
    assert (drawn.frequencies[0] < -1).all()
    np.testing.assert_allclose(drawn.frequencies[1], -drawn.frequencies[0], rtol=1e-12)
