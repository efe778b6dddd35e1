"""Sums of Gaussian kernels on subsets, against a double loop, and how a map shares its frequencies out."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError

from app.core.errors import InvalidInput
from service_tests.cases import each
from service_tests.core.kernels.sums import SCALES, SUBSETS, WEIGHTS, D, anova, windows
from service_tests.core.specs import fourier, kernel, refusal, shift_invariant, spec


def rows(n: int, seed: int) -> NDArray[np.float64]:
    return np.random.default_rng(seed).normal(size=(n, D))


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


@pytest.mark.parametrize(("n", "m"), [(3, 1100), (1100, 3), (1, 1), (2, 0)])
def test_however_many_rows_are_compared_the_sums_are_the_same(n: int, m: int) -> None:
    x, y, made = rows(n, 1), rows(m, 2), kernel(**anova())
    expected = np.zeros((n, m))
    for subset, weight in zip(SUBSETS, WEIGHTS, strict=True):
        lags = (x[:, None, subset] - y[None][:, :, subset]) / np.array(SCALES)[list(subset)]
        expected += weight * np.exp(-np.square(lags).sum(axis=2) / 2)
    np.testing.assert_allclose(made.gram(x, y), expected, rtol=1e-12)
    assert not made.gram(1e200 * x, -1e200 * y - 1e200).any()


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


@each(
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


@each(
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


def test_every_subset_counts_as_work() -> None:
    x = np.zeros((10, 8))
    some, more = (kernel(**anova(subsets=[[0, 1]] * count, weights=None)).exact_operations(x, x) for count in (9, 9000))
    assert more == 1000 * some >= 9000 * 100 * 2
