"""Names of kernels, samplers and maps above pictures."""

from typing import Any

import pytest

from app.core.names import kernel_name, map_name, sampler_name


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        ({"kind": "gaussian", "length_scale": 5.0}, "gaussian, length_scale 5"),
        ({"kind": "matern", "nu": 2.5, "length_scale": 1 / 3}, "matern, nu 2.5, length_scale 0.333"),
        ({"kind": "gaussian", "length_scale": [1.0, 2.0]}, "gaussian"),
        ({"kind": "gmm", "p": 1.0, "center": None}, "gmm, p 1"),
    ],
)
def test_a_kernel_is_named_with_its_numbers_but_without_lists(kernel: dict[str, Any], name: str) -> None:
    assert kernel_name(kernel) == name


@pytest.mark.parametrize(
    ("sampler", "name"),
    [
        ({"kind": "sobol", "scramble": True}, "sobol"),
        ({"kind": "sparse_grid", "level": 3}, "sparse_grid 3"),
        ({"kind": "moment_matching", "base": {"kind": "halton"}}, "moment_matching over halton"),
    ],
)
def test_a_sampler_is_named_with_its_base_and_its_size(sampler: dict[str, Any], name: str) -> None:
    assert sampler_name(sampler) == name


def test_long_names_of_maps_have_their_middle_left_out() -> None:
    assert map_name("a" * 64 + "b" * 64, {"kind": "gmm"}, {"kind": "gcws"}, 1024) == (
        f"{'a' * 24}…{'b' * 24}: gmm; gcws, s = 1,024"
    )
