"""How the frequencies of a map are shared out to many subsets, and what is said of it."""

from typing import Any

import pytest

from app.core.maps import FourierMap
from service_tests.core.kernels.sums import D, anova
from service_tests.core.specs import fourier, refusal, spec


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


def test_uploaded_frequencies_serve_subsets_of_one_size_only() -> None:
    upload = {"kind": "uploaded", "frequencies": [[1.0, 2.0], [3.0, 4.0]]}
    error = refusal(kernel=anova(), sampler=upload, input_dim=D)
    assert error.pointer == "/sampler/kind"
    assert "uploaded takes subsets of one size, got sizes 1 to 4; sampler sobol works" in error.detail
    error = refusal(kernel=anova(subsets=[[0, 1, 2], [3, 4, 5]], weights=None), sampler=upload, input_dim=D)
    assert error.pointer == "/sampler/frequencies/0"
    assert error.detail == "on a subset of 3 coordinates: frequency 0 has 2 entries; input_dim 3 wants as many"
    made = fourier(kernel=anova(subsets=[[0, 1], [5, 4]], weights=None), sampler=upload, input_dim=D, s=None)
    assert made.arrays["frequencies"][[0, 3]].tolist() == [[1, 2, 0, 0, 0, 0], [0, 0, 0, 0, 4, 3]]
