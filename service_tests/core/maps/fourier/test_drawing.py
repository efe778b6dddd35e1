"""How Fourier maps are built: frequencies that leave the dtype, and builds out of time."""

import re
import time
from typing import Any

import pytest

from app.core.building import Building
from app.core.errors import InvalidInput
from app.core.maps import FourierMap
from app.core.progress import OutOfTime, TimedProgress
from app.core.spec import MapSpec
from service_tests.cases import each
from service_tests.core.interrupted import WatchedWork
from service_tests.core.specs import spec


@each(
    ("kernel", "field"),
    [
        ({"kind": "gaussian", "sigma": 1e-39}, "sigma"),
        ({"kind": "gaussian", "gamma": 1e80}, "gamma"),
        ({"kind": "gaussian", "gamma": [1.0, 1.0, 1e80, 1.0]}, "gamma"),
        ({"kind": "correlation_rbf", "gamma": 1e80}, "gamma"),
        ({"kind": "matern", "length_scale": 1.0, "nu": 1e-3}, "nu"),
        ({"kind": "matern", "length_scale": 1e-39, "nu": 2.5}, "length_scale"),
        ({"kind": "rational_quadratic", "length_scale": 1e-39, "alpha": 1e-3}, "length_scale"),
        ({"kind": "anova", "length_scale": 1e-39, "subsets": [[0, 1]]}, "length_scale"),
        ({"kind": "laplacian", "length_scale": [1.0, 1.0, 1.0, 1e-39]}, "length_scale"),
    ],
)
def test_frequencies_outside_float32_are_blamed_on_the_field_that_came(kernel: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        FourierMap.build(spec(kernel=kernel, s=1000))
    assert caught.value.pointer == f"/kernel/{field}"
    size = "large" if field == "gamma" else "small"
    assert caught.value.detail.startswith(f"{field} is so {size} that frequencies leave the range of float")


@each(
    ("kernel", "field"),
    [
        ({"kind": "matern", "length_scale": 1e100, "nu": 1e-2}, "nu"),  # lengths at scale 1 alone are out of range
        ({"kind": "gaussian", "length_scale": 1e-39}, "length_scale"),
    ],
)
def test_rotations_with_factors_outside_float32_are_refused(kernel: dict[str, Any], field: str) -> None:
    members = {"input_dim": 8, "kernel": kernel, "sampler": {"kind": "structured_orthogonal"}, "s": 8}
    with pytest.raises(InvalidInput, match=f"{field} is so small that frequencies leave the range of float32"):
        FourierMap.build(spec(**members))
    FourierMap.build(spec(**members, dtype="float64"))


@each("form", ["cos_sin", "complex", "phase"])
def test_a_report_without_the_noise_of_offsets_is_warned_of(form: str) -> None:
    learned = spec(sampler={"kind": "lattice", "learn": True, "box": 2.0}, form=form)
    for of, is_told in ((learned, form == "phase"), (spec(form=form), False)):
        assert any("the report is of form cos_sin" in one for one in FourierMap.build(of).warnings) == is_told


def ended(of: MapSpec, seconds: float) -> bytes:
    """The state that a build leaves that has so much time."""
    with pytest.raises(OutOfTime) as caught:
        FourierMap.build(of, Building(progress=TimedProgress(time.monotonic() + seconds)))
    return caught.value.state


def test_a_build_without_time_ends_between_two_summands_and_begins_anew() -> None:
    whole = spec()
    summands = spec(kernel={"kind": "anova", "length_scale": 1.0, "subsets": [[0], [1, 2], [3]]})
    assert FourierMap.build(whole, Building(progress=TimedProgress(0))).n_frequencies == 64, "one draw is not ended"
    state = ended(summands, 0)
    assert state == b""
    again, undisturbed = FourierMap.build(summands, Building(progress=WatchedWork(state))), FourierMap.build(summands)
    assert all((again.arrays[name] == array).all() for name, array in undisturbed.arrays.items())


@pytest.mark.parametrize(
    ("kernel", "over", "told"),
    [
        ({"kind": "gaussian", "length_scale": 1e41}, {"kind": "sobol"}, "4 of 4 .* length_scale"),
        ({"kind": "matern", "nu": 3.0, "length_scale": [1, 1e41, 1, 1e39]}, {"kind": "monte_carlo"}, "2 of 4"),
        ({"kind": "correlation_rbf", "gamma": 1e-80}, {"kind": "orthogonal"}, "4 of 4 .* gamma"),
        ({"kind": "gaussian", "length_scale": 1e41}, {"kind": "structured_orthogonal"}, "8 of 8 .* length_scale"),
    ],
)
def test_frequencies_too_small_for_all_their_digits_are_warned_of(kernel: Any, over: Any, told: str) -> None:
    d = 8 if over["kind"] == "structured_orthogonal" else 4
    of = spec(input_dim=d, kernel=kernel, sampler=over, dtype="float32")
    found = [warning for warning in FourierMap.build(of).warnings if "digits" in warning]
    assert len(found) == 1
    assert re.search(told, found[0])
    assert "float64" in found[0]
    for better in ({"dtype": "float64"}, {"kernel": {"kind": "gaussian", "length_scale": 1e30}}):
        of = spec(**{"input_dim": d, "kernel": kernel, "sampler": over, "dtype": "float32"} | better)
        assert not [warning for warning in FourierMap.build(of).warnings if "digits" in warning]
