"""How the bits of signed codes are written down."""

import numpy as np
from numpy.typing import NDArray

from app.core.errors import InvalidOption
from app.core.hashing.encodings import CodeOptions, Codes, Encoder, Encoding, mixed

SIGNED = Encoder(Encoding.packed, 1)
"""One bit a frequency, as signed codes are written unless something else is asked for."""

_FINGERPRINT_BITS = (64, 32)
_DEFAULT_ROWS_PER_BAND = 16
_WORD = 64
# Bits that are taken apart at a time.
_BITS_PER_BLOCK = 1 << 22


def signed_encoder(options: CodeOptions, s: int) -> Encoder:
    """The encoder of these options for s bits, packed if none is named; InvalidOption for what means nothing to it."""
    wanted, bits, rows_per_band = options.encoding or Encoding.packed, options.bits, options.rows_per_band
    if wanted not in (Encoding.packed, Encoding.fingerprint):
        raise InvalidOption(
            f"encoding {wanted.value} is for hashes of kernel gmm; a Fourier map has one bit a frequency, as packed or "
            "as fingerprint of bands",
            "encoding",
        )
    if options.bits_of is not None:
        raise InvalidOption("bits_of is for hashes of kernel gmm; a Fourier map has one bit a frequency", "bits_of")
    if options.marked:
        raise InvalidOption(
            "on_zero=mark is for hashes of kernel gmm; on a Fourier map a row that is all zero has a code as any other",
            "on_zero",
        )
    if wanted is Encoding.packed:
        if bits not in (None, 1):
            raise InvalidOption(f"bits is {bits}; a Fourier map has one bit a frequency", "bits")
        if rows_per_band is not None:
            raise InvalidOption("rows_per_band is for encoding fingerprint; packed has the bits one by one", _BAND)
        return SIGNED
    bits = _FINGERPRINT_BITS[0] if bits is None else bits
    if bits not in _FINGERPRINT_BITS:
        raise InvalidOption(f"bits is {bits}; a fingerprint has 32 or 64", "bits")
    if rows_per_band is None:
        rows_per_band = min(_DEFAULT_ROWS_PER_BAND, s)
    if not 1 <= rows_per_band <= s:
        raise InvalidOption(f"rows_per_band is {rows_per_band}; this map has 1 to {s}, its number of bits", _BAND)
    return Encoder(Encoding.fingerprint, bits, rows_per_band=rows_per_band)


_BAND = "rows_per_band"


def written(packed: Codes, s: int, by: Encoder) -> Codes:
    """Packed bits (n, ⌈s/8⌉) as `by` writes them.

    The fingerprint of band k, of bits k·r to k·r + r − 1, begins with mixed(k) and goes on, for each word of up to 64
    of them, the first the lowest, with mixed(fingerprint + word). Bits behind the last whole band are in none.
    """
    if by.encoding is Encoding.packed:
        return packed
    (n_bands,), dtype = by.row(s, 0)
    each = by.rows_per_band
    found = np.empty((len(packed), n_bands), dtype)
    starts = mixed(np.arange(n_bands, dtype=np.uint64))
    for i in range(0, len(packed), max(1, _BITS_PER_BLOCK // s)):
        some = packed[i : i + max(1, _BITS_PER_BLOCK // s)]
        bits = np.unpackbits(some, axis=1, count=n_bands * each, bitorder="little").reshape(len(some), n_bands, each)
        prints = np.broadcast_to(starts, (len(some), n_bands))
        for first in range(0, each, _WORD):
            prints = mixed(prints + _words(bits[:, :, first : first + _WORD]))
        found[i : i + len(some)] = prints & np.uint64((1 << by.bits) - 1)
    return found


def _words(bits: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Bits (n, bands, up to 64), the first the lowest of each word, as words (n, bands)."""
    octets = np.zeros((*bits.shape[:2], _WORD // 8), np.uint8)
    packed = np.packbits(bits, axis=2, bitorder="little")
    octets[:, :, : packed.shape[2]] = packed
    words: NDArray[np.uint64] = octets.view("<u8")[:, :, 0].astype(np.uint64)
    return words
