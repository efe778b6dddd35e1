"""The natural logarithm, to the same bits on every machine.

Libraries round the last bit of a logarithm differently, and NumPy's differs between processors; a code that hangs on it
would not keep. This one uses nothing but additions, multiplications and divisions of IEEE 754 and shifts of bits.
"""

import math

import numpy as np
from numpy.typing import NDArray

from app.core.compiled import compiled

_SMALLEST_NORMAL = 2.0**-1022
_ROOT_HALF = np.int64(0x3FE6A09E667F3BCD)
_EXPONENT = np.int64(52)
# ln 2 in two parts; k times the first is exact for every exponent k. (The second: ln 2 to 40 digits minus the first.)
_LN2_HIGH = math.floor(math.log(2) * 2**32) / 2**32
_LN2_LOW = 1.9082149292705877e-10


@compiled
def logarithms(x: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    """Fill out (n,) with log x for finite x > 0, to two units in the last place.

    x = 2^k m with m in [√½, √2), and log m = 2 artanh f with f = (m − 1)/(m + 1), |f| < 0.172: eleven terms of its
    series leave 1e-18.
    """
    n = x.shape[0]
    mantissa = np.empty(n)
    exponent = np.empty(n)
    for i in range(n):
        small = x[i] < _SMALLEST_NORMAL
        mantissa[i] = x[i] * 2.0**54 if small else x[i]
        exponent[i] = -54.0 if small else 0.0
    bits = mantissa.view(np.int64)
    for i in range(n):
        k = (bits[i] - _ROOT_HALF) >> _EXPONENT
        bits[i] -= k << _EXPONENT
        exponent[i] += np.float64(k)
    for i in range(n):
        f = (mantissa[i] - 1.0) / (mantissa[i] + 1.0)
        square = f * f
        series = 1.0 / 23.0
        for odd in range(21, 1, -2):
            series = series * square + 1.0 / odd
        first = 2.0 * f
        out[i] = exponent[i] * _LN2_HIGH + (first + (first * square * series + exponent[i] * _LN2_LOW))
