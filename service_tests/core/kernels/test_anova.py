"""Sums of Gaussian kernels on subsets, against a double loop, and how a map shares its frequencies out."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array

from app.core.errors import InvalidInput
from app.core.maps import make_map
from service_tests.cases import each
from service_tests.core.kernels.sums import SCALES, SUBSETS, WEIGHTS, D, anova, windows
from service_tests.core.specs import fourier, kernel, refusal, spec


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


def test_fewer_frequencies_than_subsets_are_refused() -> None:
    error = refusal(kernel=anova(), input_dim=D, s=3)
    assert error.pointer == "/s"
    assert "s is 3" in error.detail
    assert "4 subsets" in error.detail
    assert spec(kernel=anova(), input_dim=D, s=4).s == 4


@each(
    ("fields", "pointer", "detail"),
    [
        (anova(subsets=None, weights=None), "/kernel", "one of subsets and windows, got neither"),
        (
            anova(windows={"image_shape": [2, 3], "patch_shape": [1, 1]}),
            "/kernel",
            "one of subsets and windows, got both",
        ),
        (windows([2, 3], [3, 1]), "/kernel/windows/patch_shape", "does not fit"),
        (windows([2, 3], [3, 4]), "/kernel/windows/patch_shape", "does not fit"),
        (windows([2, 4], [1, 1]), "/kernel/windows/image_shape", "8 pixels; input_dim is 6"),
        (anova(subsets=[[0], [1, 6]], weights=None), "/kernel/subsets/1", "coordinates from 0 to 5"),
        (anova(subsets=[[0], [2], [3, 1, 3]], weights=None), "/kernel/subsets/2", "each once"),
        (anova(weights=[1.0, 2.0]), "/kernel/weights", "expected 4 weights, got 2"),
        (windows([2, 3], [1, 2], weights=[1.0] * 5), "/kernel/weights", "expected 4 weights, got 5"),
        (anova(length_scale=[1.0] * 5), "/kernel/length_scale", "5 entries; input_dim 6"),
    ],
)
def test_what_makes_no_kernel_is_refused_where_it_stands(fields: dict[str, Any], pointer: str, detail: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        spec(kernel=fields, input_dim=D)
    assert caught.value.pointer == pointer
    assert detail in caught.value.detail


def test_kernels_with_equal_windows_share_their_places() -> None:
    of = {"image_shape": [9, 8], "patch_shape": [3, 4]}
    asked: list[dict[str, Any]] = [
        {"kind": "anova", "length_scale": scale, "windows": {**of, "patch_shape": shape}}
        for scale, shape in ((1.0, [3, 4]), (2.0, [3, 4]), (1.0, [4, 3]))
    ]
    kernels = [kernel(**one) for one in asked]
    one, other, different = (made.blocks(72)[0].coordinates for made in kernels)
    assert one is other
    assert different == (*range(3), *range(8, 11), *range(16, 19), *range(24, 27))


@each("form", [np.array, csr_array])
def test_warnings_count_the_norms_of_rows_over_all_subsets(form: Any) -> None:
    rows = np.random.default_rng(2).integers(0, 2, (30, D)).astype(np.float64)
    feature_map = make_map(spec(input_dim=D, kernel=anova(), s=12))
    squares = sum(30 * len(subset) if form is np.array else rows[:, subset].sum() for subset in SUBSETS)
    counted = feature_map.warning_operations(form(rows))
    assert counted == squares * (8 if form is np.array else 80)
    assert feature_map.operations(form(rows)) > counted
