"""Interlaced nets against scipy's Sobol' points and against bit strings zipped by hand."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import qmc

from service_tests.core.specs import sampler

Points = NDArray[np.float64]

ALPHAS = [1, 2, 3, 4]
every_alpha = pytest.mark.parametrize("alpha", ALPHAS)


def points(n: int, d: int, seed: int = 1, **fields: Any) -> Points:
    made: Points = sampler(kind="digital_net", **fields).points(n, d, np.random.default_rng(seed))
    return made


def slow_interlacing(coordinates: list[float], bits: int = 52) -> float:
    """First bits of all coordinates, then their second bits, and so on: as strings, cut after `bits`."""
    strings = [f"{int(coordinate * 2**bits):0{bits}b}" for coordinate in coordinates]
    mixed = "".join("".join(each) for each in zip(*strings, strict=True))[:bits]
    return float(int(mixed, 2) / 2**bits)


@pytest.mark.parametrize(("n", "d"), [(1, 3), (100, 4), (255, 3), (100, 2000)])
def test_alpha_one_is_scipys_sequence_after_the_origin(n: int, d: int) -> None:
    expected = qmc.Sobol(d, scramble=False).random_base2(n.bit_length())[1 : n + 1]
    np.testing.assert_allclose(points(n, d, alpha=1, scramble=False), expected, rtol=0, atol=2.0**-52)


@pytest.mark.parametrize("alpha", [2, 3, 4])
def test_higher_orders_interlace_neighbouring_coordinates_bit_by_bit(alpha: int) -> None:
    d, n = 3, 200
    base = qmc.Sobol(alpha * d, scramble=False, bits=52).random_base2(8)[1 : n + 1]
    expected = [[slow_interlacing(list(row[alpha * j : alpha * (j + 1)])) for j in range(d)] for row in base]
    np.testing.assert_allclose(points(n, d, alpha=alpha, scramble=False), expected, rtol=0, atol=2.0**-52)


@every_alpha
def test_the_shift_is_one_exclusive_or_for_all_points(alpha: int) -> None:
    n, d = 64, 4
    shifted = np.floor(points(n, d, alpha=alpha) * 2.0**52).astype(np.int64)
    plain = np.floor(points(n - 1, d, alpha=alpha, scramble=False) * 2.0**52).astype(np.int64)
    # Shifted points keep the origin, so that the first one is the shift itself.
    assert (shifted[1:] ^ plain == shifted[0]).all()
    assert len(set(shifted[0])) == d
    assert (shifted[0] != np.floor(points(1, d, seed=2, alpha=alpha)[0] * 2.0**52)).all()
