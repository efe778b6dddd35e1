"""Bands for a similarity, against all bands that there are, and pairs that are drawn."""

import numpy as np
import pytest

from app.core.indexes.banding import Banding, banding_for, bucket_words, probability
from service_tests.core.specs import fourier

GAUSSIAN = {"kind": "gaussian", "length_scale": 1.0}


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
    words = [bucket_words(one.view(np.uint8), s, 16, found) for one in (codes, others)]
    share = (words[0] == words[1]).any(axis=0).mean()
    planned = probability(found, 0.7)
    assert 0.95 <= planned < 0.97
    assert abs(share - planned) < 5 * np.sqrt(planned * (1 - planned) / n)


@pytest.mark.parametrize("kind", ["monte_carlo", "sobol", "halton", "orthogonal"])
def test_pairs_that_differ_in_one_column_share_a_band_as_often_as_planned(kind: str) -> None:
    """In 4 maps of 1,000 pairs each, within four standard errors of .0075, as pairs of one map share its frequencies.

    In bands of successive frequencies, .78 (sobol) to .84 (orthogonal) shared a band where .9 were planned.
    """
    rng, d, s, shares = np.random.default_rng(3), 8, 4096, []
    distance = np.sqrt(-2 * np.log(0.5))
    for seed in range(4):
        found = fourier(input_dim=d, s=s, seed=seed, kernel=GAUSSIAN, sampler={"kind": kind})
        x = (8 * rng.standard_normal((1000, d))).astype(np.float32)
        y = x + (distance * np.eye(d)[rng.integers(d, size=1000)]).astype(np.float32)
        rate = float(found.code_law().rates(np.array([0.5]))[0])
        bands, _ = banding_for(s, rate, 0.9)
        of_x, of_y = (bucket_words(found.codes(rows), s, 1, bands) for rows in (x, y))
        shares.append((of_x == of_y).any(axis=0).mean())
    assert abs(np.mean(shares) - probability(bands, rate)) < 0.03
