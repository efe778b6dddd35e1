"""The random parameters of consistent weighted sampling, from a counter-based stream of our own, version 1.

Stored codes are useful only if the draws behind them never change, so draws depend on no library's generator and on no
machine's logarithm: the draw for (seed, coordinate, hash) is a pure function of IEEE arithmetic. Philox4x64-10 (Salmon,
Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC 2011) with the key (seed, stream version) and the
counter (coordinate, hash, 0, 0) yields four words. The upper 52 bits of each become uniforms u₁ … u₄ in (0, 1). The
lower 12 bits of all four, the first word's first, become the 48 bits of u₅.
r = −log(u₁u₂) and c = −log(u₃u₄) are Gamma(2, 1), β = u₅.
"""

import math

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Matrix, Whole
from app.core.compiled import jit

STREAM_VERSION = 1

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_MULTIPLIER_0 = np.uint64(0xD2E7470EE14C6C93)
_MULTIPLIER_1 = np.uint64(0xCA5A826395121157)
_WEYL_0 = np.uint64(0x9E3779B97F4A7C15)
_WEYL_1 = np.uint64(0xBB67AE8584CAA73B)
_SPARE = np.uint64(12)
_SPARE_BITS = np.uint64(0xFFF)

# Least r: below it, a level t = log ũ / r could leave int64. It cuts off 5e-19 of the mass of r.
_SMALLEST_R = 1e-9

_SMALLEST_NORMAL = 2.0**-1022
_ROOT_HALF = np.int64(0x3FE6A09E667F3BCD)
_EXPONENT = np.int64(52)
# ln 2 in two parts; k times the first is exact for every exponent k. (The second: ln 2 to 40 digits minus the first.)
_LN2_HIGH = math.floor(math.log(2) * 2**32) / 2**32
_LN2_LOW = 1.9082149292705877e-10

Words = NDArray[np.uint64]
Word = np.uint64


@jit
def logarithms(x: Matrix, out: Matrix) -> None:
    """Fill out (n,) with log x for finite x > 0, to two units in the last place, with the same bits on any machine.

    Libraries round the last bit of a logarithm differently, and NumPy's differs between processors; codes that depend
    on it could not be stored. This one uses only IEEE 754 additions, multiplications and divisions, and shifts.
    """
    n = x.shape[0]
    normal = np.empty(n)
    exponent = np.empty(n)
    for i in range(n):
        small = x[i] < _SMALLEST_NORMAL
        normal[i] = x[i] * 2.0**54 if small else x[i]
        exponent[i] = -54.0 if small else 0.0
    scaled_logarithms(normal, exponent)
    for i in range(n):
        out[i] = normal[i]


@jit
def scaled_logarithms(x: Matrix, exponent: Matrix) -> None:
    """Replace x (n,), normal numbers > 0, by log(x 2^exponent); the exponents are overwritten.

    x = 2^k m with m in [√½, √2), and log m = 2 artanh f with f = (m − 1)/(m + 1), |f| < 0.172: eleven terms of its
    series leave an error of 1e-18. In three loops, because a processor overlaps more passes of a short loop.
    """
    bits = x.view(np.int64)
    for i in range(x.shape[0]):
        k = (bits[i] - _ROOT_HALF) >> _EXPONENT
        bits[i] -= k << _EXPONENT
        exponent[i] += np.float64(k)
    for i in range(x.shape[0]):
        x[i] = (x[i] - 1.0) / (x[i] + 1.0)
    for i in range(x.shape[0]):
        square = x[i] * x[i]
        series = 1.0 / 23.0
        for odd in range(21, 1, -2):
            series = series * square + 1.0 / odd
        first = 2.0 * x[i]
        x[i] = exponent[i] * _LN2_HIGH + (first + (first * square * series + exponent[i] * _LN2_LOW))


@jit
def _product(a: Word, b: Word) -> tuple[Word, Word]:
    """Return upper and lower half of the 128-bit product, from 32-bit products: vector units have no wider ones."""
    a_low, a_high = a & _LOW, a >> _HALF
    b_low, b_high = b & _LOW, b >> _HALF
    lowest = a_low * b_low
    middle = a_high * b_low + (lowest >> _HALF)
    carry = a_low * b_high + (middle & _LOW)
    return a_high * b_high + (middle >> _HALF) + (carry >> _HALF), carry << _HALF | (lowest & _LOW)


