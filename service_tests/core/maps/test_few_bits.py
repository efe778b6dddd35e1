"""Eight bits of a sample on real and on lopsided data: those of the pair are right, those of the index not."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.hashing.encodings import BitsOf, Encoder, Encoding
from app.core.hashing.estimates import collision_rate, kernel_estimate
from service_tests.core.specs import hashing

S, N_PAIRS, BITS = 10_000, 200, 8
LETTERS = Path(__file__).parents[3] / "examples" / "letters.npy"


class Pairs(NamedTuple):
    """Row i of x belongs with row i of y."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]


def letters() -> Pairs:
    """Rows of the Letter data, columns scaled to [−1, 1]."""
    rows = np.load(LETTERS).astype(np.float64)
    rows = 2 * (rows - rows.min(axis=0)) / np.ptp(rows, axis=0) - 1
    chosen = np.random.default_rng(1).permutation(len(rows))[: 2 * N_PAIRS]
    return Pairs(rows[chosen[:N_PAIRS]], rows[chosen[N_PAIRS:]])


def lopsided() -> Pairs:
    """Twelve positive columns of which two carry nearly all the weight."""
    rng = np.random.default_rng(2)
    sizes = np.array([40.0, 25.0] + [0.1] * 10)
    x, y = (sizes * rng.lognormal(sigma=0.8, size=(N_PAIRS, 12)) for _ in range(2))
    return Pairs(x, y)


def errors(made: Pairs, encoding: Encoding, bits_of: BitsOf, bits: int) -> NDArray[np.float64]:
    """Estimate minus exact kernel of each pair, in standard errors of the estimate."""
    sampling = hashing(threads=2, input_dim=made.x.shape[1], s=S)
    how = Encoder(encoding, bits, bits_of)
    exact = sampling.exact_pairs(*made)
    estimate = kernel_estimate(collision_rate(*(sampling.codes(rows, how) for rows in made)), S, how.chance())
    agree = exact + (1 - exact) * how.chance()
    error: NDArray[np.float64] = np.sqrt(agree * (1 - agree) / S) / (1 - how.chance())
    off: NDArray[np.float64] = (estimate.value - exact) / error
    assert np.ptp(exact) > 0.2
    return off


@pytest.mark.parametrize("made", [letters(), lopsided()], ids=["letter", "lopsided"])
def test_bits_of_the_pair_are_within_four_standard_errors_on_every_pair(made: Pairs) -> None:
    off = errors(made, Encoding.b_bit, BitsOf.pair, BITS)
    assert np.abs(off).max() < 4
    # Not by caution: the errors are as large as they are said to be.
    assert 0.8 < off.std() < 1.25


@pytest.mark.parametrize("bits_of", [BitsOf.index, BitsOf.mixed_index])
def test_bits_of_the_index_fail_where_two_columns_carry_the_weight(bits_of: BitsOf) -> None:
    off = errors(lopsided(), Encoding.b_bit, bits_of, BITS)
    assert np.median(off) > 4
    assert (off > 4).mean() > 0.75
    assert off.mean() > 10


def test_so_does_the_index_itself_and_the_whole_pair_does_not() -> None:
    assert (errors(lopsided(), Encoding.zero_bit, BitsOf.index, 0) > 4).mean() > 0.75
    whole: Any = errors(lopsided(), Encoding.pairs, BitsOf.index, 0)
    assert np.abs(whole).max() < 4
