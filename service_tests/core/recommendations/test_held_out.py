"""How a dataset is shared out between learning and measuring, and what maps that learn from it are worth then."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.core.building import Building
from app.core.errors import InvalidInput
from app.core.maps import made
from app.core.recommendations.answer import drawing
from app.core.recommendations.candidates import Wanted, learned_from, recommended_bytes
from app.core.recommendations.held_out import MOST_LEARNED, held_out
from app.core.recommendations.trials import recommended
from service_tests.core.interrupted import Interrupted, WatchedWork
from service_tests.core.recommendations.test_trials import kernel, sampler
from service_tests.core.specs import spec

LETTERS = np.load(Path(__file__).parents[3] / "examples" / "letters.npy").astype(np.float32)
GAUSSIAN = kernel({"kind": "gaussian", "length_scale": 7.0})
UNIFORM = sampler(kind="landmarks", dataset="letters", selection="uniform")
SHARED = held_out(len(LETTERS), np.arange(300), 1)
ROWS = LETTERS[:300][SHARED.measured]


def building(**members: Any) -> Building:
    return Building(rows=lambda *_: LETTERS[SHARED.learned], **members)


def wanted(budget: int | None = 128, target: float | None = None, **members: Any) -> Wanted:
    return Wanted(budget, target, dataset="letters", learned_rows=len(SHARED.learned))._replace(**members)


@pytest.mark.parametrize(
    ("n", "taken", "measured", "learned"),
    [
        (3, 3, 2, 1),
        (10, 10, 3, 7),
        (300, 300, 100, 200),
        (900, 100, 100, 800),
        (2600, 1000, 866, 1734),
        (40_000, 1000, 1000, MOST_LEARNED),
    ],
)
def test_no_row_is_in_both_parts_and_a_third_is_measured_at_most(
    n: int, taken: int, measured: int, learned: int
) -> None:
    numbers = np.sort(np.random.default_rng(2).permutation(n)[:taken])
    found = held_out(n, numbers, 5)
    assert (len(found.measured), len(found.learned)) == (measured, learned)
    assert (np.diff(found.measured) > 0).all()
    assert (np.diff(found.learned) > 0).all()
    assert not set(numbers[found.measured]) & set(found.learned)
    assert 0 <= found.learned[0] <= found.learned[-1] < n
    again = held_out(n, numbers, 5)
    assert (again.measured.tolist(), again.learned.tolist()) == (found.measured.tolist(), found.learned.tolist())


def test_other_seeds_share_out_otherwise_and_evenly() -> None:
    counts = np.zeros(30)
    for seed in range(600):
        counts[held_out(30, np.arange(30), seed).measured] += 1
    # Binomial of 600 draws of probability 1/3: standard deviation 11.5.
    assert np.abs(counts - 200).max() < 4.5 * 11.5


def test_two_rows_cannot_be_shared_out() -> None:
    with pytest.raises(InvalidInput, match="2 rows; a sampler that learns wants 3"):
        held_out(2, np.arange(2), 0)


def test_maps_that_learn_are_tried_where_there_is_a_dataset_and_come_first() -> None:
    found = recommended(ROWS, GAUSSIAN, wanted(), building=building())
    assert found["rows"] == len(ROWS)
    assert found["learned_rows"] == len(SHARED.learned)
    first = found["ranked"][0]
    assert first["spec"]["sampler"]["dataset"] == "letters"
    others = [trial for trial in found["ranked"] if "dataset" not in trial["spec"]["sampler"]]
    assert len(others) > 10
    assert first["error_mean"] < 0.7 * min(trial["error_mean"] for trial in others)
    assert all(trial["bytes"] > 0 and trial["seconds_per_1000_rows"] > 0 for trial in found["ranked"])


def test_errors_are_of_rows_that_were_not_learned_from() -> None:
    found = recommended(ROWS, GAUSSIAN, wanted(samplers=[UNIFORM]), seeds=1, seed=4, building=building())
    trial = next(trial for trial in found["ranked"] if trial["spec"]["s"] == 128)
    its_map = made(spec(**trial["spec"]), building())
    exact = its_map.exact_gram(ROWS, ROWS)
    assert trial["error_mean"] == pytest.approx(
        np.linalg.norm(its_map.gram(ROWS, ROWS) - exact) / np.linalg.norm(exact)
    )
    learned = {row.tobytes() for row in np.asarray(its_map.arrays["landmarks"])}
    assert learned <= {row.tobytes() for row in LETTERS[SHARED.learned]}


def test_without_a_dataset_nothing_that_learns_is_tried_and_answers_are_as_ever() -> None:
    plain = Wanted(64, None)
    assert learned_from(GAUSSIAN, 16, plain) == set()
    assert learned_from(GAUSSIAN, 16, wanted()) == {"letters"}
    found = recommended(ROWS, GAUSSIAN, plain, seeds=1)
    assert found["learned_rows"] is None
    beside = {
        str(trial["spec"]): trial["error_mean"]
        for trial in recommended(ROWS, GAUSSIAN, wanted(64), seeds=1, building=building())["ranked"]
    }
    assert {str(trial["spec"]): trial["error_mean"] for trial in found["ranked"]}.items() < beside.items()


def test_a_target_is_reached_with_fewer_columns() -> None:
    plain = recommended(ROWS, GAUSSIAN, Wanted(None, 0.2), seeds=1)["ranked"][0]
    best = recommended(ROWS, GAUSSIAN, wanted(None, 0.2), seeds=1, building=building())["ranked"][0]
    assert best["error_mean"] <= 0.2
    assert best["n_output"] < plain["n_output"]


@pytest.mark.parametrize("most", [2, 9, 30])
def test_trials_go_on_where_they_were(most: int) -> None:
    def run(progress: WatchedWork) -> list[Any]:
        asked = wanted(64, samplers=[UNIFORM, sampler(kind="landmarks", dataset="letters")])
        answer = recommended(ROWS, GAUSSIAN, asked, seeds=2, building=building(progress=progress))
        return [trial | {"seconds_per_1000_rows": 0} for trial in answer["ranked"]]

    work = WatchedWork(most=most)
    with pytest.raises(Interrupted):
        run(work)
    assert run(WatchedWork(work.states[-1])) == run(WatchedWork())


def test_rows_to_learn_from_count_where_something_learns() -> None:
    few, many = (wanted(learned_rows=count) for count in (100, MOST_LEARNED))
    assert recommended_bytes(100, 16, many, GAUSSIAN) - recommended_bytes(100, 16, few, GAUSSIAN) > 3900 * 128 * 8
    plain = Wanted(128, None, [sampler(kind="sobol")])
    assert recommended_bytes(100, 16, plain, GAUSSIAN) < recommended_bytes(100, 16, few, GAUSSIAN)


def test_curves_of_samplers_of_one_kind_have_names_of_their_own() -> None:
    samplers = [UNIFORM, sampler(kind="landmarks", dataset="letters"), sampler(kind="sobol")]
    answer = recommended(ROWS, GAUSSIAN, wanted(samplers=samplers), seeds=1, building=building())
    ((panel,),) = drawing(answer).rows
    labels = {getattr(mark, "label", None) for mark in panel.marks}
    assert labels == {"landmarks uniform", "landmarks rp_cholesky", "sobol"}


def test_a_sampler_that_wants_more_rows_than_a_trial_has_is_told_so() -> None:
    greedy = sampler(kind="landmarks", dataset="letters", rows=len(LETTERS) - 200)
    answer = recommended(ROWS, GAUSSIAN, wanted(64, samplers=[greedy, UNIFORM]), seeds=1, building=building())
    assert {one["sampler"]["rows"] for one in answer["skipped"]} == {len(LETTERS) - 200}
    assert all(f"{len(SHARED.learned)} rows of it are there" in str(one["reason"]) for one in answer["skipped"])


def test_where_only_what_learns_serves_a_dataset_is_asked_for() -> None:
    with pytest.raises(InvalidInput, match="put them as a dataset") as caught:
        recommended(ROWS, GAUSSIAN, Wanted(64, None, []))
    assert caught.value.pointer == "/vectors"
