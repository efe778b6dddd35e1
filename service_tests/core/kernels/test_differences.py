"""Exact kernels of rows far from 0: as good as those of the same rows near it."""

from typing import Any

import numpy as np
import pytest

from app.core.errors import InvalidInput
from app.core.kernels.cauchy import Cauchy
from service_tests.cases import each
from service_tests.core.specs import kernel

RNG = np.random.default_rng(3)
SCALES = {"isotropic": np.full(5, 10.0), "ard": np.array([0.3, 10.0, 700.0, 1.1, 3.3])}
every_scale = pytest.mark.parametrize("scales", SCALES.values(), ids=SCALES)
# Whole numbers of 2⁻²⁰ near 1.7e9: differences from the shift are exact.
NEAR = np.round(100 * RNG.random((40, 5)) * 2**20) / 2**20
FAR = NEAR + 1.7e9
KERNELS: list[dict[str, Any]] = [
    {"kind": "gaussian"},
    {"kind": "laplacian"},
    {"kind": "cauchy"},
    {"kind": "matern", "nu": 1.5},
    {"kind": "matern", "nu": 400.0},
    {"kind": "rational_quadratic", "alpha": 0.7},
    {"kind": "anova", "subsets": [[0, 3], [1, 2, 4]]},
]


@each("fields", KERNELS)
@every_scale
def test_kernels_are_right_1e8_length_scales_from_zero(scales: Any, fields: dict[str, Any]) -> None:
    made = kernel(**fields, length_scale=scales.tolist())
    np.testing.assert_allclose(made.gram(FAR, FAR), made.gram(NEAR, NEAR), rtol=0, atol=1e-13)
    # Rows of two places far apart have no origin that suits both.
    both, shift = np.concatenate([FAR, NEAR]), np.concatenate([FAR - 1.7e9, NEAR])
    wanted, found = made.gram(shift, shift), made.gram(both, both)
    for place in (slice(0, 40), slice(40, 80)):
        np.testing.assert_allclose(found[place, place], wanted[place, place], rtol=0, atol=1e-13)
    np.testing.assert_allclose(made.pairs(FAR, FAR[::-1]), made.pairs(NEAR, NEAR[::-1]), rtol=0, atol=1e-13)


def test_an_entry_that_its_scale_makes_infinite_is_refused() -> None:
    narrow = Cauchy(kind="cauchy", length_scale=1e-300)
    with pytest.raises(InvalidInput, match="divided by its length_scale"):
        narrow.distances(np.array([[1e300]]), np.zeros((1, 1)), "cityblock")
    with pytest.raises(InvalidInput, match="divided by its length_scale"):
        narrow.gram(np.zeros((1, 1)), np.array([[1e300]]))
