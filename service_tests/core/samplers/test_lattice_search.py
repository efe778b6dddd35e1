"""Lattices of a vector searched for one kernel on a box."""

from typing import Any

import numpy as np
import pytest

from service_tests.core.discrepancy.sets import KINDS
from service_tests.core.samplers.learned import built

CAUCHY = {"kind": "cauchy", "length_scale": 1.0}
LEARNED: dict[str, Any] = {"kind": "lattice", "learn": True, "box": 2.0, "box_scale": 1.0}


@pytest.mark.gate
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("d", [3, 5, 9])
def test_it_betters_the_vector_for_all(name: str, d: int) -> None:
    ratios = []
    for seed in range(3):
        its_kernel = {"kind": name, "length_scale": 1.5}
        made = built(input_dim=d, kernel=its_kernel, sampler=LEARNED, s=101, seed=seed).report
        assert made is not None
        ratios.append(made["objective_end"] / made["objective_start"])
    assert max(ratios) <= 1
    assert np.mean(ratios) < (0.9 if name == "gaussian" or d < 9 else 0.99)


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
