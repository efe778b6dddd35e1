"""Neighbours by the exact kernel against the whole Gram block."""

import numpy as np
import pytest
from scipy import sparse

from app.core.indexes import hashed_rows as module
from app.core.indexes.hashed_rows import true_neighbours
from app.core.maps import FeatureMap
from app.core.progress import Progress
from service_tests.core.specs import fourier, hashing

ROWS = np.random.default_rng(4).normal(size=(300, 4))


@pytest.mark.parametrize("made", [hashing(s=8), fourier(s=8, dtype="float64")], ids=["gmm", "gaussian"])
@pytest.mark.parametrize("k", [1, 10])
def test_they_are_the_largest_of_the_gram_block(made: FeatureMap, k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PAIRS_PER_BLOCK", 400)
    queries, rows = ROWS[:20], ROWS[20:]
    gram = made.exact_gram(queries, rows)
    for x, y in ((queries, rows), (sparse.csr_array(queries), sparse.csr_array(rows))):
        found = true_neighbours(made, x, y, k, Progress())
        np.testing.assert_allclose(np.sort(found.similarities), np.sort(gram)[:, -k:], rtol=1e-12)
        np.testing.assert_allclose(np.take_along_axis(gram, found.slots, axis=1), found.similarities, rtol=1e-12)
        assert all(len(set(of_query)) == k for of_query in found.slots.tolist())
        assert found.histogram.sum() == gram.size
        mean = np.average(found.middles, weights=found.histogram)
        assert mean == pytest.approx(gram.mean(), abs=0.5 / len(found.histogram))


def test_of_equally_similar_rows_the_first_are_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PAIRS_PER_BLOCK", 60)
    copies = np.repeat(ROWS[:8], 5, axis=0)[np.random.default_rng(2).permutation(40)]
    found = true_neighbours(hashing(s=8), ROWS[:3], copies, 7, Progress())
    gram = hashing(s=8).exact_gram(ROWS[:3], copies)
    np.testing.assert_array_equal(found.slots, np.sort(np.argsort(-gram, axis=1, kind="stable")[:, :7], axis=1))
