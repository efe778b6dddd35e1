"""Ties: how often what is as good as the best is told apart from it, and what is worse."""

from typing import Any

import numpy as np
import pytest

from app.core.diagnostics.error_matrix import RowVariation
from app.core.recommendations.candidates import Candidate, Objective, Wanted
from app.core.recommendations.measuring import Measured
from app.core.recommendations.trials import (
    TIE_RATE,
    Trial,
    _rank_entry,
    _shared_variation,
    in_order,
    is_hopeless,
    is_tied_with,
)
from service_tests.core.recommendations.test_trials import KERNELS, kernel, sampler
from service_tests.core.specs import spec

ERRORS = Wanted(64, None)
VARIATION = RowVariation(0.1, 30)
SCORES = Wanted(64, None, objective=Objective.score)


def trial(
    errors: Any,
    fresh: Any = (),
    scores: Any = None,
    n_output: int = 64,
    variation: RowVariation = VARIATION,
) -> Trial:
    def maps(values: Any, scored: Any) -> list[Measured]:
        return [
            Measured(choosing=error, error=error, score=score, is_random=True, variation=[*variation])
            | Measured(n_output=n_output, seconds=1.0, bytes=1)
            for error, score in zip(values, scored, strict=True)
        ]

    its, over = spec(), sampler(kind="sobol")
    scored = 1 - np.asarray(errors) if scores is None else scores
    return Trial(
        Candidate(over, kernel(KERNELS[0]), 64, its), its, maps(errors, scored), maps(fresh, 1 - np.asarray(fresh))
    )


@pytest.mark.nightly
@pytest.mark.parametrize(("maps", "is_fresh"), [(3, False), (10, True)], ids=["maps", "fresh"])
def test_what_is_as_good_is_told_apart_as_rarely_as_is_said(maps: int, is_fresh: bool) -> None:
    rng = np.random.default_rng(4)
    apart, repeats = 0, 800
    for _ in range(repeats):
        # The seed of a pair is good or bad luck for both.
        luck = rng.normal(size=maps)
        pair = (0.2 + 0.01 * (luck + rng.normal(size=maps)) for _ in range(2))
        first, best = (trial([0.2] * 2, fresh=errors) if is_fresh else trial(errors) for errors in pair)
        apart += not is_tied_with(first, best, ERRORS)
    error = (TIE_RATE * (1 - TIE_RATE) / repeats) ** 0.5
    assert abs(apart / repeats - TIE_RATE) < 4 * error


def test_what_is_worse_is_told_apart_and_what_is_better_is_not() -> None:
    noise = 0.001 * np.random.default_rng(2).normal(size=6)
    best, worse = trial(0.2 + noise), trial(0.21 + noise[::-1])
    assert is_tied_with(worse, best, ERRORS) is False
    assert is_tied_with(best, worse, ERRORS) is True
    assert is_tied_with(best, best, ERRORS) is True
    assert is_tied_with(trial([0.2]), best, ERRORS) is None


def test_what_the_answer_shows_is_compared_also_where_only_the_best_has_fresh_maps() -> None:
    noise = 0.001 * np.random.default_rng(3).normal(size=(2, 10))
    best = trial(0.1 + noise[0, :3], fresh=0.2 + noise[1])
    for error, tied in ((0.15, True), (0.2, True), (0.25, False)):
        assert is_tied_with(trial(error + noise[0, 3:7]), best, ERRORS) is tied


def test_of_scores_the_larger_is_better() -> None:
    noise = 0.001 * np.random.default_rng(2).normal(size=6)
    good, bad = trial([0.5] * 6, scores=0.9 + noise), trial([0.1] * 6, scores=0.8 + noise[::-1])
    assert is_tied_with(bad, good, SCORES) is False
    assert is_tied_with(good, bad, SCORES) is True


def test_the_narrowest_that_reaches_a_target_on_both_parts_comes_first() -> None:
    wide, narrow = trial([0.1] * 2, n_output=64), trial([0.19] * 2, n_output=32)
    lucky = trial([0.15] * 2, fresh=[0.3] * 2, n_output=16)
    assert in_order([wide, lucky, narrow], Wanted(64, 0.2)) == [narrow, wide, lucky]
    assert in_order([wide, lucky, narrow], Wanted(64, None)) == [wide, lucky, narrow]


def test_what_learns_and_misses_twice_the_least_error_is_hopeless() -> None:
    near, far = trial([0.19]), trial([0.21])
    learned = far._replace(candidate=far.candidate._replace(sampler=sampler(kind="landmarks", dataset="letters")))
    also_near = near._replace(candidate=learned.candidate)
    assert [is_hopeless(one, 0.1, ERRORS) for one in (near, far, also_near, learned)] == [False, False, False, True]
    for other in (SCORES, Wanted(64, 0.2), Wanted(64, None, [learned.candidate.sampler])):
        assert not is_hopeless(learned, 0.1, other)


@pytest.mark.nightly
@pytest.mark.parametrize(("maps", "others"), [(1, 8), (2, 8), (3, 0), (10, 0)])
@pytest.mark.parametrize(("of_rows", "of_maps"), [(0.1, 0.02), (0.1, 0.1), (0.02, 0.1)])
def test_the_error_of_another_map_on_other_rows_is_as_often_within_as_is_said(
    maps: int, others: int, of_rows: float, of_maps: float
) -> None:
    rng, repeats, effective = np.random.default_rng(8), 2000, 20
    within = 0
    for _ in range(repeats):
        deviation = of_rows * (rng.chisquare(effective - 1) / (effective - 1)) ** 0.5
        told = RowVariation(deviation, effective)
        every = [np.exp(of_maps * rng.standard_normal(3)) for _ in range(others)]
        shared = _shared_variation([trial(one, variation=told) for one in every])
        own = trial(np.exp(of_rows * rng.standard_normal() + of_maps * rng.standard_normal(maps)), variation=told)
        entry = _rank_entry(own, None, shared)
        other = np.exp(np.hypot(of_rows, of_maps) * rng.standard_normal())
        within += entry["error_low"] <= other <= entry["error_high"]
    # One standard error is .005; where both parts matter, and few maps are measured, more is covered.
    assert 0.93 < within / repeats < 0.99
