"""Chance collisions of codes: counted, and in simulation."""

from collections.abc import Callable
from itertools import permutations

import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.hashing.encodings import BitsOf, Encoder, Encoding
from app.core.hashing.estimates import Agreements, chances, kernel_estimate, odd_codes
from service_tests.core.specs import hashing, pairs

Made = Callable[[int], "tuple[Rows, Rows]"]
Rows = NDArray[np.float64]

INDEX = (Encoding.b_bit, Encoding.packed, Encoding.one_hot)
PAIRS, S = 400, 2000


def counted(indices: list[int], bits: int) -> float:
    """Share of ordered pairs of different indices whose lowest bits are equal."""
    equal = [i % 2**bits == j % 2**bits for i, j in permutations(indices, 2)]
    return float(sum(equal) / max(1, len(equal)))


@pytest.mark.parametrize("bits", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("input_dim", [1, 2, 3, 4, 5, 8, 9, 31, 32, 33])
def test_the_chance_of_index_bits_is_that_of_two_different_indices(input_dim: int, bits: int) -> None:
    indices = list(range(2 * input_dim))
    for encoding in INDEX:
        by = Encoder(encoding, bits, BitsOf.index)
        assert by.chance(input_dim) == pytest.approx(counted(indices, bits), rel=1e-15)
        # The lowest bit is the sign. If it is all there is, nothing can be corrected.
        of_one_sign = indices[::2] if bits > 1 else indices
        assert by.chance(input_dim, one_signed=True) == pytest.approx(counted(of_one_sign, bits), rel=1e-15)


@pytest.mark.parametrize("bits", [1, 2, 8, 16])
def test_it_is_zero_while_all_indices_differ_in_their_bits_and_even_in_many_dimensions(bits: int) -> None:
    by = Encoder(Encoding.b_bit, bits, BitsOf.index)
    assert by.chance(2 ** (bits - 1)) == by.chance(2 ** (bits - 1), one_signed=True) == 0
    assert by.chance(2 ** (bits - 1) + 1) > 0
    assert by.chance(1 << 31) == pytest.approx(2.0**-bits, rel=1e-4)
    if bits > 1:
        assert by.chance(1 << 31, one_signed=True) == pytest.approx(2.0 ** (1 - bits), rel=1e-4)


@pytest.mark.parametrize("bits_of", [BitsOf.mixed_index, BitsOf.pair])
def test_mixed_bits_are_even_in_few_dimensions_and_in_rows_of_one_sign_too(bits_of: BitsOf) -> None:
    for input_dim in (1, 5, 1 << 31):
        for one_signed in (False, True):
            assert Encoder(Encoding.b_bit, 3, bits_of).chance(input_dim, one_signed) == 1 / 8


def signed(d: int) -> tuple[Rows, Rows]:
    x, y = np.random.default_rng(d).normal(size=(2, PAIRS, d))
    return x, y


def positive(d: int) -> tuple[Rows, Rows]:
    x, y = np.random.default_rng(d).lognormal(size=(2, PAIRS, d))
    return x, y


def negative(d: int) -> tuple[Rows, Rows]:
    x, y = positive(d)
    return -x, -y


def deviation(rows: tuple[Rows, Rows], by: Encoder, assumed: float) -> float:
    """(mean rate − the one that `assumed` predicts from how often the indices agree), in standard errors."""
    x, y = (pairs(hashing(input_dim=rows[0].shape[1], s=S), half) for half in rows)
    index = (x[..., 0] == y[..., 0]).astype(float)
    excess = (by.encode(x) == by.encode(y)) - index - (1 - index) * assumed
    # Neither the hashes, which all pairs share, nor the pairs, which all hashes share, are the same twice.
    error = np.hypot(excess.mean(axis=0).std() / np.sqrt(S), excess.mean(axis=1).std() / np.sqrt(PAIRS))
    return float(excess.mean() / error)


@pytest.mark.parametrize(("d", "bits"), [(20, 2), (20, 4), (40, 5), (150, 8), (3, 1)])
def test_index_bits_of_rows_of_both_signs_agree_as_often_as_said(d: int, bits: int) -> None:
    by = Encoder(Encoding.b_bit, bits, BitsOf.index)
    assert abs(deviation(signed(d), by, by.chance(d))) < 4
    assert abs(deviation(signed(d), by, 2 * by.chance(d))) > 8


@pytest.mark.parametrize("rows", [positive, negative])
@pytest.mark.parametrize(("d", "bits"), [(20, 2), (20, 4), (40, 5), (150, 6)])
def test_index_bits_of_rows_of_one_sign_agree_as_often_as_said(rows: Made, d: int, bits: int) -> None:
    by = Encoder(Encoding.b_bit, bits, BitsOf.index)
    assert abs(deviation(rows(d), by, by.chance(d, one_signed=True))) < 4
    assert abs(deviation(rows(d), by, by.chance(d))) > 8


@pytest.mark.parametrize("rows", [signed, positive])
def test_index_bits_of_few_dimensions_tell_all_indices_apart(rows: Made) -> None:
    by = Encoder(Encoding.b_bit, 5, BitsOf.index)
    x, y = (pairs(hashing(input_dim=16, s=S), half) for half in rows(16))
    assert ((by.encode(x) == by.encode(y)) == (x[..., 0] == y[..., 0])).all()
    assert by.chance(16) == 0


@pytest.mark.parametrize("encoding", [Encoding.b_bit, Encoding.one_hot])
def test_codes_tell_whether_their_rows_have_one_sign(encoding: Encoding) -> None:
    d = 40
    by = Encoder(encoding, 4, BitsOf.index)
    x = np.concatenate([half(d)[0][:1] for half in (signed, positive, negative, positive)])
    y = np.concatenate([half(d)[1][:1] for half in (signed, positive, negative, negative)])
    x_codes, y_codes = (hashing(input_dim=d, s=100).codes(half, by) for half in (x, y))
    odd = odd_codes(x_codes, y_codes)
    assert odd[1:].tolist() == [0, 200, 100]
    both, one = by.chance(d), by.chance(d, one_signed=True)
    assert chances(by, d, 100, odd).tolist() == [both, one, one, both]
    assert both < one / 1.9


@pytest.mark.parametrize("bits_of", BitsOf)
@pytest.mark.parametrize("encoding", [Encoding.b_bit, Encoding.one_hot, Encoding.fingerprint, Encoding.pairs])
def test_agreements_counted_in_parts_are_those_of_the_whole(encoding: Encoding, bits_of: BitsOf) -> None:
    by = Encoder(encoding, {Encoding.fingerprint: 32, Encoding.pairs: 0}.get(encoding, 2), bits_of)
    x, y = (pairs(hashing(input_dim=20, s=70), half[:30]) for half in positive(20))
    whole, parts = Agreements.none(30), Agreements.none(30)
    whole.add(by, x, y, 0)
    for first, last in ((0, 1), (1, 50), (50, 70)):
        parts.add(by, x[:, first:last], y[:, first:last], first)
    for one, other in zip(whole, parts, strict=True):
        assert one.tolist() == other.tolist()
    assert 0 < whole.codes.sum() < 30 * 70
    assert (whole.zero_bit >= 0).all()
    assert whole.odd.sum() == 0


def test_estimates_take_a_chance_for_each_pair() -> None:
    rate, chance = np.array([0.5, 0.5, 0.75]), np.array([0, 0.25, 0.5])
    estimate = kernel_estimate(rate, 100, chance)
    np.testing.assert_allclose(estimate.value, [0.5, 1 / 3, 0.5], rtol=1e-15)
    np.testing.assert_allclose(estimate.standard_error, [0.05, 0.05 / 0.75, np.sqrt(0.1875) / 5], rtol=1e-14)
