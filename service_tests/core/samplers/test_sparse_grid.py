"""Smolyak's rule against the combination formula written out, its moments, and where it is of use."""

import re
from collections import defaultdict
from itertools import product
from math import comb, prod
from typing import Any

import numpy as np
import pytest
from numpy.polynomial import hermite_e

from app.core.samplers.base import FrequencySet
from service_tests.cases import each
from service_tests.core.specs import kernel, refusal, sampler, spec


def grid(level: int, d: int, length_scale: Any = 1.0) -> FrequencySet:
    gaussian = kernel(kind="gaussian", length_scale=length_scale)
    drawn = sampler(kind="sparse_grid", level=level).frequency_set(gaussian, 1, d, np.random.default_rng(1))
    assert isinstance(drawn, FrequencySet)
    return drawn


def slow_smolyak(level: int, d: int) -> dict[tuple[float, ...], float]:
    """Σ (−1)^(level − |l|) C(d − 1, level − |l|) of the tensor rules l, nodes merged by their rounded coordinates."""
    rules = [hermite_e.hermegauss(2 * one + 1) for one in range(level + 1)]
    merged: dict[tuple[float, ...], float] = defaultdict(float)
    for levels in product(range(level + 1), repeat=d):
        left = level - sum(levels)
        if not 0 <= left < d:
            continue
        for chosen in product(*(range(2 * one + 1) for one in levels)):
            node = tuple(round(float(rules[one][0][i]), 9) + 0.0 for one, i in zip(levels, chosen, strict=True))
            weight = prod(float(rules[one][1][i]) for one, i in zip(levels, chosen, strict=True))
            merged[node] += (-1) ** left * comb(d - 1, left) * weight / np.sqrt(2 * np.pi) ** d
    return merged


def errors(drawn: FrequencySet, radius: float, seed: int = 3) -> Any:
    """At 200 points on the sphere of this radius."""
    deltas = np.random.default_rng(seed).normal(size=(200, drawn.frequencies.shape[1]))
    deltas *= radius / np.linalg.norm(deltas, axis=1, keepdims=True)
    return np.cos(deltas @ drawn.frequencies.T) @ drawn.weights - np.exp(-(radius**2) / 2)


@each(("level", "d"), [(0, 3), (1, 1), (3, 1), (1, 3), (2, 2), (4, 2), (2, 3), (4, 3), (3, 4), (4, 4), (2, 6), (1, 9)])
def test_nodes_and_weights_are_those_of_the_combination_formula(level: int, d: int) -> None:
    expected = slow_smolyak(level, d)
    drawn = grid(level, d)
    made = {
        tuple(round(float(w), 9) + 0.0 for w in row): float(weight)
        for row, weight in zip(drawn.frequencies, drawn.weights, strict=True)
    }
    assert len(made) == len(drawn.weights)  # no node twice
    assert len(made) == sampler(kind="sparse_grid", level=level).count(None, d)
    assert made.keys() == expected.keys()
    for node, weight in expected.items():
        assert made[node] == pytest.approx(weight, rel=1e-9, abs=1e-13)


def test_in_25_dimensions_level_2_has_the_figures_of_the_paper() -> None:
    drawn = grid(2, 25)
    assert drawn.frequencies.shape == (1351, 25)
    assert (drawn.weights < 0).sum() == 50
    assert np.abs(drawn.weights).sum() == pytest.approx(134.33, abs=0.005)
    assert drawn.weights.sum() == pytest.approx(1, abs=1e-11)
    assert 1e-10 < np.abs(errors(drawn, 0.1)).max() < 1e-7
    assert np.abs(errors(drawn, 4.0)).max() > 1


