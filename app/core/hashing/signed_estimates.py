"""Estimates of kernels from how many signed codes agree."""

import numpy as np

from app.core.arrays import Array, Matrix, Whole, row_blocks
from app.core.hashing.encodings import Codes, Encoder, Encoding
from app.core.hashing.estimates import Estimate
from app.core.hashing.intervals import rate_intervals
from app.core.hashing.sign_law import UNRELATED, SignLaw
from app.core.hashing.signed_encodings import SIGNED

# Packed bytes that are compared at a time.
_BYTES_PER_BLOCK = 1 << 22
_PAIRS_PER_BLOCK = 1 << 16


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
    n_codes = s // by.rows_per_band
    if n_codes < len(counts):  # each count there can be once, and then no more than is answered
        every: dict[str, Array] = _of_counts(np.arange(n_codes + 1), by, law, n_codes)
        found = {name: numbers[counts] for name, numbers in every.items()}
    else:
        found = _of_counts(counts, by, law, n_codes)
    if exact is None:
        return found
    for block in row_blocks(len(exact), _PAIRS_PER_BLOCK):
        found["bias"][block] = _bias((1 - law.rates(exact[block])) ** by.rows_per_band, by, law, n_codes)
    names = [*found]
    names.insert(names.index("bias"), "exact")
    return {name: (found | {"exact": exact})[name] for name in names}


def _of_counts(counts: Whole, by: Encoder, law: SignLaw, n_codes: int) -> dict[str, Array]:
    """What `estimated` gives of counts, where no kernel is known."""
    rates = counts / n_codes
    value, low, high = _around(rates, by, law, n_codes)
    return {
        "estimate": value,
        "standard_error": (high - low) / 2,
        "agreement": rates,
        "bias": _bias(rates, by, law, n_codes),
        "interval": np.clip(_kernels(rate_intervals(counts, n_codes), by, law), 0, 1),
    }


def kernel_of_bits(counts: Whole, s: int, law: SignLaw) -> Estimate:
    """The kernel of pairs of which so many of s bits agree, and its standard error, both as `estimated` has them."""
    value, low, high = _around(counts / s, SIGNED, law, s)
    return Estimate(value, (high - low) / 2)


def _bias(rates: Matrix, by: Encoder, law: SignLaw, n_codes: int) -> Matrix:
    middle, low, high = _around(rates, by, law, n_codes)
    return (low + high) / 2 - middle


def _around(rates: Matrix, by: Encoder, law: SignLaw, n_codes: int) -> tuple[Matrix, Matrix, Matrix]:
    """The kernels of the rates, and of those a standard error below and above."""
    error = np.sqrt(rates * (1 - rates) / n_codes)
    low, high = np.maximum(rates - error, 0), np.minimum(rates + error, 1)
    return _kernels(rates, by, law), _kernels(low, by, law), _kernels(high, by, law)


def _kernels(rates: Matrix, by: Encoder, law: SignLaw) -> Matrix:
    """The kernels of shares of codes that agree, elementwise; no band tells how far below 0 one would be."""
    differ = 1 - rates ** (1 / by.rows_per_band)
    return law.kernels(np.minimum(differ, UNRELATED) if by.rows_per_band > 1 else differ)
