import numpy as np
from scipy import stats

from service_tests.core.maps.landmarks.selection.chosen import GAUSSIAN, numbers_of, prepared, run


def test_all_pairs_of_rows_come_equally_often() -> None:
    # 2 000 draws of one of 20 ordered pairs; 100 of each, standard deviation 10. Significance 1e-4.
    rows = prepared(GAUSSIAN, 5)
    counts = np.zeros((5, 5), np.int64)
    for seed in range(2000):
        first, second = numbers_of(rows, run("uniform", GAUSSIAN, rows, 2, seed).landmarks)
        counts[first, second] += 1
    assert not counts.diagonal().any()
    assert stats.chisquare(counts[~np.eye(5, dtype=bool)]).pvalue > 1e-4
