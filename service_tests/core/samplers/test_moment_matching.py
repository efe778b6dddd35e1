"""Moment matching: the moments themselves, what it refuses, and the variance its paper promises."""

from typing import Any

import numpy as np
import pytest

from app.core.errors import InvalidInput
from app.core.maps import FourierMap
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


def test_one_more_frequency_than_dimensions_is_enough() -> None:
    frequencies = matched("gaussian", 1.0, {"kind": "monte_carlo"}, 4, 3).frequencies
    np.testing.assert_allclose(frequencies.T @ frequencies / 4, np.eye(3), rtol=0, atol=1e-12)


def test_points_that_already_match_hardly_move() -> None:
    # The symmetric root moves the rows least: at s = 2^14 the scrambled points need corrections below one part in a
    # hundred of a deviation, where a triangular or rotated root would turn the whole set.
    base = sampler(kind="sobol").frequency_set(
        kernel(kind="gaussian", length_scale=1.0), 1 << 14, 5, np.random.default_rng(1)
    )
    moved = matched("gaussian", 1.0, {"kind": "sobol"}, 1 << 14, 5).frequencies - base.frequencies
    assert 0 < np.sqrt(np.square(moved).mean()) < 0.01


def test_the_warnings_and_weights_of_the_base_are_kept() -> None:
    drawn = matched("gaussian", 1.0, {"kind": "sobol"}, 48, 3)
    assert drawn.warnings == ("sobol is balanced only at a power of two; s = 48, take 32 or 64",)
    assert (drawn.weights == 1 / 48).all()


@pytest.mark.parametrize("base", ["monte_carlo", "halton", "sobol"])
def test_a_law_without_variance_is_refused_and_the_base_named_that_works(base: str) -> None:
    error = refusal(
        kernel={"kind": "laplacian", "length_scale": 1.0}, sampler={"kind": "moment_matching", "base": {"kind": base}}
    )
    assert error.pointer == "/sampler/kind"
    assert error.detail.endswith(f"sampler {base} alone works")


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


def test_an_odd_number_of_pairs_is_refused_at_s() -> None:
    assert refusal(s=63, sampler={"kind": "moment_matching", "base": {"kind": "antithetic"}}).pointer == "/s"


@each("base", RANDOM)
def test_no_base_saves_from_needing_more_frequencies_than_dimensions(base: dict[str, Any]) -> None:
    error = refusal(s=4, sampler={"kind": "moment_matching", "base": base})
    assert error.pointer == "/s"
    assert "take 5" in error.detail


@pytest.mark.parametrize(("base", "s", "d"), [({"kind": "antithetic"}, 38, 20), ({"kind": "lattice"}, 6, 5)])
def test_pairs_and_repeated_columns_that_span_too_little_are_refused(base: dict[str, Any], s: int, d: int) -> None:
    with pytest.raises(InvalidInput, match=f"span fewer than {d} dimensions") as caught:
        matched("gaussian", 1.0, base, s, d)
    assert caught.value.pointer == "/s"


def test_absurd_dimensions_are_refused_at_once() -> None:
    over = {"kind": "moment_matching", "base": {"kind": "monte_carlo"}}
    error = refusal(input_dim=1 << 31, sampler=over)
    assert error.pointer == "/sampler/kind"
    assert error.detail.endswith("sampler monte_carlo alone works")


@pytest.mark.parametrize(
    ("base", "d"), [({"kind": "sobol", "scramble": False}, 10), ({"kind": "halton", "scramble": "none"}, 40)]
)
def test_points_in_a_subspace_are_refused_and_the_scrambled_ones_are_not(base: dict[str, Any], d: int) -> None:
    with pytest.raises(InvalidInput, match=f"span fewer than {d} dimensions") as caught:
        matched("gaussian", 1.0, base, d + 1, d)
    assert caught.value.pointer == "/s"
    assert np.isfinite(matched("gaussian", 1.0, {"kind": base["kind"]}, d + 1, d).frequencies).all()


@pytest.mark.parametrize("scale", [1e-200, 1e200, 1.7e308])
def test_a_scale_whose_square_leaves_float64_is_matched_like_any_other(scale: float) -> None:
    one = matched("gaussian", 1.0, {"kind": "monte_carlo"}, 16, 3).frequencies
    far = matched("gaussian", scale, {"kind": "monte_carlo"}, 16, 3).frequencies
    # Below 1e-308 a float has few digits left.
    np.testing.assert_allclose(far * scale, one, rtol=1e-9 if scale < 1e300 else 0.1)


@pytest.mark.parametrize(("kind", "field"), [("matern", "nu"), ("rational_quadratic", "alpha")])
@pytest.mark.parametrize("told", [True, False])
def test_a_law_with_a_large_fourth_moment_or_none_is_warned_of(kind: str, field: str, told: bool) -> None:
    for value in {"nu": ([1.05, 2.0, 2.5], [2.6, 4.0]), "alpha": ([0.1, 0.5], [0.51, 3.0])}[field][not told]:
        check_fourth_moment({"kind": kind, field: value, "length_scale": 1.0}, told)


@pytest.mark.parametrize("alpha", [0.05, 0.5])
def test_what_is_warned_of_is_worse_than_its_base(alpha: float) -> None:
    x = np.random.default_rng(0).standard_normal((60, 20))
    errors = []
    for over in ({"kind": "monte_carlo"}, {"kind": "moment_matching"}):
        found = []
        for seed in range(6):
            of = {"kind": "rational_quadratic", "alpha": alpha, "length_scale": 4.5}
            made = fourier(input_dim=20, kernel=of, sampler=over, s=256, seed=seed, dtype="float64")
            exact = made.exact_gram(x, x)
            found.append(np.linalg.norm(made.gram(x, x) - exact) / np.linalg.norm(exact))
        errors.append(np.array(found))
    # Of the difference of two means over six seeds.
    error = np.sqrt(sum(one.var(ddof=1) for one in errors) / 6)
    assert errors[1].mean() - errors[0].mean() > 2 * error


def check_fourth_moment(of: dict[str, Any], told: bool) -> None:
    warnings = FourierMap.build(spec(kernel=of, sampler={"kind": "moment_matching"})).warnings
    assert [warning for warning in warnings if "fourth moment" in warning] == list(warnings)
    assert bool(warnings) == told


def test_what_would_take_more_than_seconds_is_refused_with_the_largest_number_that_does_not() -> None:
    over = {"kind": "moment_matching"}
    error = refusal(input_dim=2048, s=8193, sampler=over)
    assert error.pointer == "/s"
    assert "(sampler monte_carlo alone takes more); s = 8193, take 8192" in error.detail
    assert spec(input_dim=2048, s=8192, sampler=over).s == 8192
    error = refusal(input_dim=2049, s=4096, sampler=over)
    assert error.pointer == "/sampler/kind"
    assert "passes the 2048 dimensions of moment_matching" in error.detail
