"""Encodings of the samples (i*, t*) of a row as codes."""

from enum import Enum, StrEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.core.errors import InvalidOption

Codes = NDArray[Any]
Samples = NDArray[np.int64]
"""Pairs (i*, t*), shape (rows, s, 2); −1 in both for a row that has no sample."""

_MOST_BITS = 16
# Widest codes for which there is a wider signed integer that holds −1 too.
_MOST_MARKED_BITS = 32
_DEFAULT_BITS = 8
_FINGERPRINT_BITS = (64, 32)


class Encoding(StrEnum):
    """How a sample (i*, t*) is encoded."""

    pairs = "pairs"
    zero_bit = "zero_bit"
    b_bit = "b_bit"
    packed = "packed"
    one_hot = "one_hot"
    fingerprint = "fingerprint"


class BitsOf(Enum):
    """The number from which a code takes the lowest bits."""

    index = "index"
    mixed_index = "mixed_index"
    pair = "pair"


ENCODINGS = {
    Encoding.pairs: "(i*, t*), int64, shape (n, s, 2): equal as often as the kernel says.",
    Encoding.zero_bit: "i* alone, shape (n, s): close to the pairs only where many coordinates matter.",
    Encoding.b_bit: "The lowest `bits` bits, uint8 or uint16, shape (n, s).",
    Encoding.packed: "The same bits without gaps, uint8, shape (n, ⌈s·bits/8⌉); bit k of a row is bit k mod 8 of byte "
    "⌊k/8⌋, and hash j has the bits from j·bits on, the lowest first.",
    Encoding.one_hot: "Column indices j·2^bits + code, shape (n, s): a row of the 2^bits·s expansion has a 1 in each. "
    "As JSON in CSR form, `indptr`, `indices`, `shape`.",
    Encoding.fingerprint: "The lowest 32 or 64 bits of what bits_of=pair takes bits from, uint32 or uint64, "
    "shape (n, s).",
}

BITS_OF = {
    BitsOf.index: "i* itself, as the paper does; its lowest bit is the sign of the coordinate. Estimates are corrected "
    "as if all coordinates carried the same weight, and each row its share of negative ones at random; where that is "
    "not so, or not known, take pair.",
    BitsOf.mixed_index: "mixed(mixed(j) + i*) for hash j: chance collisions are 2^−bits also on data of one sign.",
    BitsOf.pair: "mixed(mixed(mixed(j) + i*) + t*): unbiased, also where few coordinates carry the weight.",
}


