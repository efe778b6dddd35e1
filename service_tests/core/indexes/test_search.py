"""Searches find the nearest rows among all, or among those that share a bucket, of a tag, above a similarity."""

import numpy as np
import pytest

from app.core.indexes import search as searching
from app.core.indexes.banding import Banding, ChangedBlock, HeldCodes, Layout, bucket_words
from service_tests.cases import each
from service_tests.core.indexes.test_scanning import brute, packed, some_codes

S, N = 12, 700


@each("at", [None, Banding(4, 3), Banding(3, 2), Banding(12, 1)])
@each("tag", [None, 1])
@each("least", [0, 7])
@each("few", [0, 1 << 14])
@each("scan", [False, True])
@each("k", [15, 40])
def test_a_search_is_what_counting_finds(
    at: Banding | None, tag: int | None, least: int, few: int, scan: bool, k: int
) -> None:
    """Of a tag, all are compared if they are few, or if bands hold fewer than 15, however many are wanted."""
    whole, asked = some_codes(N, S, 8, 4), some_codes(9, S, 8, 4)
    codes, queries, marks = packed(whole, 8), packed(asked, 8), np.arange(N, dtype=np.uint64) % 3
    held = HeldCodes(Layout(S, 8, at, N), 1 << 30)
    held.change({0: ChangedBlock(marks, codes, b"")}, N)
    allowed = np.ones(N, np.bool_) if tag is None else marks == tag
    mask = None if tag is None else allowed
    with pytest.MonkeyPatch.context() as patched, held.looked_at() as image:
        patched.setattr(searching, "_FEW", few)
        found = [*searching.search(image, held.layout, queries, k, least, mask, scan, threads=2, enough=15)]
    for i, hits in enumerate(found):
        among, is_scan = allowed, at is None or scan or (tag is not None and few > 0)
        if at is not None:
            shared = bucket_words(codes, S, 8, at) == bucket_words(queries, S, 8, at)[:, i : i + 1]
            # A quarter of the rows and more are as well looked at in their order, with all others.
            is_wide = 4 * shared.any(axis=0).sum() > N or shared.sum() > N
            assert is_wide == (at.rows_per_band == 1)
            in_bands = allowed & shared.any(axis=0)
            enough = (brute(asked[i : i + 1], whole, 15, np.flatnonzero(in_bands), least)[0] >= 0).sum() == 15
            is_scan = is_scan or is_wide or (tag is not None and not enough)
            among = allowed if is_scan else in_bands
        slots, counts = brute(asked[i : i + 1], whole, k, np.flatnonzero(among), least)
        np.testing.assert_array_equal(hits.slots, slots[0][slots[0] >= 0])
        np.testing.assert_array_equal(hits.counts, counts[0][counts[0] >= 0])
        assert hits.candidates == among.sum()
        assert hits.scanned == is_scan


def test_an_empty_index_has_nothing_to_find() -> None:
    for at in (None, Banding(4, 3)):
        held = HeldCodes(Layout(S, 8, at, 128), 1 << 30)
        with held.looked_at() as image:
            (hits,) = searching.search(image, held.layout, packed(some_codes(1, S, 8), 8), 5)
        assert (hits.slots.size, hits.counts.size, hits.candidates) == (0, 0, 0)
