"""Halton points against scipy's, and against radical inverses by hand."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import qmc

from app.core.samplers.halton import _primes
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


def test_random_scrambling_differs_from_the_plain_sequence_and_between_seeds() -> None:
    one, again, other = points(64, 4, seed=1), points(64, 4, seed=1), points(64, 4, seed=2)
    assert (one == again).all()
    assert (one != other).all()
    assert not np.allclose(one, points(64, 4, scramble="none"), atol=1e-3)


def test_random_scrambling_permutes_each_digit_on_its_own() -> None:
    # In base 5, the first digit of point i and the second of point 5i go through two permutations.
    coordinate = points(25, 3)[:, 2] * 5
    first = np.floor(coordinate[:5])
    second = np.floor((coordinate[::5] % 1) * 5)
    assert sorted(first) == sorted(second) == [0, 1, 2, 3, 4]
    assert (first != second).any()


def test_random_scrambling_is_uniform_over_the_seeds() -> None:
    values = np.array([points(3, 3, seed=seed, skip=5)[2] for seed in range(2000)])
    # Mean ½ with standard error 1/√(12·2000); the same for the mean of squares, ⅓ with √(4/45/2000).
    np.testing.assert_allclose(values.mean(axis=0), 1 / 2, rtol=0, atol=4 / np.sqrt(12 * 2000))
    np.testing.assert_allclose(np.square(values).mean(axis=0), 1 / 3, rtol=0, atol=4 * np.sqrt(4 / 45 / 2000))


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


def test_a_leap_beyond_the_bases_in_use_is_taken() -> None:
    assert spec(input_dim=3, sampler={"kind": "halton", "leap": 6}).sampler.kind == "halton"
    assert refusal(input_dim=4, sampler={"kind": "halton", "leap": 6}).pointer == "/sampler/leap"


def test_dimensions_past_the_limit_are_refused_at_once() -> None:
    told = "passes the 10000 dimensions of halton; monte_carlo has no limit"
    assert refusal(input_dim=1 << 31, s=1, sampler={"kind": "halton", "leap": 6}).detail.endswith(told)
    assert refusal(input_dim=10_001, s=1, sampler={"kind": "halton"}).detail.endswith(told)
    assert spec(input_dim=10_000, s=1, sampler={"kind": "halton", "leap": 104_742}).input_dim == 10_000


@each("count", [1, 2, 5, 6, 7, 1000, 9999])
def test_the_bases_are_the_first_primes(count: int) -> None:
    assert _primes(count) == list(qmc.Halton(count, scramble=False).base)


@pytest.mark.parametrize("scramble", ["none", "reverse_radix"])
def test_the_missing_origin_and_poor_dimensions_are_told_of(scramble: str) -> None:
    made = sampler(kind="halton", scramble=scramble)
    assert made.point_warnings(64, 30) == (f"halton with scramble {scramble} starts at the origin, which was skipped",)
    assert len(made.point_warnings(64, 31)) == 2
    assert "input_dim is 31" in made.point_warnings(64, 31)[1]


def test_random_scrambling_has_nothing_to_tell() -> None:
    assert sampler(kind="halton").point_warnings(63, 1000) == ()


def test_the_extra_uniform_of_matern_counts_as_a_dimension() -> None:
    matern = {"kind": "matern", "length_scale": 1.0, "nu": 1.5}
    assert "multiple of base 11" in refusal(kernel=matern, sampler={"kind": "halton", "leap": 10}).detail
    assert "passes the 9999 dimensions" in refusal(input_dim=10_000, kernel=matern, sampler={"kind": "halton"}).detail
