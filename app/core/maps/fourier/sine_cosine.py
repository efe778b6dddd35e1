"""Sines and cosines of phases, and the columns that the forms make of them, in one compiled pass.

A phase x is reduced to r = x − k·π/2, |r| ≤ π/4, by the nearest multiple k: π/2 is cut into parts so short that their
products with k are exact (Cody and Waite, 1980), and what is lost in subtracting them is kept. Then sin r and cos r are
minimax polynomials (of fdlibm for float64, of Cephes for float32), and k mod 4 says which of them is the sine. The
error is below one unit in the last place in float64 and, for phases up to 10⁴, below two in float32.

Rows with a phase beyond `LARGEST` take the sines and cosines of the C library, which are right for any phase.
"""

import math
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from app.core.arrays import Array, Floats
from app.core.compiled import compiled

LARGEST = 1e8
"""Up to here the multiple k has 26 bits, so that its products with parts of 27 bits are exact."""

_PER_RADIAN = 2 / math.pi
# π/2 in three parts of at most 27 bits, and what is left of it.
_PART_1, _PART_2, _PART_3, _PART_4 = (
    float.fromhex(part) for part in ("0x1.921fb54p+0", "0x1.10b461p-30", "0x1.a626330p-58", "0x1.45c06e0e68948p-86")
)
# Added and taken away, it rounds a float64 to a whole number.
_ROUNDING = 1.5 * 2.0**52


def _sine_cosine(x: float, dtype_of: Any) -> tuple[Any, Any]:
    """The sine and the cosine of a float64, at most `LARGEST`, in the precision of the second argument."""
    raise NotImplementedError  # it is chosen by type when a loop is compiled


@compiled
def _turned(sine: Any, cosine: Any, turns: Any) -> tuple[Any, Any]:
    """Sine and cosine of an angle, from those of the angle without so many quarter turns."""
    swap = (turns & 1) != 0
    of_sine, of_cosine = (cosine if swap else sine), (sine if swap else cosine)
    return (-of_sine if turns & 2 else of_sine), (-of_cosine if (turns + 1) & 2 else of_cosine)


# The functions chosen take the same arguments as the one they stand for, needed or not: numba compares the names.
@overload(_sine_cosine)
def _chosen(x: Any, dtype_of: Any) -> Any:  # noqa: ARG001
    return _single if dtype_of == types.float32 else _double


def _double(x: Any, dtype_of: Any) -> Any:  # noqa: ARG001
    k = (x * _PER_RADIAN + _ROUNDING) - _ROUNDING
    high = x - k * _PART_1
    part = k * _PART_2
    middle = high - part
    lost = (high - middle) - part
    part = k * _PART_3
    low = middle - part
    lost += (middle - low) - part
    lost -= k * _PART_4
    r = low + lost
    rest = (low - r) + lost
    z = r * r
    s = 1.58969099521155010221e-10
    s = -2.50507602534068634195e-08 + z * s
    s = 2.75573137070700676789e-06 + z * s
    s = -1.98412698298579493134e-04 + z * s
    s = 8.33333333332248946124e-03 + z * s
    s = -1.66666666666666324348e-01 + z * s
    sine = r + (z * r * s + rest * (1 - 0.5 * z))
    c = -1.13596475577881948265e-11
    c = 2.08757232129817482790e-09 + z * c
    c = -2.75573143513906633035e-07 + z * c
    c = 2.48015872894767294178e-05 + z * c
    c = -1.38888888888741095749e-03 + z * c
    c = 4.16666666666666019037e-02 + z * c
    half = 0.5 * z
    most = 1 - half
    cosine = most + (((1 - most) - half) + (z * z * c - r * rest))
    return _turned(sine, cosine, np.int64(k))


def _single(x: Any, dtype_of: Any) -> Any:  # noqa: ARG001
    k = (x * _PER_RADIAN + _ROUNDING) - _ROUNDING
    r = np.float32(((x - k * _PART_1) - k * _PART_2) - k * _PART_3)
    z = r * r
    s = np.float32(8.3321608736e-3) + z * np.float32(-1.9515295891e-4)
    s = np.float32(-1.6666654611e-1) + z * s
    sine = r + r * z * s
    c = np.float32(-1.388731625493765e-3) + z * np.float32(2.443315711809948e-5)
    c = np.float32(4.166664568298827e-2) + z * c
    cosine = np.float32(1) - np.float32(0.5) * z + z * z * c
    return _turned(sine, cosine, np.int32(k))


@compiled
def _beyond(phases: Floats) -> bool:
    """Whether one of the phases is larger than `LARGEST`."""
    many = 0
    for j in range(len(phases)):
        many += not abs(phases[j]) <= LARGEST
    return many > 0


@compiled
def cosines_with_offsets(features: Floats, offsets: Floats, amplitudes: Floats) -> None:
    """Turn the phases in `features`, (n, k), into a·cos(phase + b), b in float64."""
    zero = features.dtype.type(0)
    for i in range(features.shape[0]):
        row = features[i]
        if _beyond(row):
            for j in range(len(row)):
                row[j] = math.cos(np.float64(row[j]) + offsets[j]) * amplitudes[j]
        else:
            for j in range(len(row)):
                _, cosine = _sine_cosine(np.float64(row[j]) + offsets[j], zero)
                row[j] = cosine * amplitudes[j]


@compiled
def cosines_and_sines(features: Floats, amplitudes: Floats) -> None:
    """Turn the phases in the first half of `features`, (n, 2k), into a·cos(phase) there and a·sin(phase) behind it."""
    k = len(amplitudes)
    zero = features.dtype.type(0)
    for i in range(features.shape[0]):
        cosines, sines = features[i, :k], features[i, k:]
        if _beyond(cosines):
            for j in range(k):
                phase = np.float64(cosines[j])
                cosines[j], sines[j] = math.cos(phase) * amplitudes[j], math.sin(phase) * amplitudes[j]
        else:
            for j in range(k):
                sine, cosine = _sine_cosine(np.float64(cosines[j]), zero)
                cosines[j], sines[j] = cosine * amplitudes[j], sine * amplitudes[j]


@compiled
def exponentials(features: Array, phases: Floats, amplitudes: Floats) -> None:
    """Write a·e^(−i·phase) into `features`, (n, k, 2): real and imaginary parts."""
    zero = phases.dtype.type(0)
    for i in range(phases.shape[0]):
        of_phases, of_features = phases[i], features[i]
        if _beyond(of_phases):
            for j in range(len(of_phases)):
                phase = np.float64(of_phases[j])
                of_features[j, 0], of_features[j, 1] = math.cos(phase) * amplitudes[j], -math.sin(phase) * amplitudes[j]
        else:
            for j in range(len(of_phases)):
                sine, cosine = _sine_cosine(np.float64(of_phases[j]), zero)
                of_features[j, 0], of_features[j, 1] = cosine * amplitudes[j], -sine * amplitudes[j]
