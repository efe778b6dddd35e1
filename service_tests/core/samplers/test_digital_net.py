"""Interlaced nets against scipy's Sobol' points and against bit strings zipped by hand."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import qmc

from app.core.samplers import sobol
from service_tests.core.specs import refusal, sampler, spec

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


@pytest.mark.parametrize(("alpha", "n", "finest"), [(1, 16, 16), (1, 256, 256), (2, 256, 16), (3, 256, 8), (4, 256, 8)])
def test_shifted_points_are_balanced_in_every_coordinate_at_a_power_of_two(alpha: int, n: int, finest: int) -> None:
    # An interlaced coordinate takes bits from alpha others, which are balanced together on coarser cells only.
    made = points(n, 5, alpha=alpha)
    for cells in 2 ** np.arange(1, finest.bit_length()):
        counts = np.array([np.bincount(np.floor(column * cells).astype(int), minlength=cells) for column in made.T])
        assert (counts == n // cells).all()


@every_alpha
def test_all_points_are_distinct_and_inside_the_cube(alpha: int) -> None:
    # More than 2^13 and 2^17: as many as 52/4 and 52/3 digits can tell apart.
    for scramble in (False, True):
        made = points((1 << 17) + 8, 1, alpha=alpha, scramble=scramble)
        assert made.min() > 0
        assert made.max() < 1
        assert len(np.unique(made)) == len(made)


@every_alpha
def test_many_small_draws_give_the_points_of_one(alpha: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = points(300, 7, alpha=alpha)
    monkeypatch.setattr(sobol, "_COORDINATES_PER_DRAW", 7 * 8 * alpha)
    assert (points(300, 7, alpha=alpha) == whole).all()


def test_a_shifted_coordinate_is_uniform_over_the_seeds() -> None:
    first = np.array([points(3, 3, seed=seed)[2] for seed in range(1500)])
    np.testing.assert_allclose(first.mean(axis=0), 1 / 2, rtol=0, atol=4 / np.sqrt(12 * 1500))


def test_a_smooth_integral_in_two_dimensions_converges_faster_than_one_over_n() -> None:
    def mean_error(alpha: int, n: int) -> float:
        """Root mean square over 40 shifts for a smooth function that is not periodic; its integral is (e − 1)²."""
        made = [points(n, 2, seed=seed, alpha=alpha) for seed in range(40)]
        errors = np.array([np.exp(each.sum(axis=1)).mean() for each in made]) - (np.e - 1) ** 2
        return float(np.sqrt(np.square(errors).mean()))

    sizes = 2.0 ** np.arange(6, 13)
    slopes = {
        alpha: np.polyfit(np.log(sizes), np.log([mean_error(alpha, int(n)) for n in sizes]), 1)[0] for alpha in (1, 2)
    }
    assert slopes[2] < -1.5
    assert slopes[1] > -1.3  # the Sobol' points, for comparison


@pytest.mark.parametrize(("alpha", "most"), [(1, 21_201), (2, 10_600), (3, 7067), (4, 5300)])
def test_dimensions_past_the_direction_numbers_are_refused_and_as_many_are_not(alpha: int, most: int) -> None:
    fields = {"kind": "digital_net", "alpha": alpha}
    assert spec(input_dim=most, sampler=fields).input_dim == most
    assert points(2, most, alpha=alpha).shape == (2, most)
    error = refusal(input_dim=most + 1, sampler=fields)
    assert error.pointer == "/sampler/kind"
    told = f"passes the {most} dimensions of digital_net with alpha {alpha}; monte_carlo has no limit"
    assert error.detail == f"input_dim {most + 1} {told}"
    matern = {"kind": "matern", "length_scale": 1.0, "nu": 2.5}
    assert f"passes the {most - 1} dimensions" in refusal(input_dim=most, kernel=matern, sampler=fields).detail


def test_what_the_client_should_know_is_told() -> None:
    assert sampler(kind="digital_net").point_warnings(64, 3) == ()
    unbalanced = "digital_net is balanced only at a power of two; s = 65, take 64 or 128"
    assert sampler(kind="digital_net").point_warnings(65, 3) == (unbalanced,)
    assert sampler(kind="digital_net", alpha=1, scramble=False).point_warnings(64, 3) == (
        "digital_net with alpha 1 is the Sobol' sequence",
        "digital_net without scrambling starts at the origin, which was skipped",
    )
