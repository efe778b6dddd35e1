"""Candidates are exactly the rows that share a bucket, and buckets are those of equal bands."""

import numpy as np
import pytest

from app.core.indexes import banding
from app.core.indexes.banding import Banding, Candidates, bucket_words, order_of_codes, segment
from service_tests.core.indexes.test_scanning import packed, some_codes


@pytest.mark.parametrize("bits", [1, 2, 4, 8, 16])
def test_words_are_equal_where_all_codes_of_a_band_are(bits: int) -> None:
    bands, rows = 5, 3
    whole = some_codes(300, bands * rows + 2, bits)
    s = whole.shape[1]
    words, dealt = bucket_words(packed(whole, bits), s, bits, Banding(bands, rows)), whole[:, order_of_codes(s)]
    assert words.shape == (bands, 300)
    for band in range(bands):
        own = dealt[:, band * rows : (band + 1) * rows]
        equal = (own[:, None] == own[None]).all(axis=2)
        same = words[band][:, None] == words[band][None]
        assert same[equal].all()
        assert (same & ~equal).sum() < 0.01 * (~equal).sum()


@pytest.mark.parametrize("size", [1, 40, 700])
def test_candidates_are_all_that_share_a_word_and_no_others(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(banding, "SEGMENT", 64)
    at = Banding(6, 2)
    codes, queries = (packed(some_codes(n, 12, 8, 4), 8) for n in (size, 20))
    segments = tuple(segment(codes[i : i + 64], 12, 8, at) for i in range(0, size, 64))
    words, asked = bucket_words(codes, 12, 8, at), bucket_words(queries, 12, 8, at)
    found = Candidates(segments, size)
    for i in range(20):
        equal = words == asked[:, i : i + 1]
        buckets = found.buckets(np.ascontiguousarray(asked[:, i]))
        assert (buckets[:, 1] - buckets[:, 0]).sum() == equal.sum()
        np.testing.assert_array_equal(np.sort(found.of(buckets)), np.flatnonzero(equal.any(axis=0)))
