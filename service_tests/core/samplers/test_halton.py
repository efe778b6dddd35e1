"""Halton points against scipy's, and against radical inverses by hand."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import qmc

from service_tests.cases import each
from service_tests.core.specs import refusal, sampler, spec

Points = NDArray[np.float64]

BASES = [2, 3, 5, 7]
DIGITS = {2: 6, 3: 4, 5: 3, 7: 2}
"""For n = base^digits points, some 50 to 125."""


def points(n: int, d: int, seed: int = 1, **fields: Any) -> Points:
    made: Points = sampler(kind="halton", **fields).points(n, d, np.random.default_rng(seed))
    return made


def cells(coordinate: Points, n: int) -> list[int]:
    """Which of n equal cells each point lies in, sorted."""
    return sorted(int(cell) for cell in np.floor(coordinate * n))


def slow_reverse_radix(base: int) -> list[int]:
    """Bit strings of equal length, read backwards, those below the base in the order they come."""
    length = len(f"{base - 1:b}")
    backwards = [int(f"{number:0{length}b}"[::-1], 2) for number in range(2**length)]
    return [number for number in backwards if number < base]


def slow_inverse(index: int, base: int, permutation: list[int]) -> float:
    digits = []
    while index:
        index, digit = divmod(index, base)
        digits.append(permutation[digit])
    return float(sum(digit / base ** (place + 1) for place, digit in enumerate(digits)))


@each(("n", "d"), [(300, 1), (256, 1), (243, 3), (343, 6), (229, 50), (300, 400)])
def test_the_plain_sequence_is_scipys_from_its_point_one_on(n: int, d: int) -> None:
    """Also where the last index is a power of a base, and so the first with another digit."""
    expected = qmc.Halton(d, scramble=False).random(n + 1)[1:]
    np.testing.assert_allclose(points(n, d, scramble="none"), expected, rtol=0, atol=1e-14)


def test_reverse_radix_permutes_every_digit_by_the_reversal_of_its_bits() -> None:
    assert slow_reverse_radix(5) == [0, 4, 2, 1, 3]  # the example that every paper gives
    bases = qmc.Halton(12, scramble=False).base
    expected = [[slow_inverse(i, base, slow_reverse_radix(base)) for base in bases] for i in range(1, 401)]
    made = points(400, 12, scramble="reverse_radix")
    np.testing.assert_allclose(made, expected, rtol=0, atol=1e-14)
    assert not np.allclose(made, points(400, 12, scramble="none"), atol=1e-3)


@each("scramble", ["none", "reverse_radix"])
@each(("skip", "leap"), [(0, 0), (17, 0), (0, 10), (1000, 16)])
def test_skip_and_leap_take_exactly_the_points_they_name(scramble: str, skip: int, leap: int) -> None:
    whole = points(skip + 40 * (leap + 1), 4, scramble=scramble)
    taken = points(40, 4, scramble=scramble, skip=skip, leap=leap)
    np.testing.assert_allclose(taken, whole[skip :: leap + 1][:40], rtol=0, atol=1e-14)


@each("leap", [0, 10])
@each("skip", [0, 1000])
@each(("j", "base"), list(enumerate(BASES)))
def test_random_scrambling_puts_one_point_into_each_elementary_interval(
    j: int, base: int, skip: int, leap: int
) -> None:
    n = base ** DIGITS[base]
    coordinate = points(n, 4, skip=skip, leap=leap)[:, j]
    assert cells(coordinate, n) == list(range(n))
    assert len(set(np.floor(coordinate[: n // base] * base))) == base  # and early, not only at the end


@pytest.mark.parametrize(("leap", "base"), [(1, 2), (2, 3), (6, 7), (9, 2), (20, 3)])
def test_a_leap_that_shares_a_factor_with_a_base_is_refused_and_the_suggested_one_works(leap: int, base: int) -> None:
    error = refusal(sampler={"kind": "halton", "leap": leap})
    assert error.pointer == "/sampler/leap"
    assert f"multiple of base {base} of the sequence" in error.detail
    assert error.detail.endswith("leap 10 works")
    spec(sampler={"kind": "halton", "leap": 10})
    j = BASES.index(base)
    stuck = points(base**2, 4, scramble="none", leap=leap)[:, j]
    assert len(set(np.floor(stuck * base))) == 1


def test_dimensions_past_the_limit_are_refused_at_once() -> None:
    told = "passes the 10000 dimensions of halton; monte_carlo has no limit"
    assert refusal(input_dim=1 << 31, s=1, sampler={"kind": "halton", "leap": 6}).detail.endswith(told)
    assert refusal(input_dim=10_001, s=1, sampler={"kind": "halton"}).detail.endswith(told)
    assert spec(input_dim=10_000, s=1, sampler={"kind": "halton", "leap": 104_742}).input_dim == 10_000
