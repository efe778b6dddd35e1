"""Rules that integrate polynomials: every moment, few points, and what happens when candidates do not do."""

import re
from itertools import combinations_with_replacement
from math import comb, prod
from typing import Any

import numpy as np
import pytest

from app.core.errors import InvalidInput
from app.core.samplers.base import FrequencySet
from service_tests.core.specs import kernel, refusal, sampler


def rule(degree: int, d: int, seed: int = 1, length_scale: Any = 1.0, **fields: Any) -> FrequencySet:
    gaussian = kernel(kind="gaussian", length_scale=length_scale)
    made = sampler(kind="polynomially_exact", degree=degree, **fields)
    drawn = made.frequency_set(gaussian, 1, d, np.random.default_rng(seed))
    assert isinstance(drawn, FrequencySet)
    return drawn


def largest_residual(drawn: FrequencySet, degree: int) -> float:
    """Over all monomials to total degree `degree`."""
    d, worst = drawn.frequencies.shape[1], 0.0
    for total in range(degree + 1):
        for factors in combinations_with_replacement(range(d), total):
            powers = np.bincount(factors, minlength=d) if factors else np.zeros(d, int)
            exact = 0 if (powers % 2).any() else prod(prod(range(1, power, 2)) for power in powers)
            made = drawn.weights @ np.prod(drawn.frequencies[:, list(factors)], axis=1)
            worst = max(worst, abs(float(made) - exact))
    return worst


@pytest.mark.parametrize(("degree", "d"), [(0, 3), (1, 5), (2, 25), (3, 4), (4, 4), (6, 3)])
def test_every_moment_to_the_total_degree_is_exact_and_no_weight_is_negative(degree: int, d: int) -> None:
    drawn = rule(degree, d)
    assert len(drawn.weights) <= comb(d + degree, degree)
    assert (drawn.weights > 0).all()
    assert drawn.weights.sum() == pytest.approx(1, abs=1e-10)
    assert largest_residual(drawn, degree) < 1e-10
    assert largest_residual(drawn, degree + 1) > 1e-3


def test_too_few_candidates_are_refused_and_more_named() -> None:
    with pytest.raises(InvalidInput, match="36 candidates do not solve 35 equations") as caught:
        rule(3, 4, candidates=36)
    assert caught.value.pointer == "/sampler/candidates"
    assert re.search(r"residual \d\.\de[+-]\d\d\); try 72, or a lower degree$", caught.value.detail)
    assert largest_residual(rule(3, 4, candidates=400), 3) < 1e-10


@pytest.mark.parametrize(("degree", "d"), [(3, 25), (10, 1 << 31), (2, 10**6), (10, 4)])
def test_too_many_equations_are_refused_without_being_made(degree: int, d: int) -> None:
    error = refusal(input_dim=d, s=None, sampler={"kind": "polynomially_exact", "degree": degree})
    assert error.pointer == "/sampler/degree"
    assert f"got {comb(d + degree, degree)}: take" in error.detail
    assert error.detail.endswith("take a lower degree")
