"""Sines and cosines of phases against mpmath, in units in the last place, and of phases of any size."""

from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.maps.fourier.forms import COSINES, COSINES_AND_SINES, EXPONENTIALS, LARGEST, write_columns

every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])
MOST_UNITS = {np.float32: 1.5, np.float64: 1.0}
MOST_UNITS_OF_COSINES = {np.float32: 1.7, np.float64: 1.8}
UP_TO = {np.float32: 1e4, np.float64: LARGEST}


def written(what: int, phases: NDArray[Any], offsets: NDArray[Any], amplitudes: NDArray[Any]) -> NDArray[Any]:
    """The columns of phases (n, k)."""
    features = np.full((len(phases), phases.shape[1] * (1 if what == COSINES else 2)), np.nan, phases.dtype)
    write_columns(what, phases, offsets, amplitudes, features, 0)
    return features


def features(phases: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Cosines and sines, (n,) each, of phases (n,)."""
    both = written(COSINES_AND_SINES, phases[None], np.zeros(0), np.ones_like(phases))
    return both[0, : len(phases)], both[0, len(phases) :]


def cases(dtype: Any) -> NDArray[Any]:
    """Phases of every size, and those next to multiples of π/2, where one of the two is all but zero."""
    rng, most = np.random.default_rng(6), UP_TO[dtype]
    few, many = np.arange(1, 300), rng.integers(1, int(most / 1.58), 700)
    near = np.concatenate([few, many]) * np.pi / 2
    spread = np.concatenate(
        [rng.uniform(-most, most, 700), rng.normal(size=300) * 10, 10.0 ** rng.uniform(-30, 0, 100)]
    )
    return np.concatenate([near, -near[:99], spread, [0.0, most, -most]]).astype(dtype)


@every_dtype
def test_errors_are_below_two_units_in_the_last_place(dtype: Any) -> None:
    phases = cases(dtype)
    with mpmath.workprec(300):
        for found, function in zip(features(phases), (mpmath.cos, mpmath.sin), strict=True):
            wanted = [function(mpmath.mpf(float(phase))) for phase in phases]
            units = np.spacing(np.abs(np.array([float(one) for one in wanted], dtype)))
            errors = [float(mpmath.mpf(float(a)) - b) for a, b in zip(found, wanted, strict=True)]
            assert np.max(np.abs(errors) / units) < MOST_UNITS[dtype]


@every_dtype
def test_errors_are_as_small_with_offsets(dtype: Any) -> None:
    """Also where a phase and its offset together are next to an odd multiple of π/2, and the cosine is all but zero."""
    phases = cases(dtype)
    offsets = np.random.default_rng(9).uniform(0, 2 * np.pi, len(phases)).astype(dtype).astype(np.float64)
    near = np.random.default_rng(10).integers(1, int(UP_TO[dtype] / 3.2), len(phases) // 2) * np.pi - np.pi / 2
    phases[: len(near)] = near - offsets[: len(near)]
    found = written(COSINES, phases[None], offsets, np.ones_like(phases))
    with mpmath.workprec(300):
        wanted = [mpmath.cos(mpmath.mpf(float(x)) + mpmath.mpf(float(b))) for x, b in zip(phases, offsets, strict=True)]
        units = np.spacing(np.abs(np.array([float(one) for one in wanted], dtype)))
        errors = [float(mpmath.mpf(float(a)) - b) for a, b in zip(found[0], wanted, strict=True)]
    # Of cosines below 1e-9 the sum leaves fewer digits.
    assert np.max(np.abs(errors) / np.maximum(units, 1e-24)) < MOST_UNITS_OF_COSINES[dtype]


@every_dtype
def test_phases_of_any_size_are_right_and_change_no_other_row(dtype: Any) -> None:
    usual = np.random.default_rng(7).normal(size=(3, 5)).astype(dtype) * 50
    offsets, ones = np.linspace(0, 6, 5), np.ones(5, dtype)
    mixed = usual.copy()
    mixed[1] = [3e8, -1e20, 1e30, 1.0, LARGEST]
    with mpmath.workprec(300):
        wanted = [
            float(mpmath.cos(mpmath.mpf(float(x)) + mpmath.mpf(b))) for x, b in zip(mixed[1], offsets, strict=True)
        ]
    alone, found = (written(COSINES, phases, offsets, ones) for phases in (usual, mixed))
    assert (found[[0, 2]] == alone[[0, 2]]).all()
    np.testing.assert_allclose(found[1], wanted, rtol=0, atol=2 * np.finfo(dtype).eps)
    with mpmath.workprec(300):
        of_both = [[float(f(mpmath.mpf(float(x)))) for f in (mpmath.cos, mpmath.sin)] for x in mixed[1]]
    for what in (COSINES_AND_SINES, EXPONENTIALS):
        alone, found = (written(what, phases, offsets, ones) for phases in (usual, mixed))
        assert (found[[0, 2]] == alone[[0, 2]]).all()
        pairs = found[1].reshape(2, 5).T if what == COSINES_AND_SINES else found[1].reshape(5, 2) * [1, -1]
        np.testing.assert_allclose(pairs, of_both, rtol=0, atol=2 * np.finfo(dtype).eps)
