"""Recommendations on rows of letters: what is tried, what is measured, how it is ranked."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from app.core.building import Building
from app.core.errors import InvalidInput
from app.core.kernels import Kernel
from app.core.maps import FeatureMap, make_map
from app.core.recommendations import measuring
from app.core.recommendations.candidates import Objective, Wanted
from app.core.recommendations.measuring import Labels, shared_out
from app.core.recommendations.trials import recommend
from app.core.samplers.sobol import Sobol
from app.core.spec import Sampler
from service_tests.cases import each
from service_tests.core.interrupted import WatchedWork
from service_tests.core.specs import spec

LETTERS = np.load(Path(__file__).parents[3] / "examples" / "letters.npy")[:1600].astype(np.float32)
ROWS, HELD_OUT = LETTERS[:800], LETTERS[800:]

KERNELS: list[dict[str, Any]] = [
    {"kind": "gaussian", "length_scale": 5.0},
    {"kind": "laplacian", "length_scale": 20.0},
    {"kind": "cauchy", "length_scale": 8.0},
    {"kind": "matern", "length_scale": 6.0, "nu": 2.5},
    {"kind": "correlation_rbf", "gamma": 4.0},
    {"kind": "anova", "length_scale": 4.0, "subsets": [[0, 1, 2], [3, 4, 5, 6]]},
    {"kind": "gmm"},
]


def kernel(members: dict[str, Any]) -> Kernel:
    adapter: TypeAdapter[Kernel] = TypeAdapter(Kernel)
    return adapter.validate_json(TypeAdapter(dict).dump_json(members))


def sampler(**members: Any) -> Sampler:
    adapter: TypeAdapter[Sampler] = TypeAdapter(Sampler)
    return adapter.validate_python(members)


def duplicates(rows: Any) -> set[bytes]:
    texts = [row.tobytes() for row in rows]
    return {text for text in texts if texts.count(text) > 1}


def plain_errors(rows: Any, seeds: range) -> list[float]:
    """Errors of sobol over seeds, with entries off the diagonal as often as in a matrix of 100 rows."""
    exact = np.exp(-((rows[:, None].astype(float) - rows[None]) ** 2).sum(axis=2) / 50)
    n = len(rows)
    times = np.where(np.eye(n) > 0, 1.0, 99 / (n - 1))
    errors = []
    for seed in seeds:
        its = spec(input_dim=16, s=64, seed=seed, kernel=KERNELS[0], sampler={"kind": "sobol"})
        z = make_map(its).transform(rows).astype(np.float64)
        errors.append(float(np.sqrt((times * (z @ z.T - exact) ** 2).sum() / (times * exact**2).sum())))
    return errors


def test_the_errors_are_those_of_a_plain_computation_over_the_seeds() -> None:
    ranked = recommend(ROWS[:100], [kernel(KERNELS[0])], Wanted(128, None, [sampler(kind="sobol")]), seeds=2, seed=9)
    assert ranked["target_reached"] is None
    trial = ranked["ranked"][0]
    assert trial["n_output"] == 128
    assert trial["spec"]["seed"] == 9
    shares = shared_out(np.arange(100), 100, 9)
    # Two maps are for choosing. The answer tells of ten others, and of rows that none was chosen by.
    chosen_by, reported = ROWS[shares.choosing[0].measured], ROWS[shares.reported.measured]
    assert not {row.tobytes() for row in chosen_by} & {row.tobytes() for row in reported} - duplicates(ROWS[:100])
    assert trial["maps"] == 10
    assert trial["error_mean"] == pytest.approx(np.mean(plain_errors(reported, range(57, 67))), rel=1e-5)
    assert trial["error_sd"] == pytest.approx(np.std(plain_errors(reported, range(57, 67)), ddof=1), rel=1e-3)
    assert trial["choosing_error"] == pytest.approx(np.mean(plain_errors(chosen_by, range(9, 11))), rel=1e-5)
    assert trial["bytes"] == 64 * 17 * 4
    assert trial["seconds_per_1000_rows"] > 0


def test_more_maps_are_measured_of_those_that_may_be_the_best_and_others_are_told_of() -> None:
    work = WatchedWork()
    answer = recommend(ROWS[:100], [kernel(KERNELS[0])], Wanted(64, None), building=Building(progress=work))
    maps = [trial["maps"] for trial in answer["ranked"]]
    assert maps[0] == 10
    assert min(maps) == 3
    assert answer["ranked"][0]["tied_with_best"] is True
    assert {trial["tied_with_best"] for trial in answer["ranked"]} == {True, False}
    done = json.loads(work.states[-1].partition(b"\n")[0])["finished"]
    seeds = {json.loads(text)["seed"] for text in done}
    assert {*range(6), *range(48, 58)} <= seeds <= {*range(58)}


def test_a_quick_recommendation_measures_few_maps_of_the_widest() -> None:
    works = [WatchedWork(), WatchedWork()]
    full, quick = (
        recommend(
            ROWS[:100], [kernel(KERNELS[0])], Wanted(64, None), quick=is_quick > 0, building=Building(progress=work)
        )
        for is_quick, work in enumerate(works)
    )
    finished = [len(json.loads(work.states[-1].partition(b"\n")[0])["finished"]) for work in works]
    assert finished[1] < finished[0] / 3 < 60
    assert quick["ranked"][0]["maps"] == 3
    assert {trial["maps"] for trial in quick["ranked"]} <= {1, 3, 4}
    widest = {trial["spec"]["sampler"]["kind"]: trial["n_output"] for trial in full["ranked"][::-1]}
    assert all(trial["n_output"] == widest[trial["spec"]["sampler"]["kind"]] for trial in quick["ranked"])
    assert quick["ranked"][0]["error_mean"] < 1.2 * full["ranked"][0]["error_mean"]


def test_few_labelled_rows_all_take_part_in_a_quick_choice() -> None:
    """Of 60 rows, a fold has 10, on which most scores would be equal."""
    rows = ROWS[:60]
    labels = Labels((rows.sum(axis=1) > np.median(rows.sum(axis=1))).tolist())
    wanted = Wanted(16, None, objective=Objective.score)
    shares = shared_out(np.arange(60), 60, 0, strata=labels.strata())
    answer = recommend(rows, [kernel(KERNELS[0])], wanted, quick=True, labels=labels, shares=shares)
    tenths = [10 * (trial["choosing_score"] or 0) for trial in answer["ranked"]]
    assert any(abs(one - round(one)) > 0.1 for one in tenths)


@each("factor", [1, 1000])
@each("scale", [2.0, (2.0, 2.0, 2.0)])
def test_a_note_says_if_columns_differ_in_size(factor: float, scale: Any) -> None:
    rows = np.random.default_rng(1).normal(size=(30, 2)) * [1.0, factor]
    rows = np.column_stack([rows, np.full(30, 0.1)])  # whose deviation is a rounding error
    answer = recommend(
        rows, [kernel({"kind": "gaussian", "length_scale": scale})], Wanted(8, None, [Sobol(kind="sobol")])
    )
    is_noted = "try input standardize" in " ".join(answer["notes"])
    assert is_noted == (factor == 1000 and scale == 2.0)


@pytest.mark.parametrize("is_linear", [True, False])
def test_a_note_says_if_no_map_is_better_than_none(is_linear: bool) -> None:
    rows = np.random.default_rng(3).normal(size=(200, 2))
    labels = Labels((rows @ [1.0, 2] if is_linear else rows[:, 0] * rows[:, 1]).tolist())
    wanted = Wanted(32, None, objective=Objective.score)
    shares = shared_out(np.arange(200), 200, 0, strata=labels.strata())
    smooth = [kernel({"kind": "gaussian", "length_scale": 2.0})]
    answer = recommend(rows, smooth, wanted, quick=True, labels=labels, shares=shares)
    assert ("the linear model without a map scores 1.000" in answer["notes"][0]) == is_linear
    assert (answer["baselines"][0]["score"] >= (answer["ranked"][0]["score_mean"] or 0)) == is_linear


def test_for_time_each_sampler_grows_until_it_reaches_the_target_and_the_fastest_is_best(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # As if wide maps were fast.
    def seconds(its_map: FeatureMap, *_: Any) -> float:
        return 1 / its_map.n_output

    monkeypatch.setattr(measuring, "_seconds", seconds)
    samplers = tuple(sampler(kind=kind) for kind in ("sobol", "monte_carlo", "structured_orthogonal", "antithetic"))
    wanted = Wanted(None, 0.3, samplers, objective=Objective.time)
    answer = recommend(ROWS[:200], [kernel(KERNELS[0])], wanted, seeds=2)
    found = answer["ranked"]
    within = [trial for trial in found if trial["error_mean"] <= 0.3]
    assert answer["target_reached"] is True
    assert found[: len(within)] == sorted(within, key=lambda trial: trial["seconds_per_1000_rows"])
    assert answer["best"] == found[0]["spec"]
    assert found[0]["n_output"] == max(trial["n_output"] for trial in within)
    # Once reached, a sampler is not tried wider; the first to reach it bounds the others.
    kinds = [trial["spec"]["sampler"]["kind"] for trial in within]
    assert len(set(kinds)) == len(kinds) > 1
    narrowest = min(trial["n_output"] for trial in within)
    assert narrowest < found[0]["n_output"] <= 4 * narrowest
    assert max(trial["n_output"] for trial in found) <= 4 * narrowest
    by_width = recommend(ROWS[:200], [kernel(KERNELS[0])], wanted._replace(objective=Objective.error), seeds=2)
    assert by_width["ranked"][0]["n_output"] == narrowest == max(trial["n_output"] for trial in by_width["ranked"])


def test_a_target_out_of_reach_of_the_budget_is_answered_with_the_smallest_error() -> None:
    answer = recommend(ROWS[:200], [kernel(KERNELS[0])], Wanted(128, 1e-4), seeds=1)
    assert answer["target_reached"] is False
    found = answer["ranked"]
    assert found[0]["choosing_error"] == min(trial["choosing_error"] or 0 for trial in found) > 1e-4
    assert max(trial["n_output"] for trial in found) == 128
    # Of one map there is no deviation, and nothing to compare; of the best few there are more.
    assert found[0]["maps"] == 10
    assert {trial["error_sd"] for trial in found if trial["maps"] == 1} == {0}
    assert {trial["tied_with_best"] for trial in found if trial["maps"] == 1} == {None}


def test_what_cannot_be_tried_at_all_is_refused_with_its_reasons() -> None:
    with pytest.raises(InvalidInput, match="no sampler can be tried: gcws: sampler gcws is for kernel gmm"):
        recommend(ROWS[:20], [kernel(KERNELS[0])], Wanted(64, None, [sampler(kind="gcws")]))
    with pytest.raises(InvalidInput, match="expected 2 to 1000 rows, got 1"):
        recommend(ROWS[:1], [kernel(KERNELS[0])], Wanted(64, None))