@pytest.mark.parametrize(("level", "d"), [(2, 25), (1, 40), (3, 6), (4, 5)])
def test_moments_are_exact_to_total_degree_two_level_plus_one(level: int, d: int) -> None:
    drawn, rng = grid(level, d), np.random.default_rng(4)
    for degree in range(2 * level + 2):
        for _ in range(40):
            powers = np.bincount(rng.integers(min(d, 4), size=degree), minlength=d)[rng.permutation(d)]
            exact = 0 if (powers % 2).any() else prod(prod(range(1, power, 2)) for power in powers)
            assert abs(drawn.weights @ (drawn.frequencies**powers).prod(axis=1) - exact) < 1e-9
    # One square more than there are levels is beyond every rule in the sum: 0 instead of 1.
    assert abs(drawn.weights @ np.square(drawn.frequencies[:, : level + 1]).prod(axis=1)) < 1e-9


def test_length_scales_divide_coordinate_by_coordinate() -> None:
    scale = np.array([0.5, 1.0, 4.0])
    np.testing.assert_allclose(grid(3, 3, scale.tolist()).frequencies * scale, grid(3, 3).frequencies, rtol=1e-14)


@pytest.mark.parametrize(("level", "d"), [(2, 25), (1, 20), (3, 8), (4, 3)])
def test_warnings_name_the_negative_weights_their_size_and_the_radius_of_use(level: int, d: int) -> None:
    drawn = grid(level, d)
    signs, reach = drawn.warnings
    assert signs.startswith(f"{(drawn.weights < 0).sum()} of {len(drawn.weights)} weights are negative")
    assert signs.endswith(f"|weights| sum to {np.abs(drawn.weights).sum():.4g}")
    told = re.search(r"below about (\d+\.\d+)$", reach)
    assert told is not None
    radius = float(told[1])
    for factor, better in ((0.5, True), (0.9, True), (1.1, False), (1.3, False)):
        # Monte Carlo's standard deviation, (1 − e^−t)/√(2s), in a real form; other directions than the rule's own.
        monte_carlo = (1 - np.exp(-((factor * radius) ** 2))) / np.sqrt(2 * len(drawn.weights))
        measured = np.sqrt(np.square(errors(drawn, factor * radius)).mean())
        assert (measured < monte_carlo) == better


def test_a_rule_without_negative_weights_tells_its_reach_too() -> None:
    for level, d in ((1, 2), (1, 3)):
        (warning,) = grid(level, d).warnings
        assert warning.startswith("better than monte_carlo")
    assert grid(0, 5).warnings == ()  # a constant; the map tells
    assert grid(0, 5).frequencies.tolist() == [[0.0] * 5]
    assert grid(0, 5).weights.tolist() == [1.0]


@pytest.mark.parametrize(("level", "d"), [(12, 10**6), (12, 1 << 31), (12, 12), (3, 200), (1, 1 << 20)])
def test_too_many_points_are_refused_without_being_made(level: int, d: int) -> None:
    error = refusal(input_dim=d, s=None, sampler={"kind": "sparse_grid", "level": level})
    assert error.pointer == "/sampler/level"
    assert re.match(rf"sparse_grid of level {level} has \d+ points in {d} dimensions; 131072 is the most", error.detail)
    told = re.search(r": take level (\d+)$", error.detail)
    if told is None:
        assert error.detail.endswith("take monte_carlo, as only level 0, a constant, has fewer")
    works = int(told[1]) if told else 0
    assert spec(input_dim=d, s=None, sampler={"kind": "sparse_grid", "level": works})
    assert "131072 is the most" in refusal(input_dim=d, sampler={"kind": "sparse_grid", "level": works + 1}).detail


@pytest.mark.parametrize(("level", "d"), [(12, 1), (12, 2), (12, 3), (2, 250), (1, 60_000)])
def test_the_largest_grids_within_the_limit_are_taken(level: int, d: int) -> None:
    made = spec(input_dim=d, s=None, sampler={"kind": "sparse_grid", "level": level})
    count = sampler(kind="sparse_grid", level=level).count(None, made.input_dim)
    assert count <= 1 << 17
    if d < 3:
        assert len(grid(level, d).weights) == count
