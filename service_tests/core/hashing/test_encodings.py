"""Encodings against their definitions in whole numbers of Python, bit by bit."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.hashing.encodings import BitsOf, Encoder, Encoding, encoder
from service_tests.cases import each
from service_tests.core.hashing.test_reimplementation import WORD
from service_tests.core.hashing.test_reimplementation import mixed as mix
from service_tests.core.specs import hashing

# Ordinary samples, levels below 0, and the ends of what coordinates (2³² of them) and levels can be.
SAMPLES = [(0, 0), (1, -1), (2, 5), (399, -73), ((1 << 32) - 1, -(1 << 40)), (7, 1 << 62), (8, -(1 << 63))]


def samples(n: int = 9, s: int = 13, seed: int = 5) -> NDArray[np.int64]:
    """Random samples, led by the special ones."""
    rng = np.random.default_rng(seed)
    made = np.stack([rng.integers(0, 4000, (n, s)), rng.integers(-500, 500, (n, s))], axis=2)
    made[0, : len(SAMPLES)] = SAMPLES
    return made


def low_bits(j: int, index: int, level: int, bits: int, bits_of: BitsOf) -> int:
    """The code of one sample of hash j."""
    mixed_index = mix((mix(j) + index) % WORD)
    words = {
        BitsOf.index: index,
        BitsOf.mixed_index: mixed_index,
        BitsOf.pair: mix((mixed_index + level) % WORD),
    }
    return words[bits_of] % (1 << bits)


def slow(made: NDArray[np.int64], bits: int, bits_of: BitsOf) -> list[list[int]]:
    return [[low_bits(j, int(i), int(t), bits, bits_of) for j, (i, t) in enumerate(row)] for row in made]


def written(how: Encoder, made: NDArray[np.int64], input_dim: int = 10_000) -> NDArray[Any]:
    """As a map writes them."""
    shape, dtype = how.row(made.shape[1], input_dim)
    codes = np.empty((len(made), *shape), dtype)
    codes[:] = how.encode(made)
    return codes


@each("bits_of", BitsOf)
@each("bits", range(1, 17))
def test_b_bit_codes_are_the_lowest_bits_and_the_others_are_made_of_them(bits: int, bits_of: BitsOf) -> None:
    made = samples()
    plain = slow(made, bits, bits_of)
    assert written(Encoder(Encoding.b_bit, bits, bits_of), made).tolist() == plain

    one_hot = written(Encoder(Encoding.one_hot, bits, bits_of), made)
    assert one_hot.tolist() == [[j * 2**bits + code for j, code in enumerate(row)] for row in plain]

    packing = Encoder(Encoding.packed, bits, bits_of)
    packed = written(packing, made)
    for row, codes in zip(packed.tolist(), plain, strict=True):
        number = sum(code << (j * bits) for j, code in enumerate(codes))
        assert row == list(number.to_bytes(-(-13 * bits // 8), "little"))
    assert packing.unpack(packed, 13).tolist() == plain


@pytest.mark.parametrize("bits", [32, 64])
def test_a_fingerprint_is_the_lowest_bits_of_the_mixed_pair(bits: int) -> None:
    codes = written(Encoder(Encoding.fingerprint, bits), samples())
    assert codes.tolist() == slow(samples(), bits, BitsOf.pair)


def test_the_codes_of_fixed_samples_never_change() -> None:
    made = np.array([SAMPLES])
    assert written(Encoder(Encoding.fingerprint, 64), made).tolist() == [
        [
            2558736989570252433,
            7427600023522335032,
            1611321004572109886,
            3705303796577471624,
            2757890264495426152,
            12885751710323841962,
            1416851712406607579,
        ]
    ]
    assert written(Encoder(Encoding.fingerprint, 32), made).tolist() == [
        [956087953, 1203460408, 2695195710, 3823635592, 1757547112, 2914786218, 694572763]
    ]
    assert written(Encoder(Encoding.b_bit, 8, BitsOf.index), made).tolist() == [[0, 1, 2, 143, 255, 7, 8]]
    assert written(Encoder(Encoding.b_bit, 8, BitsOf.mixed_index), made).tolist() == [[111, 3, 140, 203, 48, 157, 51]]
    assert written(Encoder(Encoding.b_bit, 8, BitsOf.pair), made).tolist() == [[145, 56, 62, 136, 104, 170, 219]]
    assert written(Encoder(Encoding.packed, 3, BitsOf.pair), made).tobytes().hex() == "81010d"
    assert written(Encoder(Encoding.one_hot, 4, BitsOf.pair), made).tolist() == [[1, 24, 46, 56, 72, 90, 107]]


@each(
    ("how", "shape", "dtype"),
    [
        (Encoder(Encoding.pairs), (13, 2), "int64"),
        (Encoder(Encoding.pairs, marked=True), (13, 2), "int64"),
        (Encoder(Encoding.zero_bit), (13,), "int32"),
        (Encoder(Encoding.zero_bit, marked=True), (13,), "int32"),
        (Encoder(Encoding.b_bit, 1), (13,), "uint8"),
        (Encoder(Encoding.b_bit, 8), (13,), "uint8"),
        (Encoder(Encoding.b_bit, 9), (13,), "uint16"),
        (Encoder(Encoding.b_bit, 16), (13,), "uint16"),
        (Encoder(Encoding.b_bit, 8, marked=True), (13,), "int16"),
        (Encoder(Encoding.b_bit, 9, marked=True), (13,), "int32"),
        (Encoder(Encoding.packed, 1), (2,), "uint8"),
        (Encoder(Encoding.packed, 8), (13,), "uint8"),
        (Encoder(Encoding.packed, 11), (18,), "uint8"),
        (Encoder(Encoding.one_hot, 8), (13,), "int32"),
        (Encoder(Encoding.one_hot, 16, marked=True), (13,), "int32"),
        (Encoder(Encoding.fingerprint, 32), (13,), "uint32"),
        (Encoder(Encoding.fingerprint, 64), (13,), "uint64"),
        (Encoder(Encoding.fingerprint, 32, marked=True), (13,), "int64"),
    ],
)
def test_shapes_and_dtypes_are_the_documented_ones(how: Encoder, shape: tuple[int, ...], dtype: str) -> None:
    assert how.row(13, 5000) == (shape, np.dtype(dtype))


@pytest.mark.parametrize("encoding", [e for e in Encoding if e is not Encoding.packed])
def test_a_row_without_a_sample_is_minus_one_in_every_hash_and_its_neighbours_are_as_ever(encoding: Encoding) -> None:
    how = encoder(encoding, 32 if encoding is Encoding.fingerprint else None, None, marked=True)
    plain = how._replace(marked=False)
    sampling, rows = hashing(input_dim=5), np.random.default_rng(2).normal(size=(5, 5))
    with_zero = np.insert(rows, 2, 0, axis=0)
    codes = sampling.codes(with_zero, how)
    assert (codes[2] == -1).all()
    assert (np.delete(codes, 2, axis=0) == sampling.codes(rows, plain)).all()
    assert (np.delete(codes, 2, axis=0) >= 0).all() or encoding is Encoding.pairs
