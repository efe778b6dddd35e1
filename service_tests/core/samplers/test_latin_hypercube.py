"""One point in each slice of every coordinate."""

import numpy as np
import pytest
from numpy.typing import NDArray

from service_tests.core.specs import sampler


def points(n: int, d: int, seed: int = 1) -> NDArray[np.float64]:
    made: NDArray[np.float64] = sampler(kind="latin_hypercube").points(n, d, np.random.default_rng(seed))
    return made


@pytest.mark.parametrize(("n", "d"), [(1, 3), (7, 4), (100, 20), (1000, 3), (5, 300)])
def test_every_slice_of_every_coordinate_holds_one_point(n: int, d: int) -> None:
    cells = np.sort(np.floor(points(n, d) * n), axis=0)
    assert (cells == np.arange(n)[:, None]).all()


def test_coordinates_are_in_orders_of_their_own_and_points_at_random_within_slices() -> None:
    made = points(2000, 4)
    correlations = np.asarray(np.corrcoef(made, rowvar=False))[np.triu_indices(4, 1)]
    # One standard error of a correlation of independent coordinates is 1/√2000, and so of the places within slices.
    assert np.abs(correlations).max() < 4 / np.sqrt(2000)
    within = np.asarray(np.corrcoef(made * 2000 % 1, rowvar=False))[np.triu_indices(4, 1)]
    assert np.abs(within).max() < 4 / np.sqrt(2000)
    assert np.abs((made * 2000 % 1).mean(axis=0) - 0.5).max() < 4 / np.sqrt(12 * 2000)
