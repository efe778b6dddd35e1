"""Estimates of kernels from how many signed codes agree."""

from collections.abc import Callable

import numpy as np

from app.core.arrays import Array, Matrix, Whole
from app.core.hashing.encodings import Codes, Encoder, Encoding
from app.core.hashing.estimates import Estimate
from app.core.hashing.intervals import rate_intervals
from app.core.hashing.sign_law import UNRELATED, SignLaw

# Packed bytes that are compared at a time.
_BYTES_PER_BLOCK = 1 << 22


def agreeing(x: Codes, y: Codes, s: int, by: Encoder) -> Whole:
    """How many bits, or fingerprints of bands, of row i of x and row i of y agree, (n,)."""
    found = np.empty(len(x), np.int64)
    step = max(1, _BYTES_PER_BLOCK // max(1, x[:1].nbytes))
    for i in range(0, len(x), step):
        some_x, some_y = x[i : i + step], y[i : i + step]
        if by.encoding is Encoding.packed:
            differ = some_x ^ some_y
            if s % 8:  # bits behind the last say nothing
                np.bitwise_and(differ[:, -1], (1 << s % 8) - 1, out=differ[:, -1])
            found[i : i + step] = s - np.bitwise_count(differ).sum(axis=1, dtype=np.int64)
        else:
            found[i : i + step] = (some_x == some_y).sum(axis=1)
    return found


def estimated(counts: Whole, s: int, by: Encoder, law: SignLaw, exact: Matrix | None) -> dict[str, Array]:
    """The kernel of pairs, from how many of their codes agree, by inversion of the law.

    The bias is that of the mean of the estimate, of order 1/s: half the estimates at either standard error of the rate,
    less the one at its mean, which is that of the kernel where it is known, else of the estimate. The standard error is
    half their difference; it is 0 where all codes agree, which is no certainty. The interval is that of the rate, as
    the law maps it, which is monotone: so it holds the kernel as often. It is cut off at 0 and 1.

    Args:
        counts: how many codes agree, (n,).
        s: number of bits.
        by: how the codes are written.
        law: of the kernel.
        exact: the kernel, (n,), or None where it is not known.
    """
    n_codes, rows = s // by.rows_per_band, by.rows_per_band

    def kernels(rates: Matrix) -> Matrix:
        """The kernels of shares of codes that agree, elementwise; no band tells how far below 0 one would be."""
        differ = 1 - rates ** (1 / rows)
        return law.kernels(np.minimum(differ, UNRELATED) if rows > 1 else differ)

    rates = counts / n_codes
    value, low, high = _around(rates, n_codes, kernels)
    error = (high - low) / 2
    middle = value
    if exact is not None:
        middle, low, high = _around((1 - law.rates(exact)) ** rows, n_codes, kernels)
    bias = (low + high) / 2 - middle
    interval = np.clip(kernels(rate_intervals(counts, n_codes)), 0, 1)
    answer: dict[str, Array] = {"estimate": value, "standard_error": error, "agreement": rates}
    if exact is not None:
        answer["exact"] = exact
    return answer | {"bias": bias, "interval": interval}


def kernel_of_bits(counts: Whole, s: int, law: SignLaw) -> Estimate:
    """The kernel of pairs of which so many of s bits agree, and its standard error, both as `estimated` has them."""
    value, low, high = _around(counts / s, s, lambda rates: law.kernels(1 - rates))
    return Estimate(value, (high - low) / 2)


def _around(rates: Matrix, n_codes: int, kernels: Callable[[Matrix], Matrix]) -> tuple[Matrix, Matrix, Matrix]:
    """The kernels of the rates, and of those a standard error below and above."""
    error = np.sqrt(rates * (1 - rates) / n_codes)
    return kernels(rates), kernels(np.maximum(rates - error, 0)), kernels(np.minimum(rates + error, 1))
