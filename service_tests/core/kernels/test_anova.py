"""Sums of Gaussian kernels on subsets, against a double loop, and how a map shares its frequencies out."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError

from app.core.errors import InvalidInput
from app.core.maps import FourierMap
from service_tests.core.specs import fourier, kernel, refusal, shift_invariant, spec

D = 6
SUBSETS = [[0, 1, 2], [5, 2], [4], [1, 2, 4, 5]]
WEIGHTS = [0.5, 1.0, 3.0, 0.25]
MATCHED_PLAINLY = {"kind": "moment_matching", "base": {"kind": "halton", "scramble": "none"}}
SCALES = [0.4, 1.0, 2.5, 7.0, 1.5, 0.8]


def rows(n: int, seed: int) -> NDArray[np.float64]:
    return np.random.default_rng(seed).normal(size=(n, D))


def anova(**fields: Any) -> dict[str, Any]:
    return {"kind": "anova", "length_scale": SCALES, "subsets": SUBSETS, "weights": WEIGHTS} | fields


def windows(image: list[int], patch: list[int], **fields: Any) -> dict[str, Any]:
    return {"kind": "anova", "length_scale": 1.5, "windows": {"image_shape": image, "patch_shape": patch}} | fields


@pytest.mark.parametrize("scale", [1.3, SCALES], ids=["isotropic", "ard"])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
def test_the_gram_block_is_the_double_loop_over_subsets_and_coordinates(scale: Any, weights: Any) -> None:
    x, y, scales = rows(5, 1), rows(4, 2), np.broadcast_to(scale, D)
    expected = np.zeros((5, 4))
    for subset, weight in zip(SUBSETS, weights or [1.0] * 4, strict=True):
        for i in range(5):
            for j in range(4):
                expected[i, j] += weight * np.prod(
                    [np.exp(-((x[i, k] - y[j, k]) ** 2) / (2 * scales[k] ** 2)) for k in subset]
                )
    made = kernel(**anova(length_scale=scale, weights=weights))
    np.testing.assert_allclose(made.gram(x, y), expected, rtol=1e-12)
    np.testing.assert_allclose(np.diag(made.gram(x, x)), sum(weights or [1.0] * 4), rtol=1e-14)


def test_windows_are_the_explicit_subsets_row_by_row() -> None:
    # The pixels of an image of 2 × 3 are 0 1 2 / 3 4 5.
    explicit = {
        (1, 2): [[0, 1], [1, 2], [3, 4], [4, 5]],
        (2, 1): [[0, 3], [1, 4], [2, 5]],
        (2, 2): [[0, 1, 3, 4], [1, 2, 4, 5]],
        (2, 3): [[0, 1, 2, 3, 4, 5]],
    }
    x, y = rows(5, 1), rows(4, 2)
    for (tall, wide), subsets in explicit.items():
        by_windows = fourier(kernel=windows([2, 3], [tall, wide]), input_dim=D, s=60)
        by_subsets = fourier(kernel={"kind": "anova", "length_scale": 1.5, "subsets": subsets}, input_dim=D, s=60)
        assert (by_windows.exact_gram(x, y) == by_subsets.exact_gram(x, y)).all()
        for name, array in by_windows.arrays.items():
            assert (array == by_subsets.arrays[name]).all()


@pytest.mark.parametrize("form", ["complex", "cos_sin", "phase"])
def test_the_blocks_kernels_add_up_to_the_sum(form: str) -> None:
    x, y = rows(3, 1) / 2, rows(2, 2) / 2
    maps = [fourier(kernel=anova(), input_dim=D, s=70, form=form, seed=seed, dtype="float64") for seed in range(400)]
    grams = np.array([made.gram(x, y) for made in maps])
    exact = maps[0].exact_gram(x, y)
    # One standard error: the deviation over the seeds by √400; below 0.04.
    error = grams.real.std(axis=0) / 20
    assert error.max() < 0.04
    assert (np.abs(grams.real.mean(axis=0) - exact) < 4 * error).all()
    assert (np.abs(grams.imag.mean(axis=0)) < 4 * grams.imag.std(axis=0) / 20 + 1e-12).all()
    assert exact.min() > 4 * error.max()


@pytest.mark.parametrize("form", ["complex", "cos_sin"])
def test_a_row_has_the_sum_of_weights_with_itself(form: str) -> None:
    made, x = fourier(kernel=anova(), input_dim=D, form=form, dtype="float64", s=70), rows(5, 1)
    np.testing.assert_allclose(np.diag(made.gram(x, x)), sum(WEIGHTS), rtol=1e-12)
    np.testing.assert_allclose(np.square(np.abs(made.transform(x))).sum(axis=1), sum(WEIGHTS), rtol=1e-12)


@pytest.mark.parametrize(("s", "sizes"), [(4, [1, 1, 1, 1]), (70, [18, 18, 17, 17]), (71, [18, 18, 18, 17])])
def test_frequencies_are_shared_out_evenly_and_zero_outside_their_subset(s: int, sizes: list[int]) -> None:
    arrays = fourier(kernel=anova(), input_dim=D, s=s, dtype="float64").arrays
    start = 0
    for subset, weight, size in zip(SUBSETS, WEIGHTS, sizes, strict=True):
        block = arrays["frequencies"][start : start + size]
        outside = [j for j in range(D) if j not in subset]
        assert (block[:, subset] != 0).all()
        assert (block[:, outside] == 0).all()
        np.testing.assert_allclose(arrays["weights"][start : start + size], weight / size, rtol=1e-15)
        start += size
    assert start == len(arrays["weights"]) == s


def test_subsets_draw_frequencies_of_their_own_at_their_own_scales() -> None:
    made = fourier(kernel=anova(subsets=[[0, 5], [5, 0]], weights=None), input_dim=D, s=20_000, dtype="float64")
    first, second = np.split(made.arrays["frequencies"], 2)
    assert not np.isin(first[:, 0], second[:, 0]).any()
    for block in (first, second):
        # One standard error of a deviation is 1/√20,000 = 0.7 % of it.
        assert np.abs(block[:, [0, 5]].std(axis=0) * [0.4, 0.8] - 1).max() < 4 / np.sqrt(20_000)


@pytest.mark.parametrize(
    ("over", "count"),
    [
        ({"kind": "dense_grid", "points_per_dim": 3}, 27 + 9 + 3 + 81),
        ({"kind": "sparse_grid", "level": 1}, 7 + 5 + 3 + 9),
    ],
)
def test_a_rule_is_applied_to_each_subset(over: dict[str, Any], count: int) -> None:
    made = fourier(kernel=anova(), sampler=over, s=None, input_dim=D, dtype="float64")
    assert made.n_frequencies == count
    assert made.arrays["weights"].sum() == pytest.approx(sum(WEIGHTS), rel=1e-13)
    x = rows(1, 1) + rows(5, 2) / 20
    # Degree 3 at a distance of some 0.2: the error is of order 0.2⁴/24.
    np.testing.assert_allclose(made.gram(x, x), made.exact_gram(x, x), rtol=0, atol=1e-2)


def test_fewer_frequencies_than_subsets_are_refused() -> None:
    error = refusal(kernel=anova(), input_dim=D, s=3)
    assert error.pointer == "/s"
    assert "s is 3" in error.detail
    assert "4 subsets" in error.detail
    assert spec(kernel=anova(), input_dim=D, s=4).s == 4


@pytest.mark.parametrize(
    ("fields", "pointer", "detail"),
    [
        (anova(subsets=None, weights=None), "/kernel", "neither of subsets and windows"),
        (anova(windows={"image_shape": [2, 3], "patch_shape": [1, 1]}), "/kernel", "both of subsets and windows"),
        (windows([2, 3], [3, 1]), "/kernel/windows/patch_shape", "does not fit"),
        (windows([2, 3], [3, 4]), "/kernel/windows/patch_shape", "does not fit"),
        (windows([2, 4], [1, 1]), "/kernel/windows/image_shape", "8 pixels; input_dim is 6"),
        (anova(subsets=[[0], [1, 6]], weights=None), "/kernel/subsets/1", "coordinates from 0 to 5"),
        (anova(subsets=[[0], [2], [3, 1, 3]], weights=None), "/kernel/subsets/2", "each once"),
        (anova(weights=[1.0, 2.0]), "/kernel/weights", "2 weights came for 4 subsets"),
        (windows([2, 3], [1, 2], weights=[1.0] * 5), "/kernel/weights", "5 weights came for 4 subsets"),
        (anova(length_scale=[1.0] * 5), "/kernel/length_scale", "5 entries; input_dim 6"),
    ],
)
def test_what_makes_no_kernel_is_refused_where_it_stands(fields: dict[str, Any], pointer: str, detail: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        spec(kernel=fields, input_dim=D)
    assert caught.value.pointer == pointer
    assert detail in caught.value.detail


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"subsets": []}, ("subsets",)),
        ({"subsets": [[0], []]}, ("subsets", 1)),
        ({"subsets": [[-1]]}, ("subsets", 0, 0)),
        ({"subsets": [[1.0]]}, ("subsets", 0, 0)),
        ({"weights": [1.0, 0.0, 1.0, 1.0]}, ("weights", 1)),
        ({"weights": [1.0, -1.0, 1.0, 1.0]}, ("weights", 1)),
        ({"subsets": None, "windows": {"image_shape": [2, 0], "patch_shape": [1, 1]}}, ("windows", "image_shape", 1)),
    ],
)
def test_what_is_no_subset_weight_or_extent_is_refused(fields: dict[str, Any], place: tuple[Any, ...]) -> None:
    with pytest.raises(ValidationError) as caught:
        spec(kernel=anova(**fields), input_dim=D)
    assert caught.value.errors()[0]["loc"][2:] == place


def test_overlapping_and_equal_subsets_count_as_often_as_they_come() -> None:
    once, twice = (kernel(kind="anova", length_scale=1.0, subsets=[[0, 1]] * k) for k in (1, 2))
    x, y = rows(4, 1), rows(3, 2)
    np.testing.assert_allclose(twice.gram(x, y), 2 * once.gram(x, y), rtol=1e-14)
    assert len(shift_invariant(spec(kernel=anova(), input_dim=D)).blocks(D)) == 4


def subsets(n: int, size: int) -> dict[str, Any]:
    """A kernel of n subsets of one size, of 64 coordinates."""
    return {"kind": "anova", "length_scale": 1.0, "subsets": [[(i + j) % 64 for j in range(size)] for i in range(n)]}


@pytest.mark.parametrize(
    ("over", "kernel_fields", "s", "told", "works"),
    [
        (
            {"kind": "antithetic"},
            subsets(30, 2),
            990,
            "each of the 30 subsets gets 33 of the s = 990 frequencies: antithetic frequencies come in pairs; "
            "take s = 1020",
            1020,
        ),
        (
            {"kind": "antithetic"},
            subsets(4, 2),
            31,
            "1 of the 4 subsets get 7 of the s = 31 frequencies: antithetic frequencies come in pairs; take s = 32",
            32,
        ),
        (
            {"kind": "moment_matching"},
            subsets(30, 12),
            240,
            "each of the 30 subsets gets 8 of the s = 240 frequencies: moment_matching needs more frequencies than "
            "the 12 dimensions; take s = 390",
            390,
        ),
        (
            {"kind": "moment_matching"},
            {"kind": "anova", "length_scale": 1.0, "subsets": [[0], [1, 2, 3], [4, 5]]},
            4,
            "2 of the 3 subsets get 1 of the s = 4 frequencies: moment_matching needs more frequencies than the 3 "
            "dimensions; take s = 12",
            12,
        ),
    ],
)
def test_a_refused_number_is_said_to_be_a_subsets_and_the_total_named_works(
    over: dict[str, Any], kernel_fields: dict[str, Any], s: int, told: str, works: int
) -> None:
    members = {"input_dim": 64, "kernel": kernel_fields, "sampler": over}
    error = refusal(**members, s=s)
    assert (error.pointer, error.detail) == ("/s", told)
    assert FourierMap.build(spec(**members, s=works)).n_frequencies == works


@pytest.mark.parametrize("over", [{"kind": "sobol"}, {"kind": "moment_matching", "base": {"kind": "sobol"}}])
def test_a_warned_number_is_said_to_be_a_subsets_and_the_totals_named_are_not_warned_of(over: dict[str, Any]) -> None:
    members = {"input_dim": 64, "kernel": subsets(30, 2), "sampler": over}
    assert FourierMap.build(spec(**members, s=990)).warnings == (
        "each of the 30 subsets gets 33 of the s = 990 frequencies: sobol is balanced only at a power of two; "
        "take s = 960 or 1920",
    )
    for s in (960, 1920):
        assert FourierMap.build(spec(**members, s=s)).warnings == ()
    first, second = FourierMap.build(spec(**members, s=991)).warnings
    assert first.startswith("1 of the 30 subsets get 34 of the s = 991 frequencies")
    assert second.startswith("29 of the 30 subsets get 33 of the s = 991 frequencies")


def test_other_warnings_and_refusals_name_the_kind_of_subset_they_are_about() -> None:
    halton = {"kind": "halton", "scramble": "none"}
    first, second = FourierMap.build(spec(kernel=subsets(2, 31), sampler=halton, input_dim=64, s=10)).warnings
    assert first.startswith("on a subset of 31 coordinates with 5 of the s = 10 frequencies: halton with scramble none")
    assert "poor above 30 dimensions (input_dim is 31)" in second
    error = refusal(kernel=subsets(2, 31), sampler={"kind": "sparse_grid", "level": 9}, input_dim=64)
    assert error.detail.startswith("on a subset of 31 coordinates: sparse_grid of level 9 has ")
    made = spec(kernel=subsets(2, 31), sampler=MATCHED_PLAINLY, input_dim=64, s=64)
    with pytest.raises(InvalidInput, match="on a subset of 31 coordinates with 32 of the s = 64 frequencies: the 32"):
        FourierMap.build(made)


@pytest.mark.parametrize(
    "over",
    [
        {"kind": "dense_grid", "points_per_dim": 3},
        {"kind": "sparse_grid", "level": 1},
        {"kind": "polynomially_exact", "degree": 2},
        {"kind": "uploaded", "frequencies": [[1.0, 2.0], [3.0, 4.0]]},
    ],
)
def test_rules_that_ignore_s_take_any(over: dict[str, Any]) -> None:
    members = {"kernel": anova(subsets=[[0, 1], [2, 3], [1, 4]], weights=None), "sampler": over, "input_dim": D}
    few, none = (FourierMap.build(spec(**members, s=s)) for s in (1, None))
    assert (few.arrays["frequencies"] == none.arrays["frequencies"]).all()
    assert few.warnings[-1].endswith("s = 1 was not used")


def test_subsets_named_twice_are_built_and_told_of() -> None:
    named_twice = anova(subsets=[[3], [0, 1], [2], [1, 0], [2]], weights=None)
    made = spec(kernel=named_twice, input_dim=D, s=50)
    (warning,) = FourierMap.build(made).warnings
    assert warning.startswith("subsets 1 and 3 name the same coordinates")
    assert FourierMap.build(spec(kernel=anova(), input_dim=D)).warnings == ()
    assert FourierMap.build(spec(kernel=windows([2, 3], [1, 2]), input_dim=D)).warnings == ()


def test_uploaded_frequencies_serve_subsets_of_one_size_only() -> None:
    upload = {"kind": "uploaded", "frequencies": [[1.0, 2.0], [3.0, 4.0]]}
    error = refusal(kernel=anova(), sampler=upload, input_dim=D)
    assert error.pointer == "/sampler/kind"
    assert "serves each of the 4 subsets with the same frequencies" in error.detail
    assert "from 1 to 4 coordinates: upload for subsets of one size, or take another sampler" in error.detail
    error = refusal(kernel=anova(subsets=[[0, 1, 2], [3, 4, 5]], weights=None), sampler=upload, input_dim=D)
    assert error.pointer == "/sampler/frequencies/0"
    assert error.detail == "on a subset of 3 coordinates: frequency 0 has 2 entries; input_dim 3 wants as many"
    made = fourier(kernel=anova(subsets=[[0, 1], [5, 4]], weights=None), sampler=upload, input_dim=D, s=None)
    assert made.arrays["frequencies"][[0, 3]].tolist() == [[1, 2, 0, 0, 0, 0], [0, 0, 0, 0, 4, 3]]
