"""The random parameters of signed codes, from a counter-based stream of their own, version 1.

A signed code is the sign of cos(w·x + b) + t, b uniform on the circle and t on [−1, 1] (Raginsky, Lazebnik:
Locality-sensitive binary codes from shift-invariant kernels; NIPS 2009). That is 1 on an arc of phases. Its middle is
`offset` turns before 0 and it is `half_width` turns wide on either side: cos(2π·half_width) = −t.

Nothing of it is frozen, so that maps have codes that were stored before there were any. A draw is a pure function of
seed, version and number of the frequency, in additions, multiplications, divisions and square roots of IEEE 754 each
rounded by itself: it has the same bits on every machine. Philox4x64-10 with the key (seed, "sign" and the version) and
the counter (frequency, 0, 0, 0) gives words, the upper 52 bits of the first two of which become uniforms u₁, u₂ in
(0, 1). u₁ is the offset, and t = 2u₂ − 1.
"""

from typing import NamedTuple

import numpy as np

from app.core.arrays import Matrix, row_blocks
from app.core.hashing.parameter_stream import philox

SIGN_STREAM_VERSION = 1
"""Maps say no version; that means 1."""

_TAG = int.from_bytes(b"sign", "big") << 32
_FREQUENCIES_PER_BLOCK = 1 << 12
# Of the series of arcsin √y/√y, in powers of y; with y < .039 the next term is below 1e-18.
_TERMS = 11


class Arcs(NamedTuple):
    """For each frequency, the arc of phases whose bit is 1, in turns: (s,) each."""

    offsets: Matrix
    """In (0, 1): a phase of so many turns less than a whole number is in the middle of the arc."""
    half_widths: Matrix
    """In (0, ½)."""


def arcs(seed: int, s: int) -> Arcs:
    """The arcs of frequencies 0 to s − 1."""
    found = Arcs(np.empty(s), np.empty(s))
    key = np.uint64(seed), np.uint64(_TAG | SIGN_STREAM_VERSION)
    for block in row_blocks(s, _FREQUENCIES_PER_BLOCK):
        words = np.zeros((4, block.stop - block.start), np.uint64)
        words[0] = np.arange(block.start, block.stop, dtype=np.uint64)
        philox(key, 0, words)
        uniforms = ((words[:2] >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
        found.offsets[block] = uniforms[0]
        found.half_widths[block] = _half_widths(uniforms[1])
    return found


def _half_widths(uniforms: Matrix) -> Matrix:
    """Turns arccos(1 − 2u)/2π = arcsin(√u)/π of uniforms (n,) in (0, 1), to a few units in the last place.

    Libraries round arcsines differently. Here angles above π/4 are taken from ½, twice halved by sin²(a/2) =
    sin²a/(2(1 + cos a)), and then the series of the arcsine is summed.
    """
    small = np.minimum(uniforms, 1 - uniforms)
    squares = small
    for _ in range(2):
        squares = squares / (2 * (1 + np.sqrt(1 - squares)))
    series = np.zeros(len(squares))
    for coefficient in reversed(_coefficients()):
        series = series * squares + coefficient
    turns = np.sqrt(squares) * series * (4 / np.pi)
    return np.where(uniforms > 0.5, 0.5 - turns, turns)


def _coefficients() -> list[float]:
    """(2k)!/(4^k (k!)² (2k + 1)) for k from 0 on, each the nearest double."""
    found, numerator, denominator = [], 1, 1
    for k in range(_TERMS):
        found.append(numerator / (denominator * (2 * k + 1)))
        numerator, denominator = numerator * (2 * k + 1), denominator * (2 * k + 2)
    return found
