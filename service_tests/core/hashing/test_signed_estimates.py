"""Estimates of kernels from signed codes: their bias and interval, over many draws."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from app.core.hashing.encodings import Encoder, Encoding
from app.core.hashing.signed_codes import SIGNED, agreeing, estimate_kernel, sign_law, write_bits
from service_tests.cases import each
from service_tests.core.hashing.test_sign_law import KERNELS, profile

DRAWS = 4000
BANDS = Encoder(Encoding.fingerprint, 64, rows_per_band=4)


def counts_of(kernel: float, s: int, by: Encoder, name: str) -> Any:
    """How many codes agree in each of many draws of independent bits that follow the law."""
    rate = 1 - sign_law(profile(KERNELS[name])).rates(np.array([kernel]))[0]
    return np.random.default_rng(3).binomial(s // by.rows_per_band, rate**by.rows_per_band, DRAWS)


def found_of(kernel: float, s: int, by: Encoder, name: str, known: bool = True) -> Any:
    counts, exact = counts_of(kernel, s, by, name), np.full(DRAWS, kernel)
    return estimate_kernel(counts, s, by, sign_law(profile(KERNELS[name])), exact if known else None)


@pytest.mark.parametrize("by", [SIGNED, BANDS], ids=["bits", "bands"])
@pytest.mark.parametrize("s", [1024, 4096])
@pytest.mark.parametrize("kernel", [0.3, 0.6, 0.9])
@pytest.mark.parametrize("name", ["gaussian", "laplacian", "matern 1.5"])
def test_the_bias_that_is_told_is_that_of_the_mean_of_estimates(name: str, kernel: float, s: int, by: Encoder) -> None:
    """Summed over all counts, each as likely as the binomial law has it: of order 1/s, told to a hundredth."""
    law, n_codes = sign_law(profile(KERNELS[name])), s // by.rows_per_band
    counts = np.arange(n_codes + 1)
    rate = (1 - law.rates(np.array([kernel]))[0]) ** by.rows_per_band
    mean = stats.binom.pmf(counts, n_codes, rate) @ estimate_kernel(counts, s, by, law, None)["estimate"]
    told = estimate_kernel(counts, s, by, law, np.full(n_codes + 1, kernel))["bias"]
    assert (told == told[0]).all()
    assert told[0] == pytest.approx(mean - kernel, rel=0.01)
    assert -5 / n_codes < told[0] < -0.05 / n_codes


@each("by", [SIGNED, BANDS])
@each("s", [64, 1024])
@each("kernel", [0.0, 1e-6, 0.05, 0.3, 0.6, 0.9, 0.999])
@each("name", ["gaussian", "laplacian", "matern 1.5"])
def test_intervals_hold_the_kernel_as_often_as_they_say(name: str, kernel: float, s: int, by: Encoder) -> None:
    low, high = found_of(kernel, s, by, name, known=False)["interval"].T
    held = ((low <= kernel) & (kernel <= high)).mean()
    # A binomial is in steps: the mid-p interval holds the truth .93 times at least; the standard error is .004.
    assert held > 0.92
    if 0.05 < kernel < 0.95 and s == 1024:
        assert held < 0.98
    assert (low >= 0).all()
    assert (high <= 1).all()
    assert ((low < high) | (high == 0)).all()  # of what lies below 0, nothing is left


@pytest.mark.parametrize("s", [8, 13, 100, 1024])
def test_agreements_are_counted_bit_by_bit_and_what_is_behind_the_last_says_nothing(s: int) -> None:
    rng = np.random.default_rng(s)
    x, y = rng.integers(0, 2, (2, 50, s), np.uint8)
    of_x, of_y = (np.packbits(rows, axis=1, bitorder="little") for rows in (x, y))
    np.testing.assert_array_equal(agreeing(of_x, of_y, s, SIGNED), (x == y).sum(axis=1))
    if s % 8:
        of_x[:, -1] |= 0xFF << s % 8 & 0xFF
        np.testing.assert_array_equal(agreeing(of_x, of_y, s, SIGNED), (x == y).sum(axis=1))
    bands_x, bands_y = (write_bits(rows, s, BANDS) for rows in (of_x, of_y))
    whole = (x == y)[:, : s // 4 * 4].reshape(50, -1, 4).all(axis=2).sum(axis=1)
    np.testing.assert_array_equal(agreeing(bands_x, bands_y, s, BANDS), whole)
