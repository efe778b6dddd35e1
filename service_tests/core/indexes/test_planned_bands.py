"""Bands for a similarity, against all bands that there are, and pairs that are drawn."""

import numpy as np
import pytest

from app.core.indexes.banding import Banding, banding_for, bucket_words, probability


@pytest.mark.parametrize("recall", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("rate", [0.05, 0.3, 0.62, 0.8, 0.97, 1.0])
@pytest.mark.parametrize("n_codes", [1, 7, 64, 130])
def test_they_are_the_longest_that_have_the_recall(n_codes: int, rate: float, recall: float) -> None:
    every = [Banding(b, r) for r in range(1, n_codes + 1) for b in range(1, n_codes // r + 1)]
    fine = [one for one in every if 1 - (1 - rate**one.rows_per_band) ** one.bands >= recall]
    found, serves = banding_for(n_codes, rate, recall)
    assert serves == bool(fine)
    if fine:
        longest = max(one.rows_per_band for one in fine)
        assert found == min(one for one in fine if one.rows_per_band == longest)
    else:
        assert found == Banding(n_codes, 1)


def test_pairs_share_a_band_as_often_as_planned() -> None:
    """20,000 pairs of codes of 16 bits that agree at a rate of .7: within five standard errors of .0016 at most."""
    rng, n, s = np.random.default_rng(4), 20_000, 96
    found, _ = banding_for(s, 0.7, 0.95)
    codes = rng.integers(0, 1 << 16, (n, s), dtype=np.uint16)
    others = np.where(rng.random((n, s)) < 0.7, codes, rng.integers(0, 1 << 16, (n, s), dtype=np.uint16))
    words = [bucket_words(one.view(np.uint8), 16, found) for one in (codes, others)]
    share = (words[0] == words[1]).any(axis=0).mean()
    planned = probability(found, 0.7)
    assert 0.95 <= planned < 0.97
    assert abs(share - planned) < 5 * np.sqrt(planned * (1 - planned) / n)
