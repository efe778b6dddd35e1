"""Lattices of a vector searched for one kernel on a box."""

from typing import Any

import numpy as np
import pytest

from app.core.samplers.lattice_search import MOST_CANDIDATES
from service_tests.core.discrepancy.sets import KINDS
from service_tests.core.samplers.learned import Watched, built, digest
from service_tests.core.specs import refusal

CAUCHY = {"kind": "cauchy", "length_scale": 1.0}
LEARNED: dict[str, Any] = {"kind": "lattice", "learn": True, "box": 2.0, "box_scale": 1.0}


@pytest.mark.gate
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("d", [3, 5, 9])
def test_it_betters_the_vector_for_all(name: str, d: int) -> None:
    ratios = []
    for seed in range(3):
        its_kernel = {"kind": name, "length_scale": 1.5}
        made = built(input_dim=d, kernel=its_kernel, sampler=LEARNED, s=101, seed=seed).report
        assert made is not None
        ratios.append(made["objective_end"] / made["objective_start"])
    assert max(ratios) <= 1
    assert np.mean(ratios) < (0.9 if name == "gaussian" or d < 9 else 0.99)


@pytest.mark.parametrize("shift", [True, False])
def test_it_is_a_lattice(shift: bool) -> None:
    made = built(
        sampler=LEARNED | {"shift": shift, "box": [2.0, 1.0, 0.5, 0.1]},
        s=64,
        kernel=CAUCHY,
    )
    frequencies = made.arrays["frequencies"]
    # The uniforms of the Laplace law; differences of neighbours are one vector modulo 1.
    points = np.where(frequencies < 0, np.exp(frequencies) / 2, 1 - np.exp(-frequencies) / 2)
    steps = (np.diff(points, axis=0) % 1) * 64
    np.testing.assert_allclose(steps, np.broadcast_to(steps[0], steps.shape), atol=1e-9)
    assert (np.gcd(steps[0].round().astype(int), 64) == 1).all()
    np.testing.assert_allclose(made.arrays["weights"], 1 / 64)


def test_without_learn_nothing_changes_and_a_box_is_refused() -> None:
    assert digest(built(sampler={"kind": "lattice"})) == digest(built(sampler={"kind": "lattice", "learn": False}))
    assert digest(built(sampler={"kind": "lattice"})) != digest(built(sampler=LEARNED))
    for fields in ({"box": 1.0}, {"dataset": "d"}):
        error = refusal(sampler={"kind": "lattice"} | fields)
        assert (error.pointer, "with learn only" in error.detail) == (f"/sampler/{next(iter(fields))}", True)


def test_a_component_takes_all_units_while_they_are_few() -> None:
    watched = Watched()
    built(watched.building, sampler=LEARNED, s=7)
    # The six units, and what the vector for all has, where that is none of them.
    total = watched.told[0][1]
    assert [(step, of) for step, of, _ in watched.told] == [(step, total) for step in range(1, total + 1)]
    assert 4 * 6 <= total <= 4 * 7
    assert MOST_CANDIDATES >= 64


@pytest.mark.parametrize("its_kernel", [CAUCHY, {"kind": "gaussian", "length_scale": [1.0, 2.0, 0.5, 3.0]}])
def test_it_goes_on_from_every_candidate(its_kernel: dict[str, Any]) -> None:
    whole = Watched()
    made = digest(built(whole.building, sampler=LEARNED, s=11, kernel=its_kernel))
    states = list(dict.fromkeys(whole.states))
    assert states.pop(0) == b""
    assert len(states) == len(whole.told) >= 40
    for done, state in enumerate(states, 1):
        again = Watched(state)
        assert digest(built(again.building, sampler=LEARNED, s=11, kernel=its_kernel)) == made
        assert again.told == whole.told[done:]


def test_its_objective_is_that_of_the_coordinates_so_far() -> None:
    watched = Watched()
    made = built(watched.building, sampler=LEARNED, s=101, kernel=CAUCHY).report
    assert made is not None
    values = [value for _, _, value in watched.told]
    assert None not in values
    assert values[-1] == pytest.approx(made["objective_end"], rel=1e-9)
