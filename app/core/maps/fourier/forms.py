"""Fourier features by a projection and a form, and Gram blocks, computed in blocks of rows and frequencies."""

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numba import types
from numba.extending import overload

from app.core.arrays import Array, Floats, Matrix
from app.core.compiled import jit, multiply_add
from app.core.maps.terms import BaseSpec, Form
from app.core.model import GMM, MM, QMC, RFF
from app.core.norms import add_squared_norms

LARGEST = 1e8
"""Largest phase that is reduced: the multiple k then has 26 bits, and its products with parts of 27 bits are exact."""

_PER_RADIAN = 2 / math.pi
# π/2 in three parts of at most 27 bits, and the remainder.
_PART_1, _PART_2, _PART_3, _PART_4 = (
    float.fromhex(part) for part in ("0x1.921fb54p+0", "0x1.10b461p-30", "0x1.a626330p-58", "0x1.45c06e0e68948p-86")
)
# π/2 in two parts, each the float64 nearest to the remainder.
_NEAREST_1, _NEAREST_2 = float.fromhex("0x1.921fb54442d18p+0"), float.fromhex("0x1.1a62633145c07p-54")
# Adding and then subtracting it rounds a float64 to a whole number.
_ROUNDING = 1.5 * 2.0**52


def _sine_cosine(phase: float, dtype_of: Any) -> tuple[Any, Any]:
    """Return the sine and the cosine of a phase, at most `LARGEST`, in the precision of the last argument."""
    raise NotImplementedError  # numba chooses the implementation by type when it compiles a loop


def _cosine(phase: float, offset: float, dtype_of: Any) -> Any:
    """Return the cosine of phase + offset, the phase at most `LARGEST`, in the precision of the last argument."""
    raise NotImplementedError  # numba chooses the implementation by type when it compiles a loop


@jit
def _rotate(sine: Any, cosine: Any, turns: Any) -> tuple[Any, Any]:
    """Return sine and cosine of an angle plus `turns` quarter turns, from sine and cosine of the angle."""
    swap = (turns & 1) != 0
    of_sine, of_cosine = (cosine if swap else sine), (sine if swap else cosine)
    return (-of_sine if turns & 2 else of_sine), (-of_cosine if (turns + 1) & 2 else of_cosine)


# Implementations must take the same arguments as the function they implement, needed or not: numba compares names.
@overload(_sine_cosine)
def _chosen(phase: Any, dtype_of: Any) -> Any:  # noqa: ARG001
    return _single if dtype_of == types.float32 else _double


@overload(_cosine)
def _chosen_cosine(phase: Any, offset: Any, dtype_of: Any) -> Any:  # noqa: ARG001
    return _single_cosine if dtype_of == types.float32 else _double_cosine


@jit
def _reduce(x: float, k: float, rounded_off: float) -> tuple[float, float]:
    """Return x + rounded_off − k·π/2 as the sum of two numbers, the second far smaller than the first."""
    high = x - k * _PART_1
    part = k * _PART_2
    middle = high - part
    lost = (high - middle) - part
    part = k * _PART_3
    low = middle - part
    lost += (middle - low) - part
    lost += rounded_off - k * _PART_4
    r = low + lost
    return r, (low - r) + lost


def _double(phase: Any, dtype_of: Any) -> Any:  # noqa: ARG001
    k = multiply_add(phase, _PER_RADIAN, _ROUNDING) - _ROUNDING
    r, left = _reduce(phase, k, 0.0)
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
    return _rotate(sine, cosine, np.int64(k))


def _double_cosine(phase: Any, offset: Any, dtype_of: Any) -> Any:  # noqa: ARG001
    x = phase + offset
    of_offset = x - phase
    rounded_off = (phase - (x - of_offset)) + (offset - of_offset)  # Knuth's two-sum
    half_turns = np.floor(x * (_PER_RADIAN / 2))
    r, left = _reduce(x, 2 * half_turns + 1, rounded_off)
    z = r * r
    s = 2.7211748273658513515e-15
    s = multiply_add(z, s, -7.642991477031561041e-13)
    s = multiply_add(z, s, 1.6058939705448471996e-10)
    s = multiply_add(z, s, -2.5052106872793848606e-08)
    s = multiply_add(z, s, 2.7557319211137189573e-06)
    s = multiply_add(z, s, -1.9841269841209218740e-04)
    s = multiply_add(z, s, 8.3333333333331943054e-03)
    s = multiply_add(z, s, -1.6666666666666665570e-01)
    sine = r + multiply_add(z * r, s, multiply_add(-0.5 * z, left, left))
    return sine if np.int32(half_turns) & 1 else -sine


