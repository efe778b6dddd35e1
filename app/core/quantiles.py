"""Quantiles of frequency distributions, exponentials and logarithms, with the same bits on every processor.

Those of libraries depend on their logarithms and tangents, which round differently on other processors. Here everything
consists of additions, multiplications, divisions and square roots of IEEE 754 in a fixed order.

The rational functions are minimax approximations, found by Lawson's algorithm. Their relative errors are 6.8e-18
(centre of the normal law), 6.9e-19 (its tails) and 1.9e-17 (tangent).

Exponentials and logarithms are for compiled loops. e^x = 2^k·e^r with r = x − k·log 2, |r| ≤ (log 2)/2. e^r is a
minimax polynomial (also found by Lawson's algorithm; relative error 3.6e-18 in float64, 3.1e-9 in float32), and k is
added to the exponent. The error is below 1.1 units in the last place. The logarithm is that of fdlibm (float64) and
musl (float32), with an error below two units.
"""

import math
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from app.core.arrays import Matrix
from app.core.compiled import jit, multiply_add

# log 2 as a sum of two numbers, each the nearest to the remainder; for logarithms, the first number has few digits.
_LOG2_1, _LOG2_2 = float.fromhex("0x1.62e42fefa39efp-1"), float.fromhex("0x1.abc9e3b39803fp-56")
_SINGLE_1, _SINGLE_2 = np.float32(_LOG2_1), np.float32(_LOG2_1 - float(np.float32(_LOG2_1)))
_SHORT_1, _SHORT_2 = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_SINGLE_SHORT_1, _SINGLE_SHORT_2 = np.float32(6.9313812256e-01), np.float32(9.0580006145e-06)
_PER_LOG2, _SINGLE_PER_LOG2 = 1 / _LOG2_1, np.float32(1 / _LOG2_1)
# Added to a number, these round it to a whole number, which is then in the last bits.
_ROUNDING, _SINGLE_ROUNDING = 1.5 * 2.0**52, np.float32(1.5 * 2.0**23)
# Below these the exponential is smaller than the least normal number.
_LEAST, _SINGLE_LEAST = -708.0, np.float32(-87.0)
# The bits of √½. Subtracted from those of a number, they leave its k in 2^k·(1 + f), with 1 + f in [√½, √2).
_ROOT_HALF, _SINGLE_ROOT_HALF = np.int64(0x3FE6A09E667F3BCD), np.int32(0x3F3504F3)


def exponential(x: Any) -> Any:
    """Return e^x of a float x ≤ 0, in the precision of x; 0 below −708, or below −87 in float32."""
    raise NotImplementedError  # a function is chosen by type when a loop is compiled


def log_of_one_more(x: Any) -> Any:
    """Return log(1 + x) of a finite float x ≥ 0, in the precision of x."""
    raise NotImplementedError  # a function is chosen by type when a loop is compiled


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
    left = ((1.0 - (one_more - of_x)) + (x - of_x)) / one_more  # relative rounding error of x + 1, by Knuth's two-sum
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
    left = ((one - (one_more - of_x)) + (x - of_x)) / one_more  # relative rounding error of x + 1, Knuth's two-sum
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


NORMAL, CAUCHY, LAPLACE = range(3)
"""Laws that `quantiles` supports, each at scale 1."""

# Coefficients of two rational functions, one line per power, the highest first: numerator and denominator of the first
# function, then of the second. With q = u − ½, the quantile of the normal law is √(2π)q + q³·first(0.425² − q²) up to
# |q| = 0.425, and beyond that ∓(t − second(t)), where t = √(−2 log u) is taken at the nearer end.
_PARTS = np.array(
    [
        (0, 0, 2.59519966818436456e-7, 7.54417263626681585e-5),
        (570.824376405885415, 19901.0603754124089, 4.98077544661389527e-4, 8.13751415723608008e-3),
        (36639.3735382397193, 67778.2050564032441, 0.0389603214826658235, 0.211277170301291334),
        (86095.3162347534104, 69717.504247075178, 0.766801816777428442, 2.01320551396702168),
        (62155.7946087170715, 31054.0076738276461, 5.63773038195099832, 9.48334107008807927),
        (19099.1917935436215, 6882.1384210916493, 21.5972122779541581, 25.7878911988616175),
        (2786.06141592389847, 791.29169784459053, 44.5724667542780325, 31.61637084491603),
        (190.135225251959727, 45.0282879697148648, 29.104211800879935, 12.7801869199951596),
        (4.87476594139995199, 1, 3.58960907283509327, 1),
    ]
)
_LARGEST_NEAR = 0.425
_ROOT_2_PI = math.sqrt(2 * math.pi)


def quantiles(law: int, uniforms: Matrix) -> Matrix:
    """Return quantiles of a law, elementwise, for float64 uniforms from 2⁻⁵³ to 1 − 2⁻⁵³.

    Errors are below 3 units in the last place, and the laws are symmetric to the bit. The result overwrites `uniforms`,
    which may be as large as a map, unless the array is read-only or not in C order.
    """
    found = np.require(uniforms, np.float64, ("C", "W"))
    _replace(law, found.reshape(-1))
    return found


@jit
def _replace(law: int, values: Matrix) -> None:
    """Replace uniforms, (n,), by their quantiles."""
    for i in range(len(values)):
        uniform = values[i]
        nearer = min(uniform, 1 - uniform)
        if law == LAPLACE:
            size = log_of_one_more((1 - 2 * nearer) / (2 * nearer))
        elif law == CAUCHY:
            # tan(πx) = x·n/d
            x = min(nearer, 0.5 - nearer)
            z = x * x
            n = multiply_add(z, -0.022602770471853328127, 0.858666199592434702)
            n = multiply_add(z, multiply_add(z, n, -3.9775927623803474444), math.pi) * x
            d = multiply_add(z, -0.20039968987531138118, 2.2740008732550030047)
            d = multiply_add(z, multiply_add(z, d, -4.5559752331751828316), 1.0)
            size = d / n if nearer < 0.25 else n / d
        else:
            above = 0.5 - nearer
            is_end = above > _LARGEST_NEAR
            t = math.sqrt(2 * log_of_one_more((1 - nearer) / nearer)) if is_end else 0.0
            x, at = (t, 2) if is_end else (_LARGEST_NEAR**2 - above * above, 0)
            n = d = 0.0
            for k in range(len(_PARTS)):
                n, d = multiply_add(x, n, _PARTS[k, at]), multiply_add(x, d, _PARTS[k, at + 1])
            size = t - n / d if is_end else above * multiply_add(above * above, n / d, _ROOT_2_PI)
        values[i] = -size if uniform < 0.5 else size
