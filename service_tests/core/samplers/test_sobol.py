"""Sobol' points against scipy's own sequence, and their balance."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import qmc

from app.core.samplers import sobol
from service_tests.core.specs import refusal, sampler, spec

Points = NDArray[np.float64]


def points(n: int, d: int, seed: int = 1, **fields: Any) -> Points:
    made: Points = sampler(kind="sobol", **fields).points(n, d, np.random.default_rng(seed))
    return made


@pytest.mark.parametrize(("n", "d"), [(1, 3), (100, 3), (1023, 4), (100, 5000), (70_000, 5)])
def test_the_plain_sequence_is_scipys_after_the_origin(n: int, d: int) -> None:
    expected = qmc.Sobol(d, scramble=False).random_base2(n.bit_length())
    assert (expected[0] == 0).all()
    assert (points(n, d, scramble=False) == expected[1 : n + 1]).all()


@pytest.mark.parametrize("scramble", [True, False])
def test_many_small_draws_give_the_points_of_one(scramble: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = points(300, 7, scramble=scramble)
    monkeypatch.setattr(sobol, "_COORDINATES_PER_DRAW", 7 * 8)
    assert (points(300, 7, scramble=scramble) == whole).all()


@pytest.mark.parametrize(("n", "d"), [(256, 21), (128, 5000)])
def test_scrambled_points_are_balanced_in_every_coordinate_at_a_power_of_two(n: int, d: int) -> None:
    cells = np.sort(np.floor(points(n, d) * n), axis=0)
    assert (cells == np.arange(n)[:, None]).all()


def test_more_dimensions_than_direction_numbers_are_refused_and_as_many_are_not() -> None:
    assert spec(input_dim=21_201, sampler={"kind": "sobol"}).input_dim == 21_201
    error = refusal(input_dim=21_202, sampler={"kind": "sobol"})
    assert error.pointer == "/sampler/kind"
    assert error.detail == "input_dim 21202 passes the 21201 dimensions of sobol; monte_carlo has no limit"


def test_the_extra_uniform_of_matern_counts_as_a_dimension() -> None:
    matern = {"kind": "matern", "length_scale": 1.0, "nu": 1.5}
    assert spec(input_dim=21_200, kernel=matern, sampler={"kind": "sobol"}).input_dim == 21_200
    assert "passes the 21200 dimensions" in refusal(input_dim=21_201, kernel=matern, sampler={"kind": "sobol"}).detail
