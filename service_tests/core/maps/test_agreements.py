"""Hashes that agree between pairs of rows, counted block by block."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from app.core.hashing.encodings import BitsOf, Encoder, Encoding
from app.core.maps import ConsistentSamplingMap, weighted_minhash
from app.core.maps.base import PAIRS
from service_tests.core.maps.test_consistent_sampling import rows
from service_tests.core.specs import hashing, pairs


@pytest.mark.parametrize("per_block", [1, 150, 1 << 18])
def test_pairs_agree_as_often_whatever_the_blocks_of_hashes(per_block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sampling = hashing(input_dim=5, s=100)
    x, y = np.abs(rows(6, seed=1)), np.abs(rows(6, seed=1) * [1, 2, 1, 1, 1])
    x_samples, y_samples = pairs(sampling, x), pairs(sampling, y)
    monkeypatch.setattr(ConsistentSamplingMap, "samples_at_once", per_block)
    for by in (PAIRS, Encoder(Encoding.b_bit, 2, BitsOf.pair), Encoder(Encoding.one_hot, 2, BitsOf.index)):
        counted = sampling.agreements(x, y, by)
        equal = (by.encode(x_samples) == by.encode(y_samples)).reshape(6, 100, -1).all(axis=2)
        assert counted.codes.tolist() == equal.sum(axis=1).tolist()
        assert counted.zero_bit.tolist() == (x_samples[..., 0] == y_samples[..., 0]).sum(axis=1).tolist()
        assert counted.odd_x.tolist() == counted.odd_y.tolist() == [0] * 6
    counted = sampling.agreements(-x, y, Encoder(Encoding.b_bit, 2, BitsOf.index))
    assert counted.odd_x.tolist() == [100] * 6
    assert counted.odd_y.tolist() == [0] * 6


def test_the_pairs_of_a_map_of_many_hashes_are_counted_in_little_memory() -> None:
    sampling = hashing(input_dim=1 << 20, s=1 << 22)
    x = sparse.csr_array((np.array([1.0, 2.0]), np.array([0, 7]), np.array([0, 2])), shape=(1, 1 << 20))
    tracemalloc.start()
    counted = sampling.agreements(x, 2 * x, Encoder(Encoding.b_bit, 8, BitsOf.pair))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    rate = 0.5 + 0.5 / 256
    assert abs(counted.codes[0] / (1 << 22) - rate) < 4 * np.sqrt(rate * (1 - rate) / (1 << 22))
    # The samples of the two rows are 134 MB; a block of both is 17 MB, and to encode it takes four times as much.
    assert peak < 100e6


def test_rows_are_compared_some_at_a_time_with_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    sampling, by = hashing(input_dim=5, s=8), Encoder(Encoding.b_bit, 2, BitsOf.pair)
    x, y = rows(40, seed=2), rows(40, seed=3)
    whole, sizes, agreements = sampling.similarity(x, y, by, 1.0), list[int](), type(sampling).agreements

    def count(feature_map: Any, x: Any, y: Any, *rest: Any) -> Any:
        sizes.append(x.size + y.size)
        return agreements(feature_map, x, y, *rest)

    monkeypatch.setattr(type(sampling), "agreements", count)
    monkeypatch.setattr(weighted_minhash, "_ENTRIES_PER_BLOCK", 30)
    for name, numbers in sampling.similarity(x, y, by, 1.0).items():
        np.testing.assert_array_equal(numbers, whole[name])
    assert max(sizes) == 30
    assert sum(sizes) == x.size + y.size


def test_packed_codes_are_unpacked_and_compared_some_at_a_time() -> None:
    sampling, by = hashing(input_dim=5, s=512), Encoder(Encoding.packed, 1)
    x, y = sampling.codes(rows(40, seed=2), by), sampling.codes(rows(40, seed=3), by)
    of_each = sampling.similarity_of_codes(x, y, by, None)
    tracemalloc.start()
    found = sampling.similarity_of_codes(np.tile(x, (1000, 1)), np.tile(y, (1000, 1)), by, None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    for name, numbers in found.items():
        np.testing.assert_array_equal(numbers, np.concatenate([of_each[name]] * 1000))
    # Both rows of 20,480,000 bits take 5 MB packed, and 4 bytes each or more unpacked.
    assert peak < 60e6
