"""Mid-p intervals: their ends by the binomial law, and how often they hold the truth."""

import numpy as np
import pytest
from scipy import stats

from app.core.hashing.estimates import rate_intervals
from service_tests.cases import each

SIZES = [16, 64, 256, 1024]


def coverage(s: int, rates: np.ndarray) -> np.ndarray:
    """The probability that the interval of a binomial count holds the rate, by the law itself."""
    counts = np.arange(s + 1)
    low, high = rate_intervals(counts, s).T
    held = (low <= rates[:, None]) & (rates[:, None] <= high)
    found: np.ndarray = (stats.binom.pmf(counts, s, rates[:, None]) * held).sum(axis=1)
    return found


@each("s", [1, 2, 7, *SIZES])
def test_the_ends_are_where_the_mid_p_values_pass_a_fortieth(s: int) -> None:
    counts = np.arange(s + 1)
    low, high = rate_intervals(counts, s).T
    over = stats.binom.sf(counts, s, low) + stats.binom.pmf(counts, s, low) / 2
    under = stats.binom.cdf(counts - 1, s, high) + stats.binom.pmf(counts, s, high) / 2
    np.testing.assert_allclose(over[1:], 0.025, rtol=1e-7)
    np.testing.assert_allclose(under[:-1], 0.025, rtol=1e-7)
    assert (low[0], high[-1]) == (0, 1)
    assert (low < high).all()
    np.testing.assert_allclose(low, 1 - high[::-1], atol=1e-15)


@pytest.mark.parametrize("s", SIZES)
def test_they_hold_the_rate_as_often_as_they_say(s: int) -> None:
    inner, outer = np.linspace(0.05, 0.95, 901), np.linspace(1 / (100 * s), 0.05, 500)
    # Counts are whole, so that at single rates the coverage swings; over rates it must not.
    assert 0.945 < coverage(s, inner).mean() < 0.97
    assert coverage(s, outer).mean() > 0.95
    assert coverage(s, np.concatenate([inner, outer, 1 - outer])).min() > 0.915
    assert coverage(s, np.array([0.0, 1.0])).tolist() == [1, 1]
