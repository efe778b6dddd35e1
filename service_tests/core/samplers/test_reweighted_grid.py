"""Grids weighted for rows: their points, and what they are worth on other rows."""

import tracemalloc
from typing import Any

import numpy as np
import pytest

from app.core.building import Building
from app.core.errors import InvalidInput
from app.core.progress import Progress
from service_tests.core.interrupted import Interrupted, WatchedWork
from service_tests.core.samplers.learned import built, digest
from service_tests.core.specs import kernel, refusal, spec

GRID: dict[str, Any] = {"kind": "reweighted_grid", "dataset": "d"}


def on(rows: Any, progress: Progress | None = None) -> Building:
    """The surroundings of a build with these rows."""

    def rows_of(dataset: str, pointer: str) -> Any:
        assert (dataset, pointer) == ("d", "/sampler/dataset")
        return rows

    return Building(progress=progress or Progress(), rows=rows_of)


def clustered(n: int, d: int, seed: int) -> Any:
    """Rows near a few centres and on few directions, as images are."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(99).normal(size=(8, d)) * np.geomspace(1.5, 0.1, d)
    return centres[rng.integers(8, size=n)] + rng.normal(size=(n, d)) * np.geomspace(0.7, 0.05, d)


@pytest.mark.parametrize("d", [3, 10, 30])
@pytest.mark.parametrize("length_scale", [2.0, "one for each coordinate"])
def test_it_improves_on_other_rows_like_those_fitted(d: int, length_scale: Any) -> None:
    scales = 2.0 if length_scale == 2.0 else np.linspace(1.5, 3, d).tolist()
    members: dict[str, Any] = {"input_dim": d, "kernel": {"kind": "gaussian", "length_scale": scales}, "s": 100}
    others = clustered(400, d, 2)
    exact = kernel(**members["kernel"]).gram(others, others)

    def error(over: dict[str, Any], seed: int) -> float:
        arrays = built(on(clustered(300, d, 1)), sampler=over, seed=seed, **members).arrays
        features = np.exp(1j * others @ arrays["frequencies"].T)
        approximate = ((features * arrays["weights"]) @ features.conj().T).real
        return float(np.sqrt(np.mean((approximate - exact) ** 2)))

    ours, random = (np.mean([error(over, seed) for seed in range(4)]) for over in (GRID, {"kind": "monte_carlo"}))
    assert ours < 0.8 * random


def test_candidates_come_from_the_grid_and_none_twice() -> None:
    made = built(on(clustered(100, 3, 1)), sampler=GRID | {"points_per_dim": 3}, input_dim=3, s=20, seed=5)
    frequencies = made.arrays["frequencies"] * 1.5
    assert np.isin(frequencies.round(9), np.array([-np.sqrt(3), 0, np.sqrt(3)]).round(9)).all()
    assert len(np.unique(np.concatenate([frequencies, -frequencies]).round(9), axis=0)) >= 2 * len(frequencies) - 1
    assert made.report is not None
    assert made.report["objective_end"] < made.report["objective_start"]
    assert made.report["points_kept"] == made.n_frequencies <= 20


def test_candidates_of_many_columns_take_three_times_the_memory_of_their_numbers() -> None:
    d, rows = 20_000, np.zeros((2, 20_000))
    rows[1, :5] = 1
    members: dict[str, Any] = {"input_dim": d, "s": 1, "kernel": {"kind": "gaussian", "length_scale": 4000.0}}
    tracemalloc.start()
    built(on(rows), sampler=GRID | {"candidates": 100, "pairs": 1}, **members)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3.5 * 8 * 100 * d


def test_a_resumed_build_gives_the_bits_of_an_undisturbed_one() -> None:
    rows = clustered(100, 6, 1)
    members: dict[str, Any] = {"sampler": GRID | {"candidates": 200}, "input_dim": 6, "s": 20}
    whole = WatchedWork()
    undisturbed = digest(built(on(rows, whole), **members))
    assert len(whole.states) > 3
    for most in (1, 3, len(whole.states)):
        ended = WatchedWork(most=most)
        with pytest.raises(Interrupted):
            built(on(rows, ended), **members)
        again = WatchedWork(ended.states[-1])
        assert digest(built(on(rows, again), **members)) == undisturbed
        states, others = (list(dict.fromkeys(work.states)) for work in (whole, again))
        assert others == states[states.index(ended.states[-1]) :]


def test_what_has_no_meaning_is_refused() -> None:
    for its in ({"kind": "laplacian", "length_scale": 1.0}, {"kind": "anova", "length_scale": 1.0, "subsets": [[0]]}):
        error = refusal(sampler=GRID, kernel=its)
        assert (error.pointer, "sampler sobol works" in error.detail) == ("/sampler/kind", True)
    assert refusal(sampler=GRID | {"candidates": 63}).pointer == "/sampler/candidates"
    assert spec(sampler=GRID | {"candidates": 64}).s == 64
    error = refusal(sampler=GRID, s=5000)
    assert (error.pointer, "up to 8192 candidates" in error.detail) == ("/s", True)
    with pytest.raises(InvalidInput, match="not at hand") as caught:
        built(sampler=GRID)
    assert caught.value.pointer == "/sampler/dataset"
