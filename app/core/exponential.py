"""Exponentials and logarithms for compiled loops, which give every processor the same bits.

e^x = 2^k·e^r with r = x − k·log 2, |r| ≤ (log 2)/2, by a minimax polynomial (found by Lawson's algorithm; its relative
error is 3.6e-18 in float64, 3.1e-9 in float32); 2^k is added to the exponent. The error is below 1.1 units in the last
place. The logarithm is that of fdlibm (float64) and musl (float32), its error below two units.
"""

from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from app.core.compiled import multiply_add

# log 2 in two parts, each the nearest to what is left; of those for logarithms, the first is short.
_LOG2_1, _LOG2_2 = float.fromhex("0x1.62e42fefa39efp-1"), float.fromhex("0x1.abc9e3b39803fp-56")
_SINGLE_1, _SINGLE_2 = np.float32(_LOG2_1), np.float32(_LOG2_1 - float(np.float32(_LOG2_1)))
_SHORT_1, _SHORT_2 = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_SINGLE_SHORT_1, _SINGLE_SHORT_2 = np.float32(6.9313812256e-01), np.float32(9.0580006145e-06)
_PER_LOG2, _SINGLE_PER_LOG2 = 1 / _LOG2_1, np.float32(1 / _LOG2_1)
# Added to a number, they leave it rounded to a whole one in the last bits.
_ROUNDING, _SINGLE_ROUNDING = 1.5 * 2.0**52, np.float32(1.5 * 2.0**23)
# Below them the exponential is smaller than the least normal number.
_LEAST, _SINGLE_LEAST = -708.0, np.float32(-87.0)
# The bits of √½, and of what is added to those of a number in [√½, √2) that becomes 1 + f.
_ROOT_HALF, _SINGLE_ROOT_HALF = np.int64(0x3FE6A09E667F3BCD), np.int32(0x3F3504F3)


def exponential(x: Any) -> Any:
    """e^x of a float x ≤ 0, in its precision; 0 below −708, or −87 in float32."""
    raise NotImplementedError  # it is chosen by type when a loop is compiled


def log_of_one_more(x: Any) -> Any:
    """log(1 + x) of a finite float x ≥ 0, in its precision."""
    raise NotImplementedError  # it is chosen by type when a loop is compiled


@overload(exponential)
def _chosen_exponential(x: Any) -> Any:
    return _single_exponential if x == types.float32 else _double_exponential


@overload(log_of_one_more)
def _chosen_logarithm(x: Any) -> Any:
    return _single_logarithm if x == types.float32 else _double_logarithm


def _double_exponential(x: Any) -> Any:
    rounded = multiply_add(max(x, _LEAST), _PER_LOG2, _ROUNDING)
    k = rounded - _ROUNDING
    r = multiply_add(-k, _LOG2_2, multiply_add(-k, _LOG2_1, max(x, _LEAST)))
    q = 2.50056585076623782e-8
    q = multiply_add(r, q, 2.76302519073561196e-7)
    q = multiply_add(r, q, 2.75575685950770091e-6)
    q = multiply_add(r, q, 2.48014930897640572e-5)
    q = multiply_add(r, q, 1.98412695263789425e-4)
    q = multiply_add(r, q, 1.38888889436309074e-3)
    q = multiply_add(r, q, 8.33333333348554762e-3)
    q = multiply_add(r, q, 4.16666666665302608e-2)
    q = multiply_add(r, q, 1.66666666666664255e-1)
    q = multiply_add(r, q, 5.00000000000001058e-1)
    near = np.float64(1) + multiply_add(r * r, q, r)
    bits = np.float64(near).view(np.int64) + (np.float64(rounded).view(np.int64) << np.int64(52))
    return np.int64(bits).view(np.float64) if x >= _LEAST else np.float64(0)


def _single_exponential(x: Any) -> Any:
    rounded = multiply_add(max(x, _SINGLE_LEAST), _SINGLE_PER_LOG2, _SINGLE_ROUNDING)
    k = rounded - _SINGLE_ROUNDING
    r = multiply_add(-k, _SINGLE_2, multiply_add(-k, _SINGLE_1, max(x, _SINGLE_LEAST)))
    q = np.float32(1.381475472e-3)
    q = multiply_add(r, q, np.float32(8.368721685e-3))
    q = multiply_add(r, q, np.float32(4.166838617e-2))
    q = multiply_add(r, q, np.float32(1.666652059e-1))
    q = multiply_add(r, q, np.float32(4.999999345e-1))
    near = np.float32(1) + multiply_add(r * r, q, r)
    of_power = np.int32(np.float32(rounded).view(np.int32) << np.int32(23))
    bits = np.int32(np.float32(near).view(np.int32) + of_power)
    return np.int32(bits).view(np.float32) if x >= _SINGLE_LEAST else np.float32(0)


def _double_logarithm(x: Any) -> Any:
    one_more = x + 1.0
    of_x = one_more - 1.0
    left = ((1.0 - (one_more - of_x)) + (x - of_x)) / one_more  # what was rounded off, Knuth's two-sum
    bits = np.float64(one_more).view(np.int64)
    k = (bits - _ROOT_HALF) >> np.int64(52)
    f = np.int64(bits - (k << np.int64(52))).view(np.float64) - 1.0
    s = f / (2.0 + f)
    z = s * s
    q = 1.479819860511658591e-01
    q = multiply_add(z, q, 1.531383769920937332e-01)
    q = multiply_add(z, q, 1.818357216161805012e-01)
    q = multiply_add(z, q, 2.222219843214978396e-01)
    q = multiply_add(z, q, 2.857142874366239149e-01)
    q = multiply_add(z, q, 3.999999999940941908e-01)
    q = multiply_add(z, q, 6.666666666666735130e-01)
    half, times = 0.5 * f * f, np.float64(k)
    return times * _SHORT_1 - ((half - (s * (half + z * q) + multiply_add(times, _SHORT_2, left))) - f)


def _single_logarithm(x: Any) -> Any:
    one = np.float32(1)
    one_more = x + one
    of_x = one_more - one
    left = ((one - (one_more - of_x)) + (x - of_x)) / one_more  # what was rounded off, Knuth's two-sum
    bits = np.float32(one_more).view(np.int32)
    k = np.int32(np.int32(bits - _SINGLE_ROOT_HALF) >> np.int32(23))
    f = np.int32(bits - np.int32(k << np.int32(23))).view(np.float32) - one
    s = f / (np.float32(2) + f)
    z = s * s
    q = np.float32(0.24279078841)
    q = multiply_add(z, q, np.float32(0.28498786688))
    q = multiply_add(z, q, np.float32(0.40000972152))
    q = multiply_add(z, q, np.float32(0.66666662693))
    half, times = np.float32(0.5) * f * f, np.float32(k)
    return times * _SINGLE_SHORT_1 - ((half - (s * (half + z * q) + multiply_add(times, _SINGLE_SHORT_2, left))) - f)