def _single(phase: Any, dtype_of: Any) -> Any:  # noqa: ARG001
    k = multiply_add(phase, _PER_RADIAN, _ROUNDING) - _ROUNDING
    r = np.float32(multiply_add(-k, _NEAREST_2, multiply_add(-k, _NEAREST_1, phase)))
    z = r * r
    half = np.float32(0.5) * z
    most = np.float32(1) - half
    s = multiply_add(z, np.float32(-1.9515295891e-4), np.float32(8.3321608736e-3))
    s = multiply_add(z, s, np.float32(-1.6666654611e-1))
    sine = multiply_add(r * z, s, r)
    c = multiply_add(z, np.float32(2.443315711809948e-5), np.float32(-1.388731625493765e-3))
    c = multiply_add(z, c, np.float32(4.166664568298827e-2))
    cosine = most + multiply_add(z * z, c, (np.float32(1) - most) - half)
    return _rotate(sine, cosine, np.int32(k))


def _single_cosine(phase: Any, offset: Any, dtype_of: Any) -> Any:  # noqa: ARG001
    x = phase + offset
    half_turns = np.floor(x * (_PER_RADIAN / 2))
    k = 2 * half_turns + 1
    r = np.float32(multiply_add(-k, _NEAREST_2, multiply_add(-k, _NEAREST_1, x)))
    z = r * r
    s = multiply_add(z, np.float32(2.6057804606908671e-6), np.float32(-1.9809602831339156e-4))
    s = multiply_add(z, s, np.float32(8.3330662452528836e-3))
    s = multiply_add(z, s, np.float32(-1.6666659550402026e-1))
    sine = multiply_add(z * r, s, r)
    return sine if np.int32(half_turns) & 1 else -sine


COSINES, COSINES_AND_SINES, EXPONENTIALS = range(3)
"""Kinds of columns that `write_columns` writes."""


@jit
def write_columns(what: int, phases: Floats, offsets: Floats, amplitudes: Floats, features: Floats, first: int) -> None:
    """Write the columns of k of s frequencies, the first of number `first`, into the features of n rows.

    Args:
        what: `COSINES`: a·cos(phase + b), one column for each frequency; `COSINES_AND_SINES`: all a·cos(phase), then
            all a·sin(phase); `EXPONENTIALS`: a·e^(−i·phase), each real part followed by its imaginary part.
        phases: in the first k columns of n rows.
        offsets: b, (k,) in float64, used only for `COSINES`.
        amplitudes: a, (k,).
        features: (n, s) or (n, 2s). It shares no memory with `phases`; both are C-contiguous.
        first: number of the first frequency.
    """
    k, columns, zero = len(amplitudes), features.shape[1], phases.dtype.type(0)
    for i in range(len(features)):
        # Slices of one row show the compiler that their entries are contiguous. Sizes of phases are checked in the same
        # loop, as a loop before it would take longer.
        row, beyond = phases[i, :k], False
        if what == COSINES:
            out = features[i, first : first + k]
            for j in range(k):
                beyond |= abs(row[j]) > LARGEST
                out[j] = _cosine(np.float64(row[j]), offsets[j], zero) * amplitudes[j]
            for j in range(k if beyond else 0):
                x, b = np.float64(row[j]), offsets[j]
                out[j] = (math.cos(x) * math.cos(b) - math.sin(x) * math.sin(b)) * amplitudes[j]
        elif what == COSINES_AND_SINES:
            behind = first + columns // 2
            cosines, sines = features[i, first : first + k], features[i, behind : behind + k]
            for j in range(k):
                beyond |= abs(row[j]) > LARGEST
                sine, cosine = _sine_cosine(np.float64(row[j]), zero)
                cosines[j], sines[j] = cosine * amplitudes[j], sine * amplitudes[j]
            for j in range(k if beyond else 0):
                x = np.float64(row[j])
                cosines[j], sines[j] = math.cos(x) * amplitudes[j], math.sin(x) * amplitudes[j]
        else:
            out = features[i, 2 * first : 2 * (first + k)]
            for j in range(k):
                beyond |= abs(row[j]) > LARGEST
                sine, cosine = _sine_cosine(np.float64(row[j]), zero)
                out[2 * j], out[2 * j + 1] = cosine * amplitudes[j], -sine * amplitudes[j]
            for j in range(k if beyond else 0):
                x = np.float64(row[j])
                out[2 * j], out[2 * j + 1] = math.cos(x) * amplitudes[j], -math.sin(x) * amplitudes[j]


