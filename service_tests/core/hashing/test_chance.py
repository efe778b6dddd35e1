"""Chance collisions of codes, against enumeration."""

from itertools import permutations, product

import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.hashing.encodings import BitsOf, Encoder, Encoding
from app.core.hashing.estimates import chances, odd_codes
from service_tests.cases import each
from service_tests.core.specs import hashing, pairs

Rows = NDArray[np.float64]

INDEX = (Encoding.b_bit, Encoding.packed, Encoding.one_hot)
PAIRS, S = 400, 2000


def counted(indices: list[int], bits: int) -> float:
    """Allocation of ordered pairs of different indices whose lowest bits are equal."""
    equal = [i % 2**bits == j % 2**bits for i, j in permutations(indices, 2)]
    return float(sum(equal) / max(1, len(equal)))


def drawn(d: int, bits: int, negative: tuple[float, float]) -> float:
    """How often different indices have equal bits, if coordinates and signs are drawn independently: enumerated."""
    shares = [[share if i % 2 else 1 - share for i in range(2 * d)] for share in negative]
    different = [(i, j, shares[0][i] * shares[1][j]) for i, j in product(range(2 * d), repeat=2) if i != j]
    return sum(w for i, j, w in different if i % 2**bits == j % 2**bits) / sum(w for _, _, w in different)


@each("bits", [1, 2, 3, 4, 5, 8])
@each("input_dim", [1, 2, 3, 4, 5, 8, 9, 31, 32, 33])
def test_the_chance_of_index_bits_is_that_of_two_different_indices(input_dim: int, bits: int) -> None:
    indices = list(range(2 * input_dim))
    for encoding in INDEX:
        by = Encoder(encoding, bits, BitsOf.index)
        assert by.chance(input_dim) == pytest.approx(counted(indices, bits), rel=1e-14)
        assert by.chance(input_dim, 1.0) == pytest.approx(counted(indices[::2], bits), rel=1e-14)
        assert by.chance(input_dim, 0.0) == 0


@each("bits", [1, 2, 3, 8])
@each("input_dim", [1, 2, 3, 5, 9])
@each("negative", [(0, 0.1), (0.5, 0.25), (0.5, 0.75), (0.25, 0.125), (1, 0.75), (1, 0.25)])
def test_the_chance_of_codes_is_that_of_their_shares_of_negative_samples(
    negative: tuple[float, float], input_dim: int, bits: int
) -> None:
    by = Encoder(Encoding.b_bit, bits, BitsOf.index)
    odd_x, odd_y = (np.array([round(1000 * share)]) for share in negative)
    expected = drawn(input_dim, bits, negative)
    assert chances(by, input_dim, 1000, odd_x, odd_y) == pytest.approx([expected], rel=1e-13)


def signed(d: int) -> tuple[Rows, Rows]:
    x, y = np.random.default_rng(d).normal(size=(2, PAIRS, d))
    return x, y


def positive(d: int) -> tuple[Rows, Rows]:
    x, y = np.random.default_rng(d).lognormal(size=(2, PAIRS, d))
    return x, y


def negative(d: int) -> tuple[Rows, Rows]:
    x, y = positive(d)
    return -x, -y


@pytest.mark.parametrize("encoding", [Encoding.b_bit, Encoding.one_hot])
def test_codes_tell_how_many_of_their_samples_are_negative(encoding: Encoding) -> None:
    d, s = 40, 100
    by = Encoder(encoding, 4, BitsOf.index)
    rows = np.concatenate([half(d)[0][:1] for half in (signed, positive, negative)])
    made = hashing(input_dim=d, s=s)
    odd = odd_codes(by, made.codes(rows, by))
    assert odd.tolist() == (pairs(made, rows)[..., 0] % 2).sum(axis=1).tolist()
    assert odd[1:].tolist() == [0, s]
    found = chances(by, d, s, odd[[0, 1, 2, 1]], odd[[1, 1, 2, 2]])
    assert found == pytest.approx([drawn(d, 4, (odd[0] / s, 0)), by.chance(d, 1.0), by.chance(d, 1.0), 0], rel=1e-13)
    assert (odd_codes(by._replace(bits_of=BitsOf.pair), made.codes(rows, by)) == 0).all()
