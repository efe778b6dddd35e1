"""Length scales from data against brute force."""

from typing import Any

import numpy as np
import pytest
import scipy
from scipy import sparse

from app.core import length_scales
from app.core.datasets import sample_rows
from app.core.errors import InvalidInput
from app.core.input import Fit, fit_input
from app.core.kernels import KERNELS
from app.core.length_scales import Heuristic, length_scale, per_column
from app.core.neighbours import Metric

ROWS = np.random.default_rng(3).normal(size=(620, 4)) * [1, 2, 3, 0.1]


@pytest.mark.parametrize(("kind", "order"), [("gaussian", 2), ("cauchy", 2), ("matern", 2), ("laplacian", 1)])
def test_the_scales_are_those_of_sorted_distances(kind: str, order: int) -> None:
    metric = KERNELS[kind].metric
    distances = np.linalg.norm(ROWS[:, None] - ROWS[None], ord=order, axis=2)
    tenth = np.sort(distances, axis=1)[:, 10].mean()
    pairs = np.median(distances[np.triu_indices(420, 1)])
    for form in (np.asarray, sparse.csr_array):
        assert length_scale(Heuristic.nearest_neighbor, form(ROWS), metric) == pytest.approx(tenth, rel=1e-12)
        # Of 420 rows there are not too many pairs to take them all.
        assert length_scale(Heuristic.median, form(ROWS[:420]), metric) == pytest.approx(pairs, rel=1e-12)


def test_neighbours_are_sought_among_all_rows_also_of_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(5).normal(size=(6000, 3))
    tenth = np.asarray(scipy.spatial.cKDTree(rows).query(rows, [11])[0])[:, 0]
    monkeypatch.setattr(length_scales, "_MOST_DIFFERENCES", 500 * 6000 * (3 + 16))
    found = length_scale(Heuristic.nearest_neighbor, rows, "euclidean")
    error = tenth.std() / np.sqrt(500)
    assert 0 < abs(found - tenth.mean()) < 4 * error, "a sample, and a good one"
    in_sample = length_scale(Heuristic.nearest_neighbor, rows[:500], "euclidean")
    assert in_sample > tenth.mean() + 20 * error, "among few rows neighbours are far"
    assert length_scale(Heuristic.nearest_neighbor, rows, "euclidean", threads=2) == found


def test_the_median_of_many_pairs_is_that_of_a_sample() -> None:
    rows = np.random.default_rng(5).normal(size=(900, 5)).astype(np.float32)
    rows[300:] *= 20  # rows beside each other are more alike than others
    distances = scipy.spatial.distance.pdist(rows.astype(float))
    for form in (np.asarray, sparse.csr_array):
        found = length_scale(Heuristic.median, form(rows), "euclidean")
        # The share of smaller distances has a standard error of 1/(2√m).
        assert abs(np.mean(distances < found) - 0.5) < 4 / (2 * np.sqrt(1 << 17))
        assert length_scale(Heuristic.median, form(rows), "euclidean") == found


@pytest.mark.parametrize("heuristic", list(Heuristic))
def test_rows_far_from_zero_have_the_scale_of_their_differences(heuristic: Heuristic) -> None:
    near = np.random.default_rng(8).integers(0, 1 << 12, (300, 3)) / 64
    there = length_scale(heuristic, near, "euclidean")
    assert length_scale(heuristic, near + 2.0**31, "euclidean") == there
    assert length_scale(heuristic, sparse.csr_array(near + 2.0**31), "euclidean") == pytest.approx(there, rel=1e-14)


@pytest.mark.parametrize("heuristic", list(Heuristic))
def test_rows_count_as_a_map_sees_them(heuristic: Heuristic) -> None:
    rows = ROWS.astype(np.float32)
    wanted = fit_input(Fit.standardize, rows)
    by_hand = wanted.apply(rows, "")
    found = length_scale(heuristic, rows, "cityblock", seen=lambda some: wanted.apply(some, ""))
    assert found == length_scale(heuristic, by_hand, "cityblock")
    of_each = per_column(found, rows, seen=lambda some: wanted.apply(some, ""))
    np.testing.assert_allclose(of_each, found, rtol=1e-12)


def test_too_few_rows_are_refused() -> None:
    assert length_scale(Heuristic.nearest_neighbor, ROWS[:11], "euclidean") > 0
    with pytest.raises(InvalidInput, match="length_scale 'nearest_neighbor' needs 11 rows or more, got 10"):
        length_scale(Heuristic.nearest_neighbor, ROWS[:10], "euclidean")
    assert length_scale(Heuristic.median, ROWS[:2], "euclidean") > 0
    with pytest.raises(InvalidInput, match="needs 2"):
        length_scale(Heuristic.median, ROWS[:1], "euclidean")


@pytest.mark.parametrize("heuristic", list(Heuristic))
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_equal_rows_have_no_length_scale(heuristic: Heuristic, form: Any) -> None:
    with pytest.raises(InvalidInput, match="is 0 on these rows"):
        length_scale(heuristic, form(np.ones((20, 3))), "euclidean")


def test_a_scale_per_column_is_as_its_deviation() -> None:
    rows = np.column_stack([ROWS, np.full(620, 0.1), 1e6 + ROWS[:, 0], np.zeros(620)])
    deviations = rows.std(axis=0)
    told = np.where([0, 0, 0, 0, 1, 0, 1], 2.5, 2.5 * deviations / np.sqrt(np.mean(deviations**2)))
    for form in (np.asarray, sparse.csr_array):
        np.testing.assert_allclose(per_column(2.5, form(rows)), told, rtol=1e-9)
        assert per_column(2.5, form(rows))[4:7:2] == (2.5, 2.5), "constant columns have the scale itself"
        assert per_column(2.5, form(np.ones((3, 2)))) == (2.5, 2.5)


@pytest.mark.parametrize("heuristic", list(Heuristic))
def test_distances_beyond_float64_are_refused(heuristic: Heuristic) -> None:
    rows = np.random.default_rng(3).choice([-1e308, 1e308], (30, 3))
    with pytest.raises(InvalidInput, match="is inf on these rows; give a number"):
        length_scale(heuristic, rows, "euclidean")


@pytest.mark.parametrize("heuristic", list(Heuristic))
def test_distances_whose_squares_lose_digits_are_refused(heuristic: Heuristic) -> None:
    rows = np.random.default_rng(3).standard_normal((30, 3))
    for size in (1e-155, 1e-162):
        with pytest.raises(InvalidInput, match=r"is \d.*e-1\d\d on these rows; give a number"):
            length_scale(heuristic, size * rows, "euclidean")
        with pytest.raises(InvalidInput, match="columns are so different"):
            per_column(1.0, np.column_stack([size * rows, rows]))
    fine: list[tuple[float, Metric]] = [(1e-145, "euclidean"), (1e-200, "cityblock")]
    for size, metric in fine:
        found, usual = (length_scale(heuristic, one, metric) for one in (size * rows, rows))
        np.testing.assert_allclose(found, size * usual, rtol=1e-12)


def test_rows_that_are_much_longer_than_others_have_no_neighbours_sought() -> None:
    d, n = 30_000, 20_000
    counts = np.ones(n, np.int64)
    counts[sample_rows(n, 64, 0)] = d
    columns = np.concatenate([np.arange(count) for count in counts])
    rows = sparse.csr_array((np.ones(len(columns)), columns, np.cumsum([0, *counts])), shape=(n, d))
    with pytest.raises(InvalidInput, match="so many more entries than others"):
        length_scale(Heuristic.nearest_neighbor, rows, "euclidean")