def mix_words(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Map 64-bit words by a fixed bijection that leaves no pattern: one step of SplitMix64 (Steele et al., 2014)."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words ^= words >> np.uint64(30)
    words *= np.uint64(0xBF58476D1CE4E5B9)
    words ^= words >> np.uint64(27)
    words *= np.uint64(0x94D049BB133111EB)
    words ^= words >> np.uint64(31)
    return words


class CodeOptions(NamedTuple):
    """The client's options for writing codes; None means the default."""

    encoding: Encoding | None = None
    bits: int | None = None
    bits_of: BitsOf | None = None
    rows_per_band: int | None = None
    marked: bool = False
    """Whether rows without a sample get codes of −1."""


class Encoder(NamedTuple):
    """One way to write codes.

    `bits` and `bits_of` matter for encodings for which `encoder` accepts them. `marked` makes room for −1, the code of
    a row without a sample. A fingerprint combines `rows_per_band` codes.
    """

    encoding: Encoding
    bits: int = 0
    bits_of: BitsOf = BitsOf.index
    marked: bool = False
    rows_per_band: int = 1

    def row(self, s: int, input_dim: int) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Return the shape and dtype of the codes of one row."""
        match self.encoding:
            case Encoding.pairs:
                return (s, 2), np.dtype(np.int64)
            case Encoding.packed:
                return (-(-s * self.bits // 8),), np.dtype(np.uint8)
            case Encoding.zero_bit:
                largest = 2 * input_dim
            case Encoding.one_hot:
                largest = s << self.bits
            case Encoding.b_bit | Encoding.fingerprint:
                # The smallest type that holds the codes, or the next larger one to hold −1 too.
                bits = np.min_scalar_type((1 << self.bits) - 1).itemsize * 8
                return (s // self.rows_per_band,), np.dtype(f"int{2 * bits}" if self.marked else f"uint{bits}")
        return (s,), np.dtype(np.int32 if largest <= np.iinfo(np.int32).max else np.int64)

    def ends(self, s: int, input_dim: int) -> tuple[NDArray[np.int64], int]:
        """Return the smallest code of each hash, (s,) or (1,), and the number of possible codes from it on."""
        if self.encoding is Encoding.one_hot:
            return np.arange(s) << self.bits, 1 << self.bits
        if self.encoding is Encoding.packed:
            return np.zeros(1, np.int64), 256
        return np.zeros(1, np.int64), 1 << self.bits if self.bits else 2 * input_dim

    def encode(self, samples: Samples, first_hash: int = 0) -> Codes:
        """Encode samples (n, s, 2) of the hashes from `first_hash` on; the caller casts codes to the dtype of `row`.

        Codes of a row without a sample are arbitrary.
        """
        if self.encoding is Encoding.pairs:
            return samples
        if self.encoding is Encoding.zero_bit:
            return samples[..., 0]
        hashes = np.arange(first_hash, first_hash + samples.shape[1], dtype=np.uint64)
        words = samples[..., 0].astype(np.uint64)
        whole = self.encoding is Encoding.fingerprint or self.bits_of is BitsOf.pair
        if whole or self.bits_of is BitsOf.mixed_index:
            # Each hash mixes differently. Otherwise the few different samples of rows dominated by few entries would
            # collide in all hashes or in none.
            words = mix_words(mix_words(hashes) + words)
        if whole:
            words = mix_words(words + samples[..., 1].astype(np.uint64))
        words &= np.uint64((1 << self.bits) - 1)
        if self.encoding is Encoding.one_hot:
            words += hashes << np.uint64(self.bits)
        elif self.encoding is Encoding.packed:
            bits = np.unpackbits(words.astype("<u2").view(np.uint8).reshape(*words.shape, 2), axis=2, bitorder="little")
            return np.packbits(bits[..., : self.bits].reshape(len(bits), -1), axis=1, bitorder="little")
        return words

    @property
    def shows_sign(self) -> bool:
        """Whether the lowest bit of each code is that of i*, the sign of the coordinate."""
        of_bits = self.encoding in (Encoding.b_bit, Encoding.packed, Encoding.one_hot)
        return of_bits and self.bits_of is BitsOf.index

    @property
    def tells_samples(self) -> bool:
        """Whether codes are made of the whole (i*, t*), so that they estimate the kernel; others depend on i* alone."""
        return self.encoding in (Encoding.pairs, Encoding.fingerprint) or self.bits_of is BitsOf.pair

    def chance(self, input_dim: int, same_sign: float | NDArray[np.float64] = 0.5) -> NDArray[np.float64]:
        """Return how often the codes of different samples are equal, in the shape of `same_sign`, m.

        Mixed bits are uniform. Bits of the index are those of the coordinate above one bit for the sign. Let samples be
        independent and uniform over d coordinates, and their signs agree at the rate m. Then the index is the same at
        the rate m/d, and the code of another index at the rate m(1 − 1/d)e, where e is the share of pairs of different
        coordinates with the same upper bits. One sign with two coordinates, and one coordinate with two signs, are both
        counted exactly: for m = ½ and m = 1 the result is the share of pairs of different indices with the same code.

        m is ½ for evenly mixed signs, and 1 if all entries of both rows have the same sign (after centering); a single
        bit then agrees with a chance of 1. m is ignored if codes do not show signs.
        """
        if not self.shows_sign:
            return np.full(np.shape(same_sign), 2.0**-self.bits if self.bits else 0.0)
        n_endings = 1 << (self.bits - 1)
        each, left = divmod(input_dim, n_endings)
        # Ordered pairs of coordinates with the same ending; `left` endings have one coordinate more than the others.
        equal = left * (each + 1) * each + (n_endings - left) * each * (each - 1)
        if not equal:
            return np.zeros(np.shape(same_sign))
        chance: NDArray[np.float64] = np.multiply(same_sign, equal / input_dim) / np.subtract(input_dim, same_sign)
        return chance

    def unpack(self, codes: Codes, s: int) -> Codes:
        """Unpack codes of the encoding `packed`, uint8 (n, ⌈s·bits/8⌉), to one code per hash, (n, s)."""
        # A code of up to 16 bits begins in one byte and ends within the next two.
        octets = np.pad(codes, ((0, 0), (0, 2))).astype(np.uint32)
        words = octets[:, :-2] | octets[:, 1:-1] << 8 | octets[:, 2:] << 16
        first, shift = np.divmod(np.arange(s, dtype=np.uint32) * self.bits, 8)
        unpacked: Codes = (words[:, first] >> shift & (1 << self.bits) - 1).astype(np.uint16)
        return unpacked


def encoder(encoding: Encoding, bits: int | None, bits_of: BitsOf | None, marked: bool = False) -> Encoder:
    """Return the encoder of these options, None for the default; InvalidOption if one does not apply to `encoding`."""
    if encoding in (Encoding.pairs, Encoding.zero_bit):
        if bits is not None:
            raise InvalidOption(f"encoding {encoding.value} keeps whole numbers; bits has no meaning for it", "bits")
    elif encoding is Encoding.fingerprint:
        bits = _FINGERPRINT_BITS[0] if bits is None else bits
        if bits not in _FINGERPRINT_BITS:
            raise InvalidOption(f"bits is {bits}; a fingerprint has 32 or 64", "bits")
    else:
        bits = _DEFAULT_BITS if bits is None else bits
        if not 1 <= bits <= _MOST_BITS:
            raise InvalidOption(f"bits is {bits}; encoding {encoding.value} takes 1 to {_MOST_BITS}", "bits")
    if bits_of is not None and encoding not in (Encoding.b_bit, Encoding.packed, Encoding.one_hot):
        raise InvalidOption(f"bits_of is for b_bit, packed and one_hot, not for {encoding.value}", "bits_of")
    if marked and (encoding is Encoding.packed or (bits or 0) > _MOST_MARKED_BITS):
        raise InvalidOption(
            f"{encoding.value} of {bits} bits cannot mark rows by -1; zero_bit, b_bit and 32-bit fingerprints can",
            "on_zero",
        )
    return Encoder(encoding, bits or 0, bits_of or BitsOf.index, marked)
