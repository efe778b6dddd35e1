"""Sines and cosines of phases, and the columns that the forms make of them, in one compiled pass.

A phase x is reduced to r = x − k·π/2, |r| ≤ π/4, by the nearest multiple k: π/2 is cut into parts so short that their
products with k are exact (Cody and Waite, 1980), and what is lost in subtracting them is kept. Then sin r and cos r are
minimax polynomials (of fdlibm for float64, of Cephes for float32), and k mod 4 says which of them is the sine. The
error is below one unit in the last place in float64 and 1.4 in float32. Offsets are added without rounding, but where
they leave a cosine below 10⁻⁹ in float64, the error is 10⁻²⁴.

Rows with a phase beyond `LARGEST` take sines and cosines of the C library, which are right for any phase; an offset is
then added by the addition theorem.
"""

import math
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from app.core.arrays import Floats
from app.core.compiled import compiled, multiply_add
from app.core.norms import add_squared_norms

LARGEST = 1e8
"""Up to here the multiple k has 26 bits, so that its products with parts of 27 bits are exact."""

_PER_RADIAN = 2 / math.pi
# π/2 in three parts of at most 27 bits, and what is left of it.
_PART_1, _PART_2, _PART_3, _PART_4 = (
    float.fromhex(part) for part in ("0x1.921fb54p+0", "0x1.10b461p-30", "0x1.a626330p-58", "0x1.45c06e0e68948p-86")
)
# π/2 in two parts, each the nearest to what is left.
_NEAREST_1, _NEAREST_2 = float.fromhex("0x1.921fb54442d18p+0"), float.fromhex("0x1.1a62633145c07p-54")
# Added and taken away, it rounds a float64 to a whole number.
_ROUNDING = 1.5 * 2.0**52


def _sine_cosine(phase: float, offset: float, dtype_of: Any) -> tuple[Any, Any]:
    """The sine and the cosine of phase + offset, the phase at most `LARGEST`, in the precision of the last argument."""
    raise NotImplementedError  # it is chosen by type when a loop is compiled


@compiled
def _turned(sine: Any, cosine: Any, turns: Any) -> tuple[Any, Any]:
    """Sine and cosine of an angle, from those of the angle without so many quarter turns."""
    swap = (turns & 1) != 0
    of_sine, of_cosine = (cosine if swap else sine), (sine if swap else cosine)
    return (-of_sine if turns & 2 else of_sine), (-of_cosine if (turns + 1) & 2 else of_cosine)


# The functions chosen take the same arguments as the one they stand for, needed or not: numba compares the names.
@overload(_sine_cosine)
def _chosen(phase: Any, offset: Any, dtype_of: Any) -> Any:  # noqa: ARG001
    return _single if dtype_of == types.float32 else _double


def _double(phase: Any, offset: Any, dtype_of: Any) -> Any:  # noqa: ARG001
    x = phase + offset
    of_offset = x - phase
    rounded_off = (phase - (x - of_offset)) + (offset - of_offset)  # Knuth's two-sum
    k = multiply_add(x, _PER_RADIAN, _ROUNDING) - _ROUNDING
    high = x - k * _PART_1
    part = k * _PART_2
    middle = high - part
    lost = (high - middle) - part
    part = k * _PART_3
    low = middle - part
    lost += (middle - low) - part
    lost += rounded_off - k * _PART_4
    r = low + lost
    left = (low - r) + lost
    z = r * r
    half = 0.5 * z
    most = 1 - half
    s = 1.58969099521155010221e-10
    s = multiply_add(z, s, -2.50507602534068634195e-08)
    s = multiply_add(z, s, 2.75573137070700676789e-06)
    s = multiply_add(z, s, -1.98412698298579493134e-04)
    s = multiply_add(z, s, 8.33333333332248946124e-03)
    s = multiply_add(z, s, -1.66666666666666324348e-01)
    sine = r + multiply_add(z * r, s, left * most)
    c = -1.13596475577881948265e-11
    c = multiply_add(z, c, 2.08757232129817482790e-09)
    c = multiply_add(z, c, -2.75573143513906633035e-07)
    c = multiply_add(z, c, 2.48015872894767294178e-05)
    c = multiply_add(z, c, -1.38888888888741095749e-03)
    c = multiply_add(z, c, 4.16666666666666019037e-02)
    cosine = most + (((1 - most) - half) + multiply_add(z * z, c, -r * left))
    return _turned(sine, cosine, np.int64(k))


