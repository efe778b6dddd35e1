"""Lattices of a vector searched for one kernel on a box."""

from typing import Any

import numpy as np
import pytest

from service_tests.core.samplers.learned import built

CAUCHY = {"kind": "cauchy", "length_scale": 1.0}
LEARNED: dict[str, Any] = {"kind": "lattice", "learn": True, "box": 2.0, "box_scale": 1.0}


@pytest.mark.parametrize("shift", [True, False])
def test_it_is_a_lattice(shift: bool) -> None:
    made = built(
        sampler=LEARNED | {"shift": shift, "box": [2.0, 1.0, 0.5, 0.1]},
        s=64,
        kernel=CAUCHY,
    )
    frequencies = made.arrays["frequencies"]
    # The uniforms of the Laplace law; differences of neighbours are one vector modulo 1.
    points = np.where(frequencies < 0, np.exp(frequencies) / 2, 1 - np.exp(-frequencies) / 2)
    steps = (np.diff(points, axis=0) % 1) * 64
    np.testing.assert_allclose(steps, np.broadcast_to(steps[0], steps.shape), atol=1e-9)
    assert (np.gcd(steps[0].round().astype(int), 64) == 1).all()
    np.testing.assert_allclose(made.arrays["weights"], 1 / 64)
