"""Up to where rules are said to beat random frequencies."""

import re
from typing import Any

import numpy as np
import pytest

from app.core.samplers.base import FrequencySet
from service_tests.core.specs import kernel, sampler


def drawn(d: int, **fields: Any) -> FrequencySet:
    made = sampler(**fields).frequency_set(kernel(kind="gaussian", length_scale=2.0), 1, d, np.random.default_rng(1))
    assert isinstance(made, FrequencySet)
    return made._replace(frequencies=made.frequencies * 2.0)


def ratio(of: FrequencySet, radius: float) -> float:
    """Error of a rule on a sphere, over the standard deviation of as many Monte Carlo frequencies."""
    deltas = np.random.default_rng(3).normal(size=(200, of.frequencies.shape[1]))
    deltas *= radius / np.linalg.norm(deltas, axis=1, keepdims=True)
    errors = np.cos(deltas @ of.frequencies.T) @ of.weights - np.exp(-(radius**2) / 2)
    return float(np.sqrt(np.square(errors).mean()) / (1 - np.exp(-(radius**2))) * np.sqrt(2 * len(of.weights)))


@pytest.mark.parametrize(
    ("d", "fields"),
    [
        (1, {"kind": "dense_grid", "points_per_dim": 4}),
        (2, {"kind": "dense_grid", "points_per_dim": 11}),
        (3, {"kind": "dense_grid", "points_per_dim": 5}),
        (10, {"kind": "polynomially_exact", "degree": 2}),
        (3, {"kind": "polynomially_exact", "degree": 5}),
    ],
)
def test_a_rule_beats_random_frequencies_up_to_the_radius_it_tells(d: int, fields: dict[str, Any]) -> None:
    rule = drawn(d, **fields)
    (warning,) = rule.warnings
    told = re.fullmatch(
        r"better than monte_carlo of the same size only where \|δ\|/σ is below about (\d+\.\d+)", warning
    )
    assert told is not None
    # The directions are others than those the radius was found on.
    assert all(ratio(rule, factor * float(told[1])) < 1 for factor in (0.1, 0.5, 0.85))
    assert ratio(rule, 1.2 * float(told[1])) > 1
