"""Bits of (i*, t*) against bits of i* alone: what each says of the kernel, on letters and on dominated rows."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.hashing.encodings import BitsOf, Encoder, Encoding
from app.core.hashing.estimates import collision_rate, kernel_estimate
from service_tests.core.specs import hashing

Rows = NDArray[np.float64]

LETTERS = Path(__file__).parents[3] / "examples" / "letters.npy"
S, PAIRS = 4096, 200


def letters() -> tuple[Rows, Rows]:
    """200 pairs of letters, their columns scaled to [−1, 1]."""
    rows = np.load(LETTERS).astype(np.float64)
    low, high = rows.min(axis=0), rows.max(axis=0)
    rows = 2 * (rows - low) / (high - low) - 1
    chosen = np.random.default_rng(2).permutation(len(rows))[: 2 * PAIRS]
    return rows[chosen[:PAIRS]], rows[chosen[PAIRS:]]


def dominated() -> tuple[Rows, Rows]:
    """200 pairs of positive rows of 16 entries, of which two carry nearly all the weight."""
    rng = np.random.default_rng(3)
    made = []
    for _ in range(2):
        rows = rng.random((PAIRS, 16))
        rows[:, :2] = 100 * (0.2 + rng.random((PAIRS, 2)))
        made.append(rows)
    return made[0], made[1]


def deviations(rows: tuple[Rows, Rows], bits_of: BitsOf, bits: int = 8) -> Rows:
    """(estimate − exact kernel) in standard errors, pair by pair, corrected for chance collisions."""
    sampling = hashing(input_dim=16, s=S)
    encoder = Encoder(Encoding.b_bit, bits, bits_of)
    x, y = (sampling.codes(half, encoder) for half in rows)
    exact = sampling.exact_pairs(*rows)
    chance = encoder.chance(16)
    rate = exact + (1 - exact) * chance
    error = np.sqrt(rate * (1 - rate) / S) / (1 - chance)
    scores: Rows = (kernel_estimate(collision_rate(x, y), S, chance).value - exact) / error
    return scores


@pytest.mark.parametrize("bits", [1, 2, 8])
@pytest.mark.parametrize("rows", [letters, dominated])
def test_bits_of_pairs_are_unbiased(rows: Callable[[], tuple[Rows, Rows]], bits: int) -> None:
    scores = deviations(rows(), BitsOf.pair, bits)
    # All pairs share their hashes, so that the mean is known no better than each; of 200 the largest is below 4.
    assert np.abs(scores).max() < 4
    assert scores.std() > 0.5


def test_bits_of_the_index_fail_visibly_on_dominated_rows() -> None:
    for bits_of in (BitsOf.index, BitsOf.mixed_index):
        scores = deviations(dominated(), bits_of)
        assert (scores > 4).mean() > 0.95
        assert np.median(scores) > 10


def test_the_lowest_bit_of_the_index_is_the_sign() -> None:
    sampling = hashing(input_dim=16, s=S)
    x, y = dominated()
    by_index, mixed = (
        collision_rate(*(sampling.codes(half, Encoder(Encoding.b_bit, 1, bits_of)) for half in (x, y)))
        for bits_of in (BitsOf.index, BitsOf.mixed_index)
    )
    assert (by_index == 1).all()
    assert mixed.mean() < 0.95