@jit
def _round(
    key: tuple[Word, Word], number: int, c0: Word, c1: Word, c2: Word, c3: Word
) -> tuple[Word, Word, Word, Word]:
    """Compute round `number`, from 0 to 9, of Philox4x64."""
    h0, l0 = _product(_MULTIPLIER_0, c0)
    h1, l1 = _product(_MULTIPLIER_1, c2)
    times = np.uint64(number)
    return h1 ^ c1 ^ (key[0] + times * _WEYL_0), l1, h0 ^ c3 ^ (key[1] + times * _WEYL_1), l0


@jit
def philox(key: tuple[Word, Word], done: int, words: Words) -> None:
    """Do the rounds from `done` to 9 of Philox4x64 on words (4, n), in place; all 10 turn counters into random words.

    All counters go through a round before the next round, so that no instruction waits for the one before it.
    """
    w0, w1, w2, w3 = words[0], words[1], words[2], words[3]
    for number in range(done, 10):
        for i in range(words.shape[1]):
            w0[i], w1[i], w2[i], w3[i] = _round(key, number, w0[i], w1[i], w2[i], w3[i])


@jit
def _random_words(seed: Word, coordinates: Whole, first_hash: int, words: Words) -> None:
    """Fill words (4, n) with the random words of each coordinate and hash, hashes innermost."""
    key, none = (seed, np.uint64(STREAM_VERSION)), np.uint64(0)
    w0, w1, w2, w3 = words[0], words[1], words[2], words[3]
    n_hashes = words.shape[1] // coordinates.shape[0]
    for i in range(coordinates.shape[0]):
        start = i * n_hashes
        # Four of the first three rounds' six products are the same for all hashes and are computed outside the loop.
        for h in range(n_hashes):
            c0, c1, c2, c3 = _round(key, 0, np.uint64(coordinates[i]), np.uint64(first_hash + h), none, none)
            c0, c1, c2, c3 = _round(key, 1, c0, c1, c2, c3)
            k = start + h
            w0[k], w1[k], w2[k], w3[k] = _round(key, 2, c0, c1, c2, c3)
    philox(key, 3, words)


@jit
def _uniform(word: Word) -> float:
    return (np.float64(word >> _SPARE) + 0.5) * 2.0**-52


@jit
def sampling_parameters(seed: Word, coordinates: Whole, first_hash: int, drawn: Matrix) -> None:
    """Fill drawn (4, coordinates, hashes) with r ~ Gamma(2, 1), 1/r, log c with c ~ Gamma(2, 1), and β ~ U(0, 1).

    Its hash 0 is `first_hash`. Fastest for about 1,000 draws: enough for vector units, and few enough for the cache.
    """
    flat = drawn.reshape(4, drawn.size // 4)
    words = flat.view(np.uint64)
    _random_words(seed, coordinates, first_hash, words)
    # Each number takes the place of a word. 1/r is computed last; until then its place holds exponents.
    w0, w1, w2, w3 = words[0], words[1], words[2], words[3]
    r, inverse, log_c, beta = flat[0], flat[1], flat[2], flat[3]
    for i in range(r.shape[0]):
        v0, v1, v2, v3 = w0[i], w1[i], w2[i], w3[i]
        r[i] = _uniform(v0) * _uniform(v1)
        log_c[i] = _uniform(v2) * _uniform(v3)
        spare = (((v0 & _SPARE_BITS) << _SPARE | (v1 & _SPARE_BITS)) << _SPARE | (v2 & _SPARE_BITS)) << _SPARE
        beta[i] = (np.float64(spare | (v3 & _SPARE_BITS)) + 0.5) * 2.0**-48
        inverse[i] = 0.0
    scaled_logarithms(log_c, inverse)
    for i in range(r.shape[0]):
        log_c[i] = -log_c[i]
        inverse[i] = 0.0
    scaled_logarithms(log_c, inverse)
    for i in range(r.shape[0]):
        inverse[i] = 0.0
    scaled_logarithms(r, inverse)
    for i in range(r.shape[0]):
        r[i] = max(-r[i], _SMALLEST_R)
        inverse[i] = 1.0 / r[i]
