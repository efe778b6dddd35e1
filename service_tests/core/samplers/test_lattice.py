"""Rank-1 lattices: the published vector, the group structure, and columns that repeat."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.samplers.lattice import _VECTOR, _multipliers
from service_tests.cases import each
from service_tests.core.specs import kernel, refusal, sampler, spec

Points = NDArray[np.float64]

PUBLISHED = [1, 182667, 213731, 255351, 96013, 116671, 479315, 424089]
"""The first lines of lattice-33002-1024-1048576.9125.txt."""
MATERN = {"kind": "matern", "length_scale": 1.0, "nu": 2.5}


def points(n: int, d: int, seed: int = 1, **fields: Any) -> Points:
    made: Points = sampler(kind="lattice", **fields).points(n, d, np.random.default_rng(seed))
    return made


@pytest.mark.parametrize("n", [101, 1024, 3001, 1 << 17])
def test_unshifted_points_are_multiples_of_the_published_vector_half_a_step_on(n: int) -> None:
    # In Python's integers, for n of every kind: no digit may be lost.
    expected = [[i * z % n for z in PUBLISHED] for i in range(n)]
    steps = points(n, len(PUBLISHED), shift=False) * n - 0.5
    assert (np.round(steps) == expected).all()
    np.testing.assert_allclose(steps, expected, rtol=0, atol=n * 2.0**-52)


@each("shift", [False, True])
@each("n", [101, 1000, 1024, 1 << 16])
def test_the_sum_of_two_points_without_the_shift_is_a_point(n: int, shift: bool) -> None:
    made = points(n, 6, shift=shift)
    steps = (made - made[0]) * n
    whole = np.round(steps)
    np.testing.assert_allclose(steps, whole, rtol=0, atol=n * 2.0**-51)
    i, j = np.random.default_rng(2).integers(n, size=(2, 200))
    assert ((whole[i] + whole[j]) % n == whole[(i + j) % n] % n).all()
    assert made.min() >= 0
    assert made.max() < 1


@pytest.mark.parametrize("d", [3, 784, 9125])
def test_no_unshifted_coordinate_is_zero_or_one(d: int) -> None:
    made = points(1024, d, shift=False)
    assert made.min() == 0.5 / 1024
    assert made.max() == 1 - 0.5 / 1024


def test_the_shift_is_uniform_one_number_a_coordinate_and_decided_by_the_seed() -> None:
    assert (points(64, 5) == points(64, 5)).all()
    assert (points(64, 5) != points(64, 5, seed=2)).all()
    first = np.array([points(2, 3, seed=seed)[0] for seed in range(2000)])
    np.testing.assert_allclose(first.mean(axis=0), 1 / 2, rtol=0, atol=4 / np.sqrt(12 * 2000))
    correlations = np.corrcoef(first, rowvar=False)[np.triu_indices(3, 1)]
    assert np.abs(correlations).max() < 4 / np.sqrt(2000)


@pytest.mark.parametrize(("its_kernel", "most"), [({"kind": "gaussian", "length_scale": 1.0}, 9125), (MATERN, 9124)])
def test_dimensions_past_the_vector_are_refused_and_as_many_are_not(its_kernel: dict[str, Any], most: int) -> None:
    made = spec(input_dim=most, s=2, kernel=its_kernel, sampler={"kind": "lattice"})
    drawn = sampler(kind="lattice").frequency_set(made.kernel, 2, most, np.random.default_rng(1))
    assert drawn.frequencies.shape == (2, most)
    error = refusal(input_dim=most + 1, s=2, kernel=its_kernel, sampler={"kind": "lattice"})
    assert error.pointer == "/sampler/kind"
    assert error.detail == f"input_dim {most + 1} passes the {most} dimensions of lattice; monte_carlo has no limit"


@pytest.mark.parametrize(
    ("n", "d", "replaced"),
    [(1 << 12, 100, 0), (1 << 12, 784, 199), (1 << 12, 1024, 329), (1 << 14, 3600, 1754), (1 << 20, 3600, 0)],
)
def test_repeated_entries_of_the_vector_are_replaced_and_no_others(n: int, d: int, replaced: int) -> None:
    published, multipliers = _VECTOR[:d] % n, _multipliers(n, d)
    assert len(np.unique(np.minimum(multipliers, n - multipliers))) == d
    assert (np.gcd(multipliers, n) == 1).all()
    assert (published != multipliers).sum() == replaced
    assert not any("columns" in warning for warning in sampler(kind="lattice").point_warnings(n, d))


def test_every_column_takes_every_value_at_an_n_that_shares_factors_with_the_vector() -> None:
    steps = np.round(points(3000, 50, shift=False) * 3000 - 0.5)
    assert (np.gcd(_VECTOR[:50], 3000) > 1).sum() > 10
    assert (np.sort(steps, axis=0) == np.arange(3000)[:, None]).all()


def test_replaced_columns_estimate_the_kernel_no_worse_than_independent_ones() -> None:
    gaussian, s, d = kernel(kind="gaussian", length_scale=1.0), 4096, 784
    rng = np.random.default_rng(8)
    deltas = rng.standard_normal((64, d)) / np.sqrt(d)
    exact = np.exp(-np.square(deltas).sum(axis=1) / 2)
    squares = {}
    for kind in ("lattice", "monte_carlo"):
        sets = (sampler(kind=kind).frequency_set(gaussian, s, d, rng).frequencies for _ in range(6))
        squares[kind] = np.mean([np.square(np.cos(w @ deltas.T).mean(axis=0) - exact) for w in sets])
    # Monte Carlo's mean of 384 squares, few of them independent, is known to some 20 %.
    assert squares["lattice"] < 1.2 * squares["monte_carlo"]


@each(("n", "d"), [(2, 3), (64, 10), (64, 20), (100, 40), (256, 30), (1024, 100), (1024, 256), (1024, 257)])
def test_repeated_columns_are_told_of_exactly_when_there_are_any(n: int, d: int) -> None:
    made = points(n, d, shift=False)
    # A mirrored column, n − step for step, depends on its image as much as an equal one.
    steps = np.round(made * n - 0.5)
    distinct = np.unique(np.minimum(steps, n - steps), axis=1).shape[1]
    told = [warning for warning in sampler(kind="lattice").point_warnings(n, d) if "columns" in warning]
    if distinct == d:
        assert told == []
    else:
        assert told[0].startswith(f"lattice repeats or mirrors {d - distinct} of its {d} columns")
        enough = int(told[0].split("take ")[1])
        assert not any("columns" in warning for warning in sampler(kind="lattice").point_warnings(enough, d))


@pytest.mark.parametrize(("n", "take"), [(512, 1024), (1500, 2048), (1024, None), (1 << 20, None), (1 << 21, 1 << 20)])
def test_sizes_that_the_vector_was_not_made_for_are_told_of(n: int, take: int | None) -> None:
    warnings = sampler(kind="lattice").point_warnings(n, 3)
    assert warnings == (
        (f"the generating vector was made for powers of two from 1024 to 1048576; s = {n}, take {take}",)
        if take
        else ()
    )
    assert "half a step" in sampler(kind="lattice", shift=False).point_warnings(n, 3)[-1]


def test_the_error_is_far_below_that_of_monte_carlo_and_unbiased() -> None:
    gaussian, delta, s = kernel(kind="gaussian", length_scale=1.0), np.array([0.5, -0.4, 0.8]), 1024
    made, rng = sampler(kind="lattice"), np.random.default_rng(5)
    t = float(delta @ delta)
    sums = [np.cos(made.frequency_set(gaussian, s, 3, rng).frequencies @ delta).mean() for _ in range(300)]
    errors = np.array(sums) - np.exp(-t / 2)
    assert abs(errors.mean()) < 4 * errors.std() / np.sqrt(300)
    # Monte Carlo's is (1 − e^−t)/√(2s); 300 squares give the root to 4 %, and it is a sixth.
    assert np.sqrt(np.square(errors).mean()) * 4 < (1 - np.exp(-t)) / np.sqrt(2 * s)
