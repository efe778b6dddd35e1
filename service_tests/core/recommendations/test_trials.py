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
from app.core.maps import FeatureMap, made
from app.core.recommendations import measuring
from app.core.recommendations.candidates import Objective, Wanted
from app.core.recommendations.held_out import shared_out
from app.core.recommendations.trials import recommended
from app.core.spec import Sampler
from service_tests.cases import with_nightly
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


@pytest.mark.gate
@pytest.mark.parametrize(
    "members", with_nightly(KERNELS[::5], KERNELS[1:5] + KERNELS[6:]), ids=lambda members: str(members["kind"])
)
def test_the_best_is_within_five_percent_of_the_best_on_rows_not_seen(members: dict[str, Any]) -> None:
    found = recommended(ROWS[:300], [kernel(members)], Wanted(256, None), seeds=3, seed=5)["ranked"]
    exact = made(spec(**found[0]["spec"])).exact_gram(HELD_OUT, HELD_OUT)

    def held_out_error(of: Any) -> float:
        errors = []
        for seed in range(5, 8):
            its = spec(**of | {"seed": seed})
            approximate = made(its).gram(HELD_OUT, HELD_OUT)
            errors.append(np.linalg.norm(approximate - exact) / np.linalg.norm(exact))
        return float(np.mean(errors))

    assert held_out_error(found[0]["spec"]) <= 1.05 * min(held_out_error(trial["spec"]) for trial in found)


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
        z = made(its).transform(rows).astype(np.float64)
        errors.append(float(np.sqrt((times * (z @ z.T - exact) ** 2).sum() / (times * exact**2).sum())))
    return errors


def test_the_errors_are_those_of_a_plain_computation_over_the_seeds() -> None:
    ranked = recommended(ROWS[:100], [kernel(KERNELS[0])], Wanted(128, None, [sampler(kind="sobol")]), seeds=2, seed=9)
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


@pytest.mark.nightly
def test_the_same_request_has_the_same_answer_but_for_the_time() -> None:
    once, again = (recommended(ROWS[:60], [kernel(KERNELS[0])], Wanted(64, None), seeds=2, seed=1) for _ in range(2))
    first, second = ([trial | {"seconds_per_1000_rows": 0} for trial in each["ranked"]] for each in (once, again))
    assert first == second
    errors = [trial["choosing_error"] or 0 for trial in once["ranked"]]
    assert 0 < errors[0] <= errors[-1]
    assert errors == sorted(errors)


def test_more_maps_are_measured_of_those_that_may_be_the_best_and_others_are_told_of() -> None:
    work = WatchedWork()
    answer = recommended(ROWS[:100], [kernel(KERNELS[0])], Wanted(64, None), building=Building(progress=work))
    maps = [trial["maps"] for trial in answer["ranked"]]
    assert maps[0] == 10
    assert min(maps) == 3
    assert answer["ranked"][0]["tied_with_best"] is True
    assert {trial["tied_with_best"] for trial in answer["ranked"]} == {True, False}
    done = json.loads(work.states[-1].partition(b"\n")[0])["finished"]
    seeds = {json.loads(text)["seed"] for text in done}
    assert {*range(6), *range(48, 58)} <= seeds <= {*range(58)}


@pytest.mark.nightly
def test_what_is_told_of_the_best_is_no_luck_of_being_chosen() -> None:
    # Four samplers with one law of errors, so that the best of them is the luckiest on the choosing rows.
    alike = [sampler(kind="subsampled_grid", points_per_dim=points) for points in (190, 193, 196, 199)]
    told, choosing, truth = [], [], []
    rows = np.random.default_rng(0).permutation(ROWS)[:60]
    for seed in range(0, 4000, 100):
        wanted = Wanted(16, None, alike)
        best = recommended(rows, [kernel(KERNELS[0])], wanted, seeds=1, seed=seed)["ranked"][0]
        told.append(best["error_mean"])
        choosing.append(best["choosing_error"] or 0)
        reported = rows[shared_out(np.arange(60), 60, seed).reported.measured]
        exact = np.exp(-((reported[:, None].astype(float) - reported[None]) ** 2).sum(axis=2) / 50)
        # Features of one norm have no error on the diagonal, and there are 60 rows.
        off = 59 / (len(reported) - 1)
        norm = np.sqrt(len(reported) + off * (np.square(exact).sum() - len(reported)))
        errors = []
        for other in range(70, 80):
            its = made(spec(**best["spec"] | {"seed": seed + other}))
            errors.append(np.sqrt(off) * np.linalg.norm(its.gram(reported, reported) - exact) / norm)
        truth.append(np.mean(errors))
    difference = np.subtract(told, truth)
    error = difference.std(ddof=1) / np.sqrt(len(difference))
    assert abs(difference.mean()) < 4 * error < 0.05 * np.mean(truth)


