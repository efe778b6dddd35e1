"""Bits of the index of rows with few negative columns: the estimate against the exact kernel."""

import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.hashing.encodings import BitsOf, Encoder, Encoding
from app.core.hashing.estimates import Estimate, chances, collision_rate, kernel_estimate, odd_codes
from service_tests.core.specs import hashing

D, S, PAIRS = 200, 4096, 60


def estimates(k: int, bits: int) -> tuple[Estimate, NDArray[np.float64]]:
    """Of pairs whose k negative columns are the same, and the exact kernel."""
    rng = np.random.default_rng(k)
    x, y = rng.lognormal(size=(2, PAIRS, D))
    for of_x, of_y in zip(x, y, strict=True):
        columns = rng.permutation(D)[:k]
        of_x[columns] *= -1
        of_y[columns] *= -1
    sampling, by = hashing(input_dim=D, s=S), Encoder(Encoding.b_bit, bits, BitsOf.index)
    codes = [sampling.codes(rows, by) for rows in (x, y)]
    chance = chances(by, D, S, *(odd_codes(by, of) for of in codes))
    return kernel_estimate(collision_rate(*codes), S, chance), sampling.exact_pairs(x, y)


@pytest.mark.parametrize(
    ("k", "bits"), [(0, 2), (0, 4), (0, 8), (1, 2), (1, 4), (1, 8), (30, 1), (30, 2), (30, 4), (30, 8)]
)
def test_each_estimate_is_within_four_standard_errors(k: int, bits: int) -> None:
    estimate, exact = estimates(k, bits)
    deviations = (estimate.value - exact) / estimate.standard_error
    # The largest is 0.025: four of them tell an estimate from one that is not corrected for the signs.
    assert estimate.standard_error.max() < 0.03
    assert np.abs(deviations).max() < 4
    # A mean of pairs that share hashes is known no better than each of them.
    assert abs(np.mean(estimate.value - exact)) < np.mean(estimate.standard_error)


def test_one_bit_of_rows_of_one_sign_is_none() -> None:
    estimate, _ = estimates(0, 1)
    assert np.isnan(estimate).all()
