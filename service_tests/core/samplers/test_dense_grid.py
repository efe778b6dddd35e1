"""The tensor grid: its points, those that are dropped, and sizes that are refused."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.polynomial import hermite_e

from app.core.maps import FourierMap
from app.core.samplers.base import FrequencySet
from service_tests.cases import each
from service_tests.core.specs import fourier, kernel, refusal, sampler, spec


def grid(points_per_dim: int, d: int, length_scale: Any = 1.0) -> FrequencySet:
    made = sampler(kind="dense_grid", points_per_dim=points_per_dim)
    drawn = made.frequency_set(
        kernel(kind="gaussian", length_scale=length_scale), made.count(None, d), d, np.random.default_rng(1)
    )
    assert isinstance(drawn, FrequencySet)
    return drawn


def ball(n: int, d: int, radius: float) -> Any:
    directions = np.random.default_rng(2).normal(size=(n, d))
    directions *= radius / np.linalg.norm(directions, axis=1, keepdims=True)
    return directions * np.linspace(0, 1, n)[:, None]


@pytest.mark.parametrize(("points_per_dim", "d"), [(4, 1), (3, 3), (2, 5), (1, 3)])
def test_the_grid_is_the_product_of_the_rule_last_coordinate_fastest(points_per_dim: int, d: int) -> None:
    nodes, weights = hermite_e.hermegauss(points_per_dim)
    weights /= weights.sum()
    drawn = grid(points_per_dim, d)
    np.testing.assert_allclose(drawn.frequencies, list(product(nodes, repeat=d)), rtol=1e-13, atol=1e-13)
    expected = [np.prod(chosen) for chosen in product(weights, repeat=d)]
    np.testing.assert_allclose(drawn.weights, expected, rtol=1e-12)


@pytest.mark.parametrize(("s", "told"), [(None, 0), (125, 0), (64, 1)])
def test_s_is_dictated_and_another_one_is_told_of(s: int | None, told: int) -> None:
    made = spec(input_dim=3, s=s, sampler={"kind": "dense_grid", "points_per_dim": 5})
    built = FourierMap.build(made)
    assert built.n_frequencies == 125
    assert built.warnings[1:] == ("dense_grid dictates 125 frequencies; s = 64 was not used",) * told


@pytest.mark.parametrize(
    ("points_per_dim", "d", "count"),
    [(11, 6, "11^6"), (2, 21, "2^21"), (200, 1 << 31, "200^2147483648")],
)
def test_too_many_points_are_refused_with_their_count_and_what_works(points_per_dim: int, d: int, count: str) -> None:
    error = refusal(input_dim=d, s=None, sampler={"kind": "dense_grid", "points_per_dim": points_per_dim})
    assert error.pointer == "/sampler/points_per_dim"
    assert error.detail == f"expected up to 1048576 points, got {count}; sparse_grid needs fewer"


@each("form", ["cos_sin", "phase", "complex"])
@each(("dtype", "d", "kept"), [("float32", 1, 122), ("float64", 1, 200), ("float32", 2, 11_864)])
def test_points_whose_weight_is_0_in_the_dtype_are_dropped(form: str, dtype: str, d: int, kept: int) -> None:
    made = fourier(input_dim=d, sampler={"kind": "dense_grid", "points_per_dim": 200}, s=None, dtype=dtype, form=form)
    weights = made.arrays["weights"]
    every = grid(200, d, 1.5).weights.astype(dtype)
    np.testing.assert_array_equal(weights, every[every != 0])
    assert made.n_frequencies == len(weights) == len(made.arrays["frequencies"]) == kept
    assert made.n_output == (2 if form == "cos_sin" else 1) * kept
    if form == "phase":
        assert made.arrays["offsets"].shape == (kept,)
    x = ball(20, d, 2.0).astype(dtype)
    if form == "cos_sin":
        np.testing.assert_allclose(made.gram(x, x), made.exact_gram(x, x), atol=1e-5)