def _single(phase: Any, offset: Any, dtype_of: Any) -> Any:  # noqa: ARG001
    x = phase + offset
    k = multiply_add(x, _PER_RADIAN, _ROUNDING) - _ROUNDING
    r = np.float32(multiply_add(-k, _NEAREST_2, multiply_add(-k, _NEAREST_1, x)))
    z = r * r
    half = np.float32(0.5) * z
    most = np.float32(1) - half
    s = multiply_add(z, np.float32(-1.9515295891e-4), np.float32(8.3321608736e-3))
    s = multiply_add(z, s, np.float32(-1.6666654611e-1))
    sine = multiply_add(r * z, s, r)
    c = multiply_add(z, np.float32(2.443315711809948e-5), np.float32(-1.388731625493765e-3))
    c = multiply_add(z, c, np.float32(4.166664568298827e-2))
    cosine = most + multiply_add(z * z, c, (np.float32(1) - most) - half)
    return _turned(sine, cosine, np.int32(k))


@compiled
def _beyond(phases: Floats) -> bool:
    """Whether one of the phases is larger than `LARGEST`."""
    many = 0
    for j in range(len(phases)):
        many += not abs(phases[j]) <= LARGEST
    return many > 0


# The loops take whole rows of features, as the compiler must see that columns lie side by side.


@compiled
def cosines_with_offsets(phases: Floats, offsets: Floats, amplitudes: Floats, features: Floats, first: int) -> None:
    """Write a·cos(phase + b) of the phases, (n, k), into columns of the features, (n, s), from the first on.

    a and b have shape (k,), b is in float64. Phases and features are C-contiguous, and no memory is in both.
    """
    k = phases.shape[1]
    zero = phases.dtype.type(0)
    for i in range(len(phases)):
        row, out = phases[i], features[i, first : first + k]
        if _beyond(row):
            for j in range(k):
                x, b = np.float64(row[j]), offsets[j]
                out[j] = (math.cos(x) * math.cos(b) - math.sin(x) * math.sin(b)) * amplitudes[j]
        else:
            for j in range(k):
                _, cosine = _sine_cosine(np.float64(row[j]), offsets[j], zero)
                out[j] = cosine * amplitudes[j]


@compiled
def cosines_and_sines(phases: Floats, amplitudes: Floats, features: Floats, first: int) -> None:
    """Write a·cos(phase) and a·sin(phase) of the phases, (n, k), into columns of the features, (n, 2s).

    Cosines go into columns from the first on, sines s columns behind them; a has shape (k,). Phases and features are
    C-contiguous, and no memory is in both.
    """
    k, behind = phases.shape[1], features.shape[1] // 2 + first
    zero = phases.dtype.type(0)
    for i in range(len(phases)):
        row, cosines, sines = phases[i], features[i, first : first + k], features[i, behind : behind + k]
        if _beyond(row):
            for j in range(k):
                phase = np.float64(row[j])
                cosines[j], sines[j] = math.cos(phase) * amplitudes[j], math.sin(phase) * amplitudes[j]
        else:
            for j in range(k):
                sine, cosine = _sine_cosine(np.float64(row[j]), 0.0, zero)
                cosines[j], sines[j] = cosine * amplitudes[j], sine * amplitudes[j]


@compiled
def exponentials(phases: Floats, amplitudes: Floats, features: Floats, first: int) -> None:
    """Write a·e^(−i·phase) of the phases, (n, k), into the features, (n, s, 2): real and imaginary parts.

    They go into columns from the first on; a has shape (k,). All is C-contiguous, and no memory is in both.
    """
    k = phases.shape[1]
    zero = phases.dtype.type(0)
    for i in range(len(phases)):
        row, out = phases[i], features[i, first : first + k]
        if _beyond(row):
            for j in range(k):
                phase = np.float64(row[j])
                out[j, 0], out[j, 1] = math.cos(phase) * amplitudes[j], -math.sin(phase) * amplitudes[j]
        else:
            for j in range(k):
                sine, cosine = _sine_cosine(np.float64(row[j]), 0.0, zero)
                out[j, 0], out[j, 1] = cosine * amplitudes[j], -sine * amplitudes[j]


@compiled
def scale_to_unit_norm(rows: Floats) -> None:
    """Divide every row, (n, k), by its L2 norm."""
    squares = np.zeros(len(rows))
    add_squared_norms(rows, squares)
    for i in range(len(rows)):
        row, scale = rows[i], 1 / math.sqrt(squares[i])
        for j in range(len(row)):
            row[j] *= scale