@jit
def scale_to_unit_norm(rows: Floats) -> None:
    """Divide every row, (n, k), by its L2 norm."""
    squares = np.zeros(len(rows))
    add_squared_norms(rows, squares)
    for i in range(len(rows)):
        row, scale = rows[i], 1 / math.sqrt(squares[i])
        for j in range(len(row)):
            row[j] *= scale


class Columns(ABC):
    """Columns of one form. The catalogue shows `source` and the docstring, as of a `Kind`."""

    source: ClassVar[str]
    written: ClassVar[int]
    """Kind of columns, one of three, as `write_columns` takes it."""
    per_frequency: ClassVar[int] = 1
    """Number of columns of a frequency."""
    is_complex: ClassVar[bool] = False
    has_offsets: ClassVar[bool] = False
    """Whether offsets b_l are drawn and frozen besides the frequencies.

    With offsets, the weight ξ_l under the root is doubled. Without, the features of all rows have one norm, √Σ|ξ_l|.
    """

    @abstractmethod
    def variance(self, at: Matrix, at_twice: Matrix) -> Matrix:
        """Return the variance of one frequency's term of the kernel estimate.

        `at` is φ(δ) and `at_twice` φ(2δ), elementwise; φ is k/k(0).
        """


class _Complex(Columns):
    """√ξ_l e^{−i w_l·x}: s complex columns, a Hermitian inner product.

    Choose when:
        Use it to compare with the papers that use this form. Do not use it otherwise: the imaginary part is pure error,
        so with the same frequencies the Gram error is about √2 times that of cos_sin.
    """

    source = f"{QMC}, algorithm 1; {MM}, algorithm 1"
    written = EXPONENTIALS
    is_complex = True

    def variance(self, at: Matrix, at_twice: Matrix) -> Matrix:
        """Return the variance of one frequency's term of the kernel estimate, including its imaginary part."""
        return np.maximum(1 - at**2, 0)


class _CosSin(Columns):
    """All √ξ_l cos(w_l·x), then all √ξ_l sin(w_l·x): 2s columns; k(x, x) is exact.

    Choose when:
        Use it as the default: its columns are real, and it has the smallest error for s frequencies.
    """

    source = f"{RFF}, section 3"
    written = COSINES_AND_SINES
    per_frequency = 2

    def variance(self, at: Matrix, at_twice: Matrix) -> Matrix:
        return np.maximum((1 + at_twice) / 2 - at**2, 0)


class _Phase(Columns):
    """√(2ξ_l) cos(w_l·x + b_l), b_l uniform on [0, 2π): s columns, at more variance a column pair.

    Choose when:
        Use it if each column must belong to its own frequency. Do not use it otherwise: for the same number of columns,
        cos_sin with s/2 frequencies usually has the smaller error.
    """

    source = f"{RFF}, algorithm 1; {GMM}, section 2, (15)"
    written = COSINES
    has_offsets = True

    def variance(self, at: Matrix, at_twice: Matrix) -> Matrix:
        """Return the variance of one term: that of cos_sin, plus ½ for cos(w·(x + y) + 2b), which is uncorrelated."""
        return np.maximum((1 + at_twice) / 2 - at**2 + 0.5, 0)


FORMS: dict[Form, Columns] = {Form.complex: _Complex(), Form.cos_sin: _CosSin(), Form.phase: _Phase()}


def amplitudes(spec: BaseSpec, weights: Array) -> Floats:
    """Compute the factors of the columns of each frequency, (n_frequencies,) in the map's dtype, from the weights.

    With `normalize`, these factors give rows unit norm, in forms without offsets.
    """
    columns = FORMS[spec.form]
    squared = np.abs(weights).astype(np.float64) * (1 + columns.has_offsets)
    if spec.normalize and not columns.has_offsets:
        squared /= squared.sum()
    found: Floats = np.sqrt(squared).astype(spec.numpy_dtype)
    return found
