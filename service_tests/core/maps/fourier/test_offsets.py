"""The offsets of the form phase: angles from a stream of their own."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.maps.fourier.fourier_map import uniform_angles
from service_tests.core.specs import fourier

PHASE: dict[str, Any] = {"form": "phase", "dtype": "float64"}


def offsets(**members: Any) -> NDArray[np.float64]:
    return fourier(**PHASE | members).arrays["offsets"]


@pytest.mark.parametrize(
    "members",
    [
        {"input_dim": 9},
        {"sampler": {"kind": "sobol"}},
        {"sampler": {"kind": "halton"}},
        {"kernel": {"kind": "cauchy", "length_scale": 3.0}},
        {"normalize": True},
    ],
)
def test_the_offsets_hang_on_seed_and_s_alone(members: dict[str, Any]) -> None:
    assert (offsets(**members) == offsets()).all()
    assert not np.isin(offsets(**members, seed=8), offsets()).any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_offset_that_would_round_to_a_whole_turn_is_none(dtype: type[Any]) -> None:
    class Last(np.random.Generator):
        def random(self, *size: Any, **_: Any) -> Any:
            return np.full(size, np.nextafter(1.0, 0.0))

    angles = uniform_angles(3, np.dtype(dtype), Last(np.random.PCG64(1)))
    assert (angles == 0).all() or float(angles.max()) < 2 * np.pi
    assert dtype is np.float64 or (angles == 0).all()
