"""Distances to neighbours against brute force."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from app.core.length_scales import as_they_are
from app.core.neighbours import Metric, distances_to_neighbour
from service_tests.cases import each

RNG = np.random.default_rng(2)
METRICS: list[Metric] = ["euclidean", "cityblock"]


def brute_force(queries: Any, rows: Any, place: int, metric: Metric) -> Any:
    lags = np.abs(queries.astype(np.longdouble)[:, None] - rows.astype(np.longdouble)[None])
    distances = lags.sum(axis=2) if metric == "cityblock" else np.sqrt((lags**2).sum(axis=2))
    return np.sort(distances, axis=1)[:, place]


def sparse_rows(n: int, d: int) -> Any:
    rows = RNG.normal(size=(n, d))
    rows[RNG.random((n, d)) < 0.7] = 0
    return rows


@each("metric", METRICS)
@each("place", [0, 3, 10])
@each(("n", "d"), [(11, 3), (300, 1), (700, 5), (40, 300)])
def test_they_are_those_of_sorted_differences(n: int, d: int, place: int, metric: Metric) -> None:
    rows = sparse_rows(n, d)
    queries = np.concatenate([rows[:7], RNG.normal(size=(4, d))])
    told = brute_force(queries, rows, place, metric)
    for some, all_rows in ((queries, rows), (sparse.csr_array(queries), sparse.csr_array(rows))):
        found = distances_to_neighbour(some, all_rows, place, metric, as_they_are)
        np.testing.assert_allclose(found, told.astype(float), rtol=1e-14, atol=1e-300)


@pytest.mark.parametrize("metric", METRICS)
def test_rows_far_from_zero_are_as_far_from_each_other_as_they_are(metric: Metric) -> None:
    """Products and norms would have no digit left: 1.7e9 squared has a spacing of 512."""
    rows = 1.7e9 + 100 * RNG.random((400, 4))
    rows[:, 3] = 0
    told = brute_force(rows[:20], rows, 10, metric).astype(float)
    assert 0 < told.min() < told.max() < 100
    for form in (np.asarray, sparse.csr_array):
        found = distances_to_neighbour(form(rows[:20]), form(rows), 10, metric, as_they_are)
        np.testing.assert_allclose(found, told, rtol=1e-14)


@pytest.mark.parametrize("metric", METRICS)
def test_sparse_rows_may_have_billions_of_columns(metric: Metric) -> None:
    d = 1 << 31
    columns = np.array([0, 5, d - 1, 5, d - 1, 7])
    rows = sparse.csr_array((np.array([3.0, 1, 2, 1, 2.5, 1e9]), columns, np.array([0, 3, 5, 5, 6])), shape=(4, d))
    narrow = np.array([[3.0, 1, 0, 2], [0, 1, 0, 2.5], [0, 0, 0, 0], [0, 0, 1e9, 0]])
    for place in range(4):
        found = distances_to_neighbour(rows[:2], rows, place, metric, as_they_are)
        np.testing.assert_allclose(found, brute_force(narrow[:2], narrow, place, metric).astype(float), rtol=1e-15)