@pytest.mark.nightly
def test_a_target_is_reached_with_the_narrowest_spec_that_does() -> None:
    answer = recommended(ROWS[:200], [kernel(KERNELS[0])], Wanted(None, 0.3), seeds=2)
    assert answer["target_reached"] is True
    found = answer["ranked"]
    best = found[0]
    assert best["error_mean"] <= 0.3
    narrower = [trial for trial in found if trial["n_output"] < best["n_output"]]
    assert narrower
    assert min(trial["error_mean"] for trial in narrower) > 0.3
    # Nothing wider than what reached it was tried.
    assert max(trial["n_output"] for trial in found) == best["n_output"]


def test_for_time_each_sampler_grows_until_it_reaches_the_target_and_the_fastest_is_best(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # As if wide maps were fast.
    def seconds(its_map: FeatureMap, *_: Any) -> float:
        return 1 / its_map.n_output

    monkeypatch.setattr(measuring, "_seconds", seconds)
    samplers = tuple(sampler(kind=kind) for kind in ("sobol", "monte_carlo", "structured_orthogonal", "antithetic"))
    wanted = Wanted(None, 0.3, samplers, objective=Objective.time)
    answer = recommended(ROWS[:200], [kernel(KERNELS[0])], wanted, seeds=2)
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
    by_width = recommended(ROWS[:200], [kernel(KERNELS[0])], wanted._replace(objective=Objective.error), seeds=2)
    assert by_width["ranked"][0]["n_output"] == narrowest == max(trial["n_output"] for trial in by_width["ranked"])


def test_the_fastest_map_is_wanted_within_some_error() -> None:
    with pytest.raises(InvalidInput, match="objective time ranks the maps that reach a target_error") as caught:
        recommended(ROWS[:200], [kernel(KERNELS[0])], Wanted(128, None, objective=Objective.time))
    assert caught.value.pointer == "/target_error"


def test_a_target_out_of_reach_of_the_budget_is_answered_with_the_smallest_error() -> None:
    answer = recommended(ROWS[:200], [kernel(KERNELS[0])], Wanted(128, 1e-4), seeds=1)
    assert answer["target_reached"] is False
    found = answer["ranked"]
    assert found[0]["choosing_error"] == min(trial["choosing_error"] or 0 for trial in found) > 1e-4
    assert max(trial["n_output"] for trial in found) == 128
    # Of one map there is no deviation, and nothing to compare; of the best few there are more.
    assert found[0]["maps"] == 10
    assert {trial["error_sd"] for trial in found if trial["maps"] == 1} == {0}
    assert {trial["tied_with_best"] for trial in found if trial["maps"] == 1} == {None}


def test_what_cannot_be_tried_at_all_is_refused_with_its_reasons() -> None:
    with pytest.raises(InvalidInput, match="no sampler can be tried: gcws: sampler gcws hashes"):
        recommended(ROWS[:20], [kernel(KERNELS[0])], Wanted(64, None, [sampler(kind="gcws")]))
    with pytest.raises(InvalidInput, match="1 rows came"):
        recommended(ROWS[:1], [kernel(KERNELS[0])], Wanted(64, None))


def test_a_rule_that_dictates_its_size_is_tried_once() -> None:
    found = recommended(ROWS[:50], [kernel(KERNELS[0])], Wanted(400, None, [sampler(kind="sparse_grid", level=1)]))
    assert [trial["spec"]["sampler"]["kind"] for trial in found["ranked"]] == ["sparse_grid"]
    assert found["ranked"][0]["n_output"] == 2 * 33
