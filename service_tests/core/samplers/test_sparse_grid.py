"""Smolyak's rule against the combination formula written out, and the figures of the paper."""

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


@pytest.mark.parametrize(("level", "d"), [(12, 10**6), (12, 1 << 31), (12, 12), (3, 200), (1, 1 << 20)])
def test_too_many_points_are_refused_without_being_made(level: int, d: int) -> None:
    error = refusal(input_dim=d, s=None, sampler={"kind": "sparse_grid", "level": level})
    assert error.pointer == "/sampler/level"
    assert re.match(r"expected up to 131072 points, got \d+: ", error.detail)
    told = re.search(r": take level (\d+)$", error.detail)
    if told is None:
        assert error.detail.endswith("sampler monte_carlo works")
    works = int(told[1]) if told else 0
    assert spec(input_dim=d, s=None, sampler={"kind": "sparse_grid", "level": works})
    assert "up to 131072 points" in refusal(input_dim=d, sampler={"kind": "sparse_grid", "level": works + 1}).detail
