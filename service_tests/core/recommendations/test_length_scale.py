"""Length scales from data against brute force."""

import numpy as np
import pytest

from app.core.errors import InvalidInput
from app.core.kernels import KERNELS
from app.core.recommendations.length_scale import Heuristic, length_scale

ROWS = np.random.default_rng(3).normal(size=(620, 4)) * [1, 2, 3, 0.1]


@pytest.mark.parametrize(("kind", "order"), [("gaussian", 2), ("cauchy", 2), ("matern", 2), ("laplacian", 1)])
def test_the_scales_are_those_of_sorted_distances(kind: str, order: int) -> None:
    metric = KERNELS[kind].metric
    distances = np.linalg.norm(ROWS[:, None] - ROWS[None], ord=order, axis=2)
    tenth = np.sort(distances, axis=1)[:, 10].mean()
    assert length_scale(Heuristic.nearest_neighbor, ROWS, metric) == pytest.approx(tenth, rel=1e-12)
    pairs = distances[np.triu_indices(len(ROWS), 1)]
    assert length_scale(Heuristic.median, ROWS, metric) == pytest.approx(np.median(pairs), rel=1e-12)


def test_too_few_rows_are_refused() -> None:
    assert length_scale(Heuristic.nearest_neighbor, ROWS[:11], "euclidean") > 0
    with pytest.raises(InvalidInput, match="10 rows came; length_scale 'nearest_neighbor' needs 11"):
        length_scale(Heuristic.nearest_neighbor, ROWS[:10], "euclidean")
    assert length_scale(Heuristic.median, ROWS[:2], "euclidean") > 0
    with pytest.raises(InvalidInput, match="needs 2"):
        length_scale(Heuristic.median, ROWS[:1], "euclidean")


@pytest.mark.parametrize("heuristic", list(Heuristic))
def test_equal_rows_have_no_length_scale(heuristic: Heuristic) -> None:
    with pytest.raises(InvalidInput, match="is 0 on these rows"):
        length_scale(heuristic, np.ones((20, 3)), "euclidean")


@pytest.mark.parametrize("heuristic", list(Heuristic))
def test_distances_out_of_range_are_refused(heuristic: Heuristic) -> None:
    rows = np.random.default_rng(0).choice([-1e308, 1e308], size=(30, 6))
    with pytest.raises(InvalidInput, match="on these rows"):
        length_scale(heuristic, rows, "cityblock")
