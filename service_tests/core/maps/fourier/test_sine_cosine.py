"""Sines and cosines of phases against mpmath, in units in the last place, and of phases of any size."""

from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.maps.fourier.sine_cosine import (
    LARGEST,
    cosines_and_sines,
    cosines_with_offsets,
    exponentials,
    scale_to_unit_norm,
)

every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])
MOST_UNITS = {np.float32: 1.5, np.float64: 0.8}
UP_TO = {np.float32: 1e4, np.float64: LARGEST}


def features(phases: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Cosines and sines, (n,) each, of phases (n,)."""
    both = np.empty((1, 2 * len(phases)), phases.dtype)
    cosines_and_sines(phases[None], np.ones_like(phases), both, 0)
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
            # Of cosines below 1e-9 the sum leaves fewer digits.
    assert np.max(np.abs(errors) / np.maximum(units, 1e-24)) < (1.5 if dtype is np.float32 else 1)


@every_dtype
def test_errors_are_as_small_with_offsets(dtype: Any) -> None:
    """Also where a phase and its offset together are next to an odd multiple of π/2, and the cosine is all but zero."""
    phases = cases(dtype)
    offsets = np.random.default_rng(9).uniform(0, 2 * np.pi, len(phases)).astype(dtype).astype(np.float64)
    near = np.random.default_rng(10).integers(1, int(UP_TO[dtype] / 3.2), len(phases) // 2) * np.pi - np.pi / 2
    phases[: len(near)] = near - offsets[: len(near)]
    found = np.empty((1, len(phases)), dtype)
    cosines_with_offsets(phases[None], offsets, np.ones_like(phases), found, 0)
    with mpmath.workprec(300):
        wanted = [mpmath.cos(mpmath.mpf(float(x)) + mpmath.mpf(float(b))) for x, b in zip(phases, offsets, strict=True)]
        units = np.spacing(np.abs(np.array([float(one) for one in wanted], dtype)))
        errors = [float(mpmath.mpf(float(a)) - b) for a, b in zip(found[0], wanted, strict=True)]
    # Of cosines below 1e-9 the sum leaves fewer digits.
    assert np.max(np.abs(errors) / np.maximum(units, 1e-24)) < (1.5 if dtype is np.float32 else 1)


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
    alone, found = np.empty((2, 3, 5), dtype)
    cosines_with_offsets(usual, offsets, ones, alone, 0)
    cosines_with_offsets(mixed, offsets, ones, found, 0)
    assert (found[[0, 2]] == alone[[0, 2]]).all()
    np.testing.assert_allclose(found[1], wanted, rtol=0, atol=2 * np.finfo(dtype).eps)


@every_dtype
def test_the_forms_agree(dtype: Any) -> None:
    phases = cases(dtype)[None]
    amplitudes = np.linspace(0.5, 2, phases.size).astype(dtype)
    both = np.empty((1, 2 * phases.size), dtype)
    cosines_and_sines(phases, amplitudes, both, 0)
    of_exponentials = np.empty((*phases.shape, 2), dtype)
    exponentials(phases, amplitudes, of_exponentials, 0)
    assert (of_exponentials[..., 0] == both[:, : phases.size]).all()
    assert (of_exponentials[..., 1] == -both[:, phases.size :]).all()
    plain = np.empty_like(phases)
    cosines_with_offsets(phases, np.zeros(phases.size), amplitudes, plain, 0)
    assert (plain == both[:, : phases.size]).all()


@every_dtype
@pytest.mark.parametrize("k", [1, 15, 16, 53])
def test_rows_are_scaled_to_unit_norm(dtype: Any, k: int) -> None:
    rows = np.random.default_rng(8).normal(size=(4, k)).astype(dtype)
    wanted = rows / np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
    scale_to_unit_norm(rows)
    np.testing.assert_allclose(rows, wanted, rtol=2 * np.finfo(dtype).eps)
