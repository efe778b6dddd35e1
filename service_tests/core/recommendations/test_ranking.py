"""Ties: how often what is as good as the best is told apart from it, and what is worse."""

from typing import Any

import numpy as np
import pytest

from app.core.recommendations.candidates import Candidate, Objective, Wanted
from app.core.recommendations.measuring import Measured
from app.core.recommendations.trials import TIE_RATE, Trial, in_order, is_hopeless, is_tied_with
from service_tests.core.recommendations.test_trials import KERNELS, kernel, sampler
from service_tests.core.specs import spec

ERRORS = Wanted(64, None)
SCORES = Wanted(64, None, objective=Objective.score)


def trial(errors: Any, fresh: Any = (), scores: Any = None, n_output: int = 64) -> Trial:
    def maps(values: Any, scored: Any) -> list[Measured]:
        return [
            Measured(choosing=error, error=error, score=score, n_output=n_output, seconds=1.0, bytes=1)
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
