"""How a dataset is shared out between learning and measuring, and what maps that learn from it are worth then."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.core.building import Building
from app.core.maps import make_map
from app.core.recommendations.candidates import Wanted
from app.core.recommendations.measuring import MOST_LEARNED, shared_out
from app.core.recommendations.trials import recommend
from service_tests.core.recommendations.test_trials import kernel, sampler
from service_tests.core.specs import spec

LETTERS = np.load(Path(__file__).parents[3] / "examples" / "letters.npy").astype(np.float32)
GAUSSIAN = kernel({"kind": "gaussian", "length_scale": 7.0})
UNIFORM = sampler(kind="landmarks", dataset="letters", selection="uniform")
SHARED = shared_out(np.arange(300), len(LETTERS), 1, learns=True)
ROWS = LETTERS[:300]


def building(**members: Any) -> Building:
    return Building(rows=lambda *_: LETTERS, **members)


def wanted(budget: int | None = 128, target: float | None = None, **members: Any) -> Wanted:
    return Wanted(budget, target, dataset="letters", learned_rows=len(SHARED.reported.learned))._replace(**members)


@pytest.mark.parametrize(
    ("n", "taken", "reported", "folds", "measured", "learned"),
    [
        (3, 3, 2, 1, 2, 1),
        (10, 10, 3, 1, 3, 7),
        (100, 100, 10, 20, 4, 86),
        (300, 300, 30, 20, 13, 257),
        (900, 100, 33, 1, 67, 800),
        (900, 899, 90, 19, 42, 768),
        (2600, 1000, 260, 6, 123, MOST_LEARNED),
        (40_000, 1000, 333, 3, 222, MOST_LEARNED),
    ],
)
def test_what_is_measured_on_is_never_learned_from(
    n: int, taken: int, reported: int, folds: int, measured: int, learned: int
) -> None:
    numbers = np.sort(np.random.default_rng(2).permutation(n)[:taken])
    found = shared_out(numbers, n, 5, learns=True)
    assert (len(found.reported.measured), len(found.choosing)) == (reported, folds)
    # Rows that are dealt out are off by one.
    assert abs(len(found.choosing[0].measured) - measured) <= 1
    assert abs(len(found.choosing[0].learned) - learned) <= 1
    for fold in (found.reported, *found.choosing):
        assert (np.diff(fold.measured) > 0).all()
        assert (np.diff(fold.learned) > 0).all()
        assert not set(numbers[fold.measured]) & set(fold.learned)
        assert 0 <= fold.learned[0] <= fold.learned[-1] < n
    again = shared_out(numbers, n, 5, learns=True)
    assert str(again) == str(found)


def test_errors_are_of_rows_that_were_not_learned_from() -> None:
    found = recommend(ROWS, [GAUSSIAN], wanted(samplers=[UNIFORM]), seeds=1, seed=4, building=building(), shares=SHARED)
    trial = next(trial for trial in found["ranked"] if trial["spec"]["s"] == 128)
    reported = ROWS[SHARED.reported.measured]
    learned = {row.tobytes() for row in LETTERS[SHARED.reported.learned]}
    errors = []
    # Up to 48 maps are for choosing, and those of the next ten seeds are told of.
    for seed in range(52, 62):
        around = Building(rows=lambda *_: LETTERS[SHARED.reported.learned])
        its_map = make_map(spec(**trial["spec"] | {"seed": seed}), around)
        assert {row.tobytes() for row in np.asarray(its_map.arrays["landmarks"])} <= learned
        exact = its_map.exact_gram(reported, reported)
        # Entries off the diagonal count for as many as there are of 300 rows.
        times = np.where(np.eye(len(exact)) > 0, 1.0, 299 / (len(exact) - 1))
        missed = its_map.gram(reported, reported) - exact
        errors.append(np.sqrt((times * missed**2).sum() / (times * exact**2).sum()))
    assert trial["maps"] == 10
    assert trial["error_mean"] == pytest.approx(np.mean(errors))
    assert trial["error_sd"] == pytest.approx(np.std(errors, ddof=1))
