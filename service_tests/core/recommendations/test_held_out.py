"""How a dataset is shared out between learning and measuring, and what maps that learn from it are worth then."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.core.building import Building
from app.core.errors import InvalidInput
from app.core.maps import made
from app.core.recommendations.candidates import Wanted, learned_from, recommended_bytes
from app.core.recommendations.drawing import drawing
from app.core.recommendations.held_out import MOST_LEARNED, shared_out
from app.core.recommendations.trials import recommended
from service_tests.cases import with_nightly
from service_tests.core.interrupted import Interrupted, WatchedWork
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


@pytest.mark.parametrize("learns", [False, True])
@pytest.mark.parametrize("classes", [0, 3])
def test_what_is_reported_on_has_no_part_in_choosing(learns: bool, classes: int) -> None:
    strata = np.random.default_rng(3).integers(0, classes, 120) if classes else None
    numbers = np.sort(np.random.default_rng(2).permutation(400)[:120])
    found = shared_out(numbers, 400, 7, learns=learns, strata=strata)
    chosen_by = np.concatenate([fold.measured for fold in found.choosing])
    reported = found.reported.measured
    assert sorted([*chosen_by, *reported]) == list(range(120))
    assert len(reported) == 40
    assert len(found.choosing) == (4 if classes or learns else 1)
    for fold in found.choosing:
        assert not set(reported) & {*fold.measured, *fold.trained}
        assert not set(numbers[reported]) & set(fold.learned)
        assert not set(fold.measured) & set(fold.trained)
    assert sorted(found.reported.trained) == sorted(chosen_by)
    if strata is not None:
        for part in (reported, *(fold.measured for fold in found.choosing)):
            counts = np.bincount(strata[part], minlength=classes)
            assert np.abs(counts - len(part) * np.bincount(strata) / 120).max() <= 1


@pytest.mark.parametrize(("n", "measured"), [(897, [598]), (900, [200, 200, 200])])
def test_many_bare_rows_take_turns_too(n: int, measured: list[int]) -> None:
    found = shared_out(np.arange(n), n, 5)
    assert [len(fold.measured) for fold in found.choosing] == measured
    assert found.rows == n


def test_other_seeds_share_out_otherwise_and_evenly() -> None:
    counts = np.zeros(30)
    for seed in range(600):
        counts[shared_out(np.arange(30), 30, seed).reported.measured] += 1
    # Binomial of 600 draws of probability 1/3: standard deviation 11.5.
    assert np.abs(counts - 200).max() < 4.5 * 11.5


def test_two_rows_cannot_be_shared_out() -> None:
    with pytest.raises(InvalidInput, match="2 rows; a sampler that learns wants 3"):
        shared_out(np.arange(2), 2, 0, learns=True)


@pytest.mark.parametrize("n", [2, 3])
def test_too_few_rows_are_all_in_both_parts(n: int) -> None:
    found = shared_out(np.arange(n), n, 0)
    assert found.reported.measured.tolist() == found.choosing[0].measured.tolist() == list(range(n))


@pytest.mark.nightly
def test_maps_that_learn_are_tried_where_there_is_a_dataset_and_come_first() -> None:
    found = recommended(ROWS, [GAUSSIAN], wanted(), building=building(), shares=SHARED)
    assert (found["rows"], found["reported_rows"]) == (len(ROWS), len(SHARED.reported.measured))
    assert found["learned_rows"] == len(SHARED.reported.learned)
    first = found["ranked"][0]
    assert first["spec"]["sampler"]["dataset"] == "letters"
    others = [trial for trial in found["ranked"] if "dataset" not in trial["spec"]["sampler"]]
    assert len(others) > 10
    assert first["error_mean"] < 0.7 * min(trial["error_mean"] for trial in others)
    assert all(trial["bytes"] > 0 and trial["seconds_per_1000_rows"] > 0 for trial in found["ranked"])
    # Of what learns and misses twice the least error there is one map, of the others as many as there are seeds.
    once = [trial for trial in found["ranked"] if trial["maps"] == 1]
    assert once
    assert all("dataset" in trial["spec"]["sampler"] for trial in once)
    assert min(trial["choosing_error"] or 0 for trial in once) > 1.7 * (first["choosing_error"] or 0)
    assert {trial["maps"] >= 3 for trial in found["ranked"] if trial not in once} == {True}


def test_errors_are_of_rows_that_were_not_learned_from() -> None:
    found = recommended(
        ROWS, [GAUSSIAN], wanted(samplers=[UNIFORM]), seeds=1, seed=4, building=building(), shares=SHARED
    )
    trial = next(trial for trial in found["ranked"] if trial["spec"]["s"] == 128)
    reported = ROWS[SHARED.reported.measured]
    learned = {row.tobytes() for row in LETTERS[SHARED.reported.learned]}
    errors = []
    # Up to 48 maps are for choosing, and those of the next ten seeds are told of.
    for seed in range(52, 62):
        around = Building(rows=lambda *_: LETTERS[SHARED.reported.learned])
        its_map = made(spec(**trial["spec"] | {"seed": seed}), around)
        assert {row.tobytes() for row in np.asarray(its_map.arrays["landmarks"])} <= learned
        exact = its_map.exact_gram(reported, reported)
        # Entries off the diagonal count for as many as there are of 300 rows.
        times = np.where(np.eye(len(exact)) > 0, 1.0, 299 / (len(exact) - 1))
        missed = its_map.gram(reported, reported) - exact
        errors.append(np.sqrt((times * missed**2).sum() / (times * exact**2).sum()))
    assert trial["maps"] == 10
    assert trial["error_mean"] == pytest.approx(np.mean(errors))
    assert trial["error_sd"] == pytest.approx(np.std(errors, ddof=1))


@pytest.mark.nightly
def test_without_a_dataset_nothing_that_learns_is_tried_and_the_answer_says_so() -> None:
    plain = Wanted(64, None)
    assert learned_from([GAUSSIAN], 16, plain) == set()
    assert learned_from([GAUSSIAN], 16, wanted()) == {"letters"}
    found = recommended(ROWS, [GAUSSIAN], plain, seeds=1)
    assert found["learned_rows"] is None
    assert not [trial for trial in found["ranked"] if trial["spec"]["sampler"].get("dataset")]
    assert any("landmarks" in note for note in found["notes"])
    assert not recommended(ROWS, [GAUSSIAN], wanted(64), seeds=1, building=building(), shares=SHARED)["notes"]


@pytest.mark.nightly
def test_a_target_is_reached_with_fewer_columns() -> None:
    plain = recommended(ROWS, [GAUSSIAN], Wanted(None, 0.2), seeds=1)["ranked"][0]
    best = recommended(ROWS, [GAUSSIAN], wanted(None, 0.2), seeds=1, building=building(), shares=SHARED)["ranked"][0]
    assert best["error_mean"] <= 0.2
    assert best["n_output"] < plain["n_output"]


@pytest.mark.gate
@pytest.mark.parametrize("most", with_nightly([9], [2, 30]))
def test_trials_go_on_where_they_were(most: int) -> None:
    def run(progress: WatchedWork) -> list[Any]:
        asked = wanted(64, samplers=[UNIFORM, sampler(kind="landmarks", dataset="letters")])
        answer = recommended(ROWS, [GAUSSIAN], asked, seeds=2, building=building(progress=progress), shares=SHARED)
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


@pytest.mark.nightly
def test_curves_of_samplers_of_one_kind_have_names_of_their_own() -> None:
    samplers = [UNIFORM, sampler(kind="landmarks", dataset="letters"), sampler(kind="sobol")]
    answer = recommended(ROWS, [GAUSSIAN], wanted(samplers=samplers), seeds=1, building=building(), shares=SHARED)
    ((panel,),) = drawing(answer, "posted rows").rows
    labels = {getattr(mark, "label", None) for mark in panel.marks}
    assert labels - {f"best: {label}" for label in labels} == {"landmarks uniform", "landmarks rp_cholesky", "sobol"}


def test_a_sampler_that_wants_more_rows_than_a_trial_has_is_told_so() -> None:
    greedy = sampler(kind="landmarks", dataset="letters", rows=len(LETTERS) - 20)
    answer = recommended(
        ROWS, [GAUSSIAN], wanted(64, samplers=[greedy, UNIFORM]), seeds=1, building=building(), shares=SHARED
    )
    assert {one["sampler"]["rows"] for one in answer["skipped"]} == {len(LETTERS) - 20}
    assert all(
        f"{len(SHARED.reported.learned)} rows of it are there" in str(one["reason"]) for one in answer["skipped"]
    )


def test_where_only_what_learns_serves_a_dataset_is_asked_for() -> None:
    with pytest.raises(InvalidInput, match="put them as a dataset") as caught:
        recommended(ROWS, [GAUSSIAN], Wanted(64, None, []))
    assert caught.value.pointer == "/vectors"
