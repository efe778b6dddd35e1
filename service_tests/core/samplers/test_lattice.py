"""Rank-1 lattices: the published vector, and entries of it that are replaced."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.samplers.lattice import _VECTOR, _multipliers
from service_tests.core.specs import refusal, sampler, spec

Points = NDArray[np.float64]

PUBLISHED = [1, 182667, 213731, 255351, 96013, 116671, 479315, 424089]
"""The first lines of lattice-33002-1024-1048576.9125.txt."""
MATERN = {"kind": "matern", "length_scale": 1.0, "nu": 2.5}


def points(n: int, d: int, seed: int = 1, **fields: Any) -> Points:
    made: Points = sampler(kind="lattice", **fields).points(n, d, np.random.default_rng(seed))
    return made


@pytest.mark.parametrize("n", [101, 1024, 3001, 1 << 17])
def test_unshifted_points_are_multiples_of_the_published_vector_half_a_step_on(n: int) -> None:
    # In Python's integers, for n of every kind: no digit may be lost.
    expected = [[i * z % n for z in PUBLISHED] for i in range(n)]
    steps = points(n, len(PUBLISHED), shift=False) * n - 0.5
    assert (np.round(steps) == expected).all()
    np.testing.assert_allclose(steps, expected, rtol=0, atol=n * 2.0**-52)


@pytest.mark.parametrize(("its_kernel", "most"), [({"kind": "gaussian", "length_scale": 1.0}, 9125), (MATERN, 9124)])
def test_dimensions_past_the_vector_are_refused_and_as_many_are_not(its_kernel: dict[str, Any], most: int) -> None:
    made = spec(input_dim=most, s=2, kernel=its_kernel, sampler={"kind": "lattice"})
    drawn = sampler(kind="lattice").frequency_set(made.kernel, 2, most, np.random.default_rng(1))
    assert drawn.frequencies.shape == (2, most)
    error = refusal(input_dim=most + 1, s=2, kernel=its_kernel, sampler={"kind": "lattice"})
    assert error.pointer == "/sampler/kind"
    assert error.detail == f"input_dim {most + 1} passes the {most} dimensions of lattice; monte_carlo has no limit"


@pytest.mark.parametrize(
    ("n", "d", "replaced"),
    [(1 << 12, 100, 0), (1 << 12, 784, 199), (1 << 12, 1024, 329), (1 << 14, 3600, 1754), (1 << 20, 3600, 0)],
)
def test_repeated_entries_of_the_vector_are_replaced_and_no_others(n: int, d: int, replaced: int) -> None:
    published, multipliers = _VECTOR[:d] % n, _multipliers(n, d)
    assert len(np.unique(np.minimum(multipliers, n - multipliers))) == d
    assert (np.gcd(multipliers, n) == 1).all()
    assert (published != multipliers).sum() == replaced
    assert not any("columns" in warning for warning in sampler(kind="lattice").point_warnings(n, d))
