"""What bands find of rows that agree in each hash by themselves, against the law and against looking at all bands."""

import numpy as np
import pytest

from app.core.indexes.hashed_rows import candidate_sizes, first_bands, predict_share
from app.core.progress import no_pause
from service_tests.cases import each

RNG = np.random.default_rng(5)


def agreeing(queries: np.ndarray, m: int, rate: float) -> np.ndarray:
    """m rows for each query (q, s) that agree with it in each hash at a rate, (q, m, s)."""
    same = RNG.random((len(queries), m, queries.shape[1])) < rate
    return np.where(same, queries[:, None], queries[:, None] + 1).astype(np.uint8)


@pytest.mark.parametrize(("rate", "r", "b"), [(0.9, 8, 12), (0.6, 3, 5), (0.3, 1, 4), (0.75, 5, 38)])
def test_as_many_are_found_as_predicted(rate: float, r: int, b: int) -> None:
    queries = RNG.integers(0, 128, (60, 192), np.uint8)
    near, unlike = agreeing(queries, 40, rate), np.full((50, 192), 255, np.uint8)
    first = first_bands(queries, near, unlike, 2, no_pause).neighbours[candidate_sizes(192).index(r)]
    found = ((first >= 0) & (first < b)).mean()
    wanted = predict_share(np.array([rate]), np.ones(1), b, r)
    assert wanted == pytest.approx(1 - (1 - rate**r) ** b, rel=1e-12)
    # 2,400 pairs, whose hashes are drawn each by itself.
    assert abs(found - wanted) < 3.5 * np.sqrt(max(wanted * (1 - wanted), 1e-3) / first.size)


@each("s", [5, 64, 100])
@each("values", [2, 40])
def test_each_pair_is_counted_once_in_the_band_in_which_a_search_first_looks_at_it(s: int, values: int) -> None:
    queries = RNG.integers(0, values, (7, s), np.uint8)
    sampled = RNG.integers(0, values, (50, s), np.uint8)
    found = first_bands(queries, queries[:, None], sampled, 1, no_pause)
    assert (found.neighbours == 0).all(), "a row agrees with itself in the first band"
    for number, r in enumerate(candidate_sizes(s)):
        same = (queries[:, None] == sampled)[:, :, : s // r * r].reshape(7, 50, s // r, r).all(axis=3)
        new = (same.cumsum(axis=2) > 0).sum(axis=1)
        entries = same.sum(axis=1).cumsum(axis=1)
        many = (entries >= 50) | (new > 50 / 4)
        first = np.where(same.any(axis=2), same.argmax(axis=2), s)
        turns = np.where(many.any(axis=1), many.argmax(axis=1), s)
        np.testing.assert_array_equal(found.wholes[number], turns)
        told = np.bincount(np.minimum(first, turns[:, None]).ravel(), minlength=s + 1)[:s]
        np.testing.assert_array_equal(found.others[number], told)


def test_a_search_that_looks_at_all_rows_finds_neighbours_that_agree_nowhere() -> None:
    query, far = np.zeros((1, 64), np.uint8), np.full((1, 1, 64), 7, np.uint8)
    sampled = np.full((8, 64), 9, np.uint8)
    sampled[:3, 2::2] = 0  # three of eight rows agree in the third hash, and in no two hashes in a row
    found = first_bands(query, far, sampled, 1, no_pause)
    np.testing.assert_array_equal(found.neighbours[:2, 0, 0], [2, -1])
    sampled[1:] = 9  # one row has as many entries as there are rows by its eighth, and is one
    found = first_bands(query, far, sampled, 1, no_pause)
    np.testing.assert_array_equal(found.neighbours[:2, 0, 0], [16, -1])
