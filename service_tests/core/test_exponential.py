"""Exponentials and logarithms against mpmath, in units in the last place."""

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from numba import njit

from app.core.quantiles import exponential, log_of_one_more

every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@njit
def exponentials(x: Any, out: Any) -> None:
    for i in range(len(x)):
        out[i] = exponential(x[i])


@njit
def logarithms(x: Any, out: Any) -> None:
    for i in range(len(x)):
        out[i] = log_of_one_more(x[i])


def units(loop: Callable[..., None], x: Any, function: Callable[[Any], Any]) -> Any:
    """Errors in units in the last place."""
    found = np.empty_like(x)
    loop(x, found)
    assert found.dtype == x.dtype
    with mpmath.workprec(200):
        wanted = [function(mpmath.mpf(float(one))) for one in x]
        unit = np.spacing(np.array([float(one) for one in wanted], x.dtype)).tolist()
        return np.abs([float((float(a) - b) / one) for a, b, one in zip(found, wanted, unit, strict=True)])


@every_dtype
def test_exponentials_are_right_to_a_unit(dtype: Any) -> None:
    rng, least = np.random.default_rng(1), -87.0 if dtype is np.float32 else -708.0
    near = np.arange(0, -least, 0.34657359) * -1  # where k changes, and half way
    x = np.concatenate(
        [rng.uniform(least, 0, 2000), rng.uniform(-2, 0, 2000), -(10.0 ** rng.uniform(-30, 0, 200)), near]
    )
    assert units(exponentials, np.append(x, [0.0, least]).astype(dtype), mpmath.exp).max() < 1


@every_dtype
def test_what_is_smaller_than_normal_numbers_is_0(dtype: Any) -> None:
    x = np.array([-88, -800, -1e30, -np.inf] if dtype is np.float32 else [-709, -1e300, -np.inf], dtype)
    found = np.ones_like(x)
    exponentials(x, found)
    assert (found == 0).all()
    one = np.zeros(1, dtype)
    exponentials(np.zeros(1, dtype), one)
    assert one[0] == 1


@every_dtype
def test_logarithms_are_right_to_two_units(dtype: Any) -> None:
    rng, most = np.random.default_rng(2), 30 if dtype is np.float32 else 300
    near = np.array([2.0**k * np.sqrt(2) - 1 for k in range(1, 40)])
    x = np.concatenate([10.0 ** rng.uniform(-30, most, 2000), rng.uniform(0, 3, 2000), near, [0.0]])
    assert units(logarithms, x.astype(dtype), lambda one: mpmath.log1p(one)).max() < 2
