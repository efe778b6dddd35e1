"""The random parameters of consistent weighted sampling, from a counter-based stream of our own, version 1.

A code is worth keeping only while the draws behind it never change, so they hang on no library's generator and on no
machine's logarithm: the draw for (seed, coordinate, hash) is a pure function of IEEE arithmetic. Philox4x64-10 (Salmon,
Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC 2011) with the key (seed, stream version) and the
counter (coordinate, hash, 0, 0) gives four words. The upper 52 bits of each become uniforms u₁ … u₄ in (0, 1), the
lower 12 bits of all four, those of the first word first, the 48 bits of u₅:
r = −log(u₁u₂) and c = −log(u₃u₄) are Gamma(2, 1), β = u₅.
"""

import math

import numpy as np
from numpy.typing import NDArray

from app.core.compiled import compiled

STREAM_VERSION = 1

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_MULTIPLIER_0 = np.uint64(0xD2E7470EE14C6C93)
_MULTIPLIER_1 = np.uint64(0xCA5A826395121157)
_WEYL_0 = np.uint64(0x9E3779B97F4A7C15)
_WEYL_1 = np.uint64(0xBB67AE8584CAA73B)
_SPARE = np.uint64(12)
_SPARE_BITS = np.uint64(0xFFF)

# Below this, a level t = log ũ / r could leave int64; the law of r loses 5e-19 of its mass.
_SMALLEST_R = 1e-9

_SMALLEST_NORMAL = 2.0**-1022
_ROOT_HALF = np.int64(0x3FE6A09E667F3BCD)
_EXPONENT = np.int64(52)
# ln 2 in two parts; k times the first is exact for every exponent k. (The second: ln 2 to 40 digits minus the first.)
_LN2_HIGH = math.floor(math.log(2) * 2**32) / 2**32
_LN2_LOW = 1.9082149292705877e-10

Row = NDArray[np.float64]
Word = np.uint64


@compiled
def logarithms(x: Row, out: Row) -> None:
    """Fill out (n,) with log x for finite x > 0, to two units in the last place and to the same bits on every machine.

    Libraries round the last bit of a logarithm differently, and NumPy's differs between processors; a code that hangs
    on it would not keep. This one uses nothing but additions, multiplications and divisions of IEEE 754 and shifts.

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


@compiled
def _high_word(a: Word, b: Word) -> Word:
    """Upper 64 bits of the 128-bit product."""
    a_low, a_high = a & _LOW, a >> _HALF
    b_low, b_high = b & _LOW, b >> _HALF
    middle = a_high * b_low + ((a_low * b_low) >> _HALF)
    carry = a_low * b_high + (middle & _LOW)
    return a_high * b_high + (middle >> _HALF) + (carry >> _HALF)


@compiled
def philox(key: tuple[Word, Word], counter: tuple[Word, Word, Word, Word]) -> tuple[Word, Word, Word, Word]:
    """Ten rounds of Philox4x64: four random words for one key and counter."""
    k0, k1 = key
    c0, c1, c2, c3 = counter
    for _ in range(10):
        h0, l0 = _high_word(_MULTIPLIER_0, c0), _MULTIPLIER_0 * c0
        h1, l1 = _high_word(_MULTIPLIER_1, c2), _MULTIPLIER_1 * c2
        c0, c1, c2, c3 = h1 ^ c1 ^ k0, l1, h0 ^ c3 ^ k1, l0
        k0 += _WEYL_0
        k1 += _WEYL_1
    return c0, c1, c2, c3


@compiled
def _uniform(word: Word) -> float:
    return (np.float64(word >> _SPARE) + 0.5) * 2.0**-52


@compiled
def sampling_parameters(seed: Word, coordinate: int, first_hash: int, r: Row, log_c: Row, beta: Row) -> None:
    """Fill r ~ Gamma(2, 1), log c with c ~ Gamma(2, 1), and β ~ U(0, 1) of coordinate i, each of shape (hashes,).

    Entry 0 belongs to the hash `first_hash`.
    """
    n = r.shape[0]
    key = (seed, np.uint64(STREAM_VERSION))
    products = np.empty(2 * n)
    for h in range(n):
        counter = (np.uint64(coordinate), np.uint64(first_hash + h), np.uint64(0), np.uint64(0))
        w0, w1, w2, w3 = philox(key, counter)
        products[h] = _uniform(w0) * _uniform(w1)
        products[n + h] = _uniform(w2) * _uniform(w3)
        spare = (((w0 & _SPARE_BITS) << _SPARE | (w1 & _SPARE_BITS)) << _SPARE | (w2 & _SPARE_BITS)) << _SPARE
        beta[h] = (np.float64(spare | (w3 & _SPARE_BITS)) + 0.5) * 2.0**-48
    logarithms(products, products)
    for h in range(n):
        r[h] = max(-products[h], _SMALLEST_R)
        products[h] = -products[n + h]
    logarithms(products[:n], log_c)
