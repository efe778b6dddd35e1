from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from app.core.arrays import Matrix
from app.core.maps.landmarks.selection import base
from service_tests.core.maps.landmarks.selection.chosen import Linear, numbers_of, run

N, S = 6, 3


def rows_of_many_lengths() -> Matrix:
    """Six rows in six dimensions, of squared lengths between 1 and 15, none of them orthogonal."""
    rng = np.random.default_rng(4)
    return rng.normal(size=(N, N)) * np.linspace(0.3, 1.6, N)[:, None]


def probabilities(gram: Matrix) -> dict[tuple[int, ...], float]:
    """Of every order of three pivots, from the residual matrix after each, by the definition."""
    found = {}
    for order in permutations(range(N), S):
        rest, probability = gram.copy(), 1.0
        for pivot in order:
            probability *= rest[pivot, pivot] / np.trace(rest)
            rest = rest - np.outer(rest[:, pivot], rest[:, pivot]) / rest[pivot, pivot]
        found[order] = probability
    return found


def p_value(name: str, draws: int) -> float:
    """How well the pivots of many runs agree with the law, by chi-square; rare orders count as one."""
    rows = rows_of_many_lengths()
    expected = probabilities(rows @ rows.T)
    counts = dict.fromkeys(expected, 0)
    for seed in range(draws):
        counts[tuple(numbers_of(rows, run(name, Linear(), rows, S, seed).landmarks))] += 1
    law, came = (np.array([of[order] for order in expected]) for of in (expected, counts))
    rare = law * draws < 5
    assert law[rare].sum() < 0.1
    law, came = (np.append(of[~rare], of[rare].sum()) for of in (law * draws, came))
    return float(stats.chisquare(came, law, sum_check=False).pvalue)


@pytest.mark.nightly
@pytest.mark.parametrize(("per_offer", "draws"), [(1, 4000), (2, 4000), (256, 4000)])
def test_pivots_have_the_law_of_one_at_a_time_however_many_are_drawn_at_once(
    per_offer: int, draws: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 120 orders of three of six rows. Significance 1e-4 each.
    monkeypatch.setattr(base, "MOST_COMPARED", per_offer)
    assert p_value("rp_cholesky", draws) > 1e-4
