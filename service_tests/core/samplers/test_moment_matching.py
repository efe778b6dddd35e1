"""Moment matching: the moments themselves, and what it refuses."""

from typing import Any

import numpy as np
import pytest

from app.core.errors import InvalidInput
from service_tests.cases import each
from service_tests.core.specs import POINTS, fourier, kernel, kind, refusal, sampler, spec

RANDOM: list[dict[str, Any]] = [{"kind": kind(model)} for model in POINTS]
PLAIN: list[dict[str, Any]] = [
    {"kind": "sobol", "scramble": False},
    {"kind": "halton", "scramble": "reverse_radix"},
    {"kind": "halton", "scramble": "none"},
]
# Few plain points lie in a subspace, and are refused: see below.
SIZES = [(base, s, d) for base in RANDOM + PLAIN for s, d in ((64, 5), (300, 20))]
# s pairs are s/2 points to span dimensions, and small lattices repeat columns: refused too.
FULL = [base for base in RANDOM if base["kind"] not in ("antithetic", "lattice")]
SIZES += [(base, s, d) for base in FULL for s, d in ((6, 5), (21, 20), (22, 20))]
SIZES += [({"kind": "antithetic"}, 40, 20), ({"kind": "digital_net", "alpha": 3}, 64, 20)]
SIZES += [({"kind": "lattice", "shift": False}, 300, 20), ({"kind": "halton", "skip": 5, "leap": 22}, 64, 5)]
# Nearly in a subspace: one whitening leaves errors of 4e-10 here.
SIZES += [(PLAIN[1], 41, 40)]
DEVIATIONS = {"gaussian": 1.0, "cauchy": np.sqrt(2)}
"""Of one frequency at σ = 1."""


def matched(name: str, scale: Any, base: dict[str, Any], s: int, d: int, seed: int = 1) -> Any:
    over = sampler(kind="moment_matching", base=base)
    return over.frequency_set(kernel(kind=name, length_scale=scale), s, d, np.random.default_rng(seed))


@each("ard", [False, True])
@each(
    ("name", "base", "s", "d"),
    [
        (name, *size)
        for name in DEVIATIONS
        for size in SIZES
        if (name, size[0]["kind"]) != ("cauchy", "orthogonal")  # which is for normal laws
    ],
)
def test_mean_and_covariance_are_those_of_the_law_to_rounding(
    name: str, base: dict[str, Any], s: int, d: int, ard: bool
) -> None:
    scale = np.geomspace(1e-3, 1e3, d).tolist() if ard else 0.7
    deviations = DEVIATIONS[name] / np.broadcast_to(scale, d)
    frequencies = matched(name, scale, base, s, d).frequencies / deviations
    assert frequencies.shape == (s, d)
    assert np.abs(frequencies.mean(axis=0)).max() < 1e-12
    covariance = frequencies.T @ frequencies / s
    assert np.abs(covariance - np.eye(d)).max() < 1e-12


@pytest.mark.parametrize("s", [1, 3, 4])
def test_no_more_frequencies_than_dimensions_are_refused_and_enough_named(s: int) -> None:
    over = {"kind": "moment_matching", "base": {"kind": "monte_carlo"}}
    error = refusal(s=s, sampler=over)
    assert error.pointer == "/s"
    assert error.detail.endswith(f"more frequencies than the 4 dimensions; s = {s}, take 5")
    assert np.isfinite(fourier(s=5, sampler=over).arrays["frequencies"]).all()


@pytest.mark.parametrize(
    ("base", "members", "field", "told"),
    [
        ({"kind": "halton", "leap": 1}, {}, "leap", "leap 10 works"),
        ({"kind": "sobol"}, {"input_dim": 21_202}, "kind", "21201 dimensions of sobol"),
        ({"kind": "lattice"}, {"input_dim": 9126}, "kind", "9125 dimensions of lattice"),
        ({"kind": "digital_net"}, {"input_dim": 10_601}, "kind", "10600 dimensions of digital_net with alpha 2"),
        ({"kind": "orthogonal"}, {"kernel": {"kind": "cauchy", "length_scale": 1.0}}, "kind", "sampler sobol works"),
    ],
    ids=lambda value: str(value["kind"]) if isinstance(value, dict) and "kind" in value else None,
)
def test_a_refusal_of_the_base_is_found_below_it(
    base: dict[str, Any], members: dict[str, Any], field: str, told: str
) -> None:
    error = refusal(sampler={"kind": "moment_matching", "base": base}, **members)
    assert error.pointer == f"/sampler/base/{field}"
    assert told in error.detail


@pytest.mark.parametrize(
    ("base", "d"), [({"kind": "sobol", "scramble": False}, 10), ({"kind": "halton", "scramble": "none"}, 40)]
)
def test_points_in_a_subspace_are_refused_and_the_scrambled_ones_are_not(base: dict[str, Any], d: int) -> None:
    with pytest.raises(InvalidInput, match=f"span fewer than {d} dimensions") as caught:
        matched("gaussian", 1.0, base, d + 1, d)
    assert caught.value.pointer == "/s"
    assert np.isfinite(matched("gaussian", 1.0, {"kind": base["kind"]}, d + 1, d).frequencies).all()


def test_what_would_take_more_than_seconds_is_refused_with_the_largest_number_that_does_not() -> None:
    over = {"kind": "moment_matching"}
    error = refusal(input_dim=2048, s=8193, sampler=over)
    assert error.pointer == "/s"
    assert "(sampler monte_carlo alone takes more); s = 8193, take 8192" in error.detail
    assert spec(input_dim=2048, s=8192, sampler=over).s == 8192
    error = refusal(input_dim=2049, s=4096, sampler=over)
    assert error.pointer == "/sampler/kind"
    assert "moment_matching takes up to 2048 dimensions" in error.detail
