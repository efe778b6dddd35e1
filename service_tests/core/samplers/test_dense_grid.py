"""The tensor grid: its error in few dimensions, and sizes that are refused."""

from itertools import pairwise, product
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


def largest_error(drawn: FrequencySet, deltas: Any, scale: Any = 1.0) -> float:
    exact = np.exp(-np.square(deltas / np.asarray(scale)).sum(axis=1) / 2)
    return float(np.abs(np.cos(deltas @ drawn.frequencies.T) @ drawn.weights - exact).max())


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


@pytest.mark.parametrize("scale", [1.0, [0.5, 3.0]], ids=["isotropic", "ard"])
def test_in_two_dimensions_eleven_points_each_are_exact_to_seven_digits_up_to_two_sigma(scale: Any) -> None:
    drawn = grid(11, 2, scale)
    assert drawn.frequencies.shape == (121, 2)
    assert 1e-9 < largest_error(drawn, ball(2000, 2, 2.0) * scale, scale) < 1e-7
    if scale != 1.0:  # scaled along the other axis it would not be
        assert largest_error(drawn, ball(2000, 2, 2.0) * scale, scale[::-1]) > 0.1


def test_in_three_dimensions_the_error_falls_exponentially_with_the_points() -> None:
    errors = [largest_error(grid(points_per_dim, 3), ball(500, 3, 2.0)) for points_per_dim in (3, 5, 7, 9, 11)]
    assert errors[-1] < 1e-7
    assert all(after < before / 10 for before, after in pairwise(errors))


@pytest.mark.parametrize(("s", "told"), [(None, 0), (125, 0), (64, 1)])
def test_s_is_dictated_and_another_one_is_told_of(s: int | None, told: int) -> None:
    made = spec(input_dim=3, s=s, sampler={"kind": "dense_grid", "points_per_dim": 5})
    built = FourierMap.build(made)
    assert built.n_frequencies == 125
    assert built.warnings[1:] == ("dense_grid dictates 125 frequencies; s = 64 was not used",) * told


@pytest.mark.parametrize(
    ("points_per_dim", "d", "count"),
    [(11, 6, "11^6 ≈ 1.8e6"), (2, 21, "2^21 ≈ 2.1e6"), (200, 1 << 31, "200^2147483648 ≈ 1")],
)
def test_too_many_points_are_refused_with_their_count_and_what_works(points_per_dim: int, d: int, count: str) -> None:
    error = refusal(input_dim=d, s=None, sampler={"kind": "dense_grid", "points_per_dim": points_per_dim})
    assert error.pointer == "/sampler/points_per_dim"
    assert error.detail.startswith(f"dense_grid has {count}")
    assert "1048576 is the most" in error.detail
    assert "sparse_grid or polynomially_exact need far fewer, subsampled_grid takes any s" in error.detail


@pytest.mark.gate
@pytest.mark.parametrize(("points_per_dim", "d"), [(10, 6), (2, 20), (1, 100)])
def test_a_grid_within_the_limit_is_made_in_any_dimension(points_per_dim: int, d: int) -> None:
    drawn = grid(points_per_dim, d)
    assert drawn.frequencies.shape == (points_per_dim**d, d)
    assert drawn.weights.sum() == pytest.approx(1, abs=1e-12)


@each("name", ["laplacian", "cauchy", "matern"])
@each("rule", ["dense_grid", "sparse_grid", "subsampled_grid", "polynomially_exact"])
def test_laws_that_are_not_normal_are_refused_by_every_rule(rule: str, name: str) -> None:
    size = {"sparse_grid": {"level": 2}, "polynomially_exact": {"degree": 2}}.get(rule, {"points_per_dim": 3})
    its_kernel = {"kind": name, "length_scale": 1.0} | ({"nu": 1.5} if name == "matern" else {})
    error = refusal(kernel=its_kernel, sampler={"kind": rule} | size)
    assert error.pointer == "/sampler/kind"
    assert error.detail.startswith(f"{rule} is a rule for normally distributed frequencies")
    assert fourier(kernel=its_kernel, sampler={"kind": "sobol"}).n_frequencies == 64


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
