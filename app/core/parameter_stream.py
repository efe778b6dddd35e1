"""The random parameters of consistent weighted sampling, from a counter-based stream of our own, version 1.

A code is worth keeping only while the draws behind it never change, so they hang on no library's generator: the draw
for (seed, coordinate, hash) is a pure function, Philox4x64-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as
easy as 1, 2, 3; SC 2011). Key: (seed, stream version). Counter: (coordinate, hash, block, 0). Blocks 0 and 1 give
eight words, of which the first five become uniforms u₁ … u₅ in (0, 1), each from its upper 52 bits:
r = −log(u₁u₂) and c = −log(u₃u₄) are Gamma(2, 1), β = u₅.
"""

import math

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

STREAM_VERSION = 1

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_MULTIPLIER_0 = np.uint64(0xD2E7470EE14C6C93)
_MULTIPLIER_1 = np.uint64(0xCA5A826395121157)
_WEYL_0 = np.uint64(0x9E3779B97F4A7C15)
_WEYL_1 = np.uint64(0xBB67AE8584CAA73B)

# Below this, a level t = log ũ / r could leave int64; the law of r loses 5e-19 of its mass.
_SMALLEST_R = 1e-9

Word = np.uint64


@njit(nogil=True, cache=True)
def _high_word(a: Word, b: Word) -> Word:
    """Upper 64 bits of the 128-bit product."""
    a_low, a_high = a & _LOW, a >> _HALF
    b_low, b_high = b & _LOW, b >> _HALF
    middle = a_high * b_low + ((a_low * b_low) >> _HALF)
    carry = a_low * b_high + (middle & _LOW)
    return a_high * b_high + (middle >> _HALF) + (carry >> _HALF)


@njit(nogil=True, cache=True)
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


@njit(nogil=True, cache=True)
def _uniform(word: Word) -> float:
    return (np.float64(word >> uint64(12)) + 0.5) * 2.0**-52


@njit(nogil=True, cache=True)
def sampling_parameters(
    seed: Word,
    first_coordinate: int,
    r: NDArray[np.float64],
    log_c: NDArray[np.float64],
    beta: NDArray[np.float64],
) -> None:
    """Fill r ~ Gamma(2, 1), log c with c ~ Gamma(2, 1), and β ~ U(0, 1).

    Args:
        seed: the map's seed, an unsigned 64-bit number.
        first_coordinate: coordinate of the arrays' row 0; row i belongs to first_coordinate + i.
        r: shape (coordinates, s), to fill.
        log_c: same shape, to fill.
        beta: same shape, to fill.
    """
    key = (seed, uint64(STREAM_VERSION))
    for row in range(r.shape[0]):
        coordinate = uint64(first_coordinate + row)
        for h in range(r.shape[1]):
            w0, w1, w2, w3 = philox(key, (coordinate, uint64(h), uint64(0), uint64(0)))
            w4, _, _, _ = philox(key, (coordinate, uint64(h), uint64(1), uint64(0)))
            r[row, h] = max(-math.log(_uniform(w0) * _uniform(w1)), _SMALLEST_R)
            log_c[row, h] = math.log(-math.log(_uniform(w2) * _uniform(w3)))
            beta[row, h] = _uniform(w4)
