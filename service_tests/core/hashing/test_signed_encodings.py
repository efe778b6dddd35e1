"""How signed bits are written: packed, and as fingerprints of bands."""

import numpy as np
import pytest

from app.core.errors import InvalidOption
from app.core.hashing.encodings import BitsOf, CodeOptions, Encoding
from app.core.hashing.signed_codes import SIGNED, signed_encoder, write_bits
from service_tests.cases import each
from service_tests.core.hashing.test_reimplementation import WORD, mixed

FINGERPRINT = Encoding.fingerprint


def fingerprints(bits: list[int], each: int, width: int) -> list[int]:
    """As the reference page defines them."""
    found = []
    for band in range(len(bits) // each):
        some, value = bits[band * each : (band + 1) * each], mixed(band)
        for first in range(0, each, 64):
            value = mixed((value + sum(bit << i for i, bit in enumerate(some[first : first + 64]))) % WORD)
        found.append(value & ((1 << width) - 1))
    return found


def drawn(s: int, n: int = 7) -> tuple[list[list[int]], np.ndarray]:
    bits = np.random.default_rng(s).integers(0, 2, (n, s), np.uint8)
    return bits.tolist(), np.packbits(bits, axis=1, bitorder="little")


@each("width", [32, 64])
@each(("s", "each"), [(64, 16), (100, 16), (100, 1), (130, 65), (200, 128), (9, 9), (33, 7)])
def test_fingerprints_are_those_of_the_reference(s: int, each: int, width: int) -> None:
    bits, packed = drawn(s)
    by = signed_encoder(CodeOptions(FINGERPRINT, width, rows_per_band=each), s)
    found = write_bits(packed, s, by)
    assert found.dtype == np.dtype(f"uint{width}")
    assert found.shape == (len(bits), s // each) == (len(bits), *by.row(s, 3)[0])
    assert found.tolist() == [fingerprints(row, each, width) for row in bits]


def test_packed_bits_stay_as_they_are() -> None:
    _, packed = drawn(100)
    np.testing.assert_array_equal(write_bits(packed, 100, SIGNED), packed)
    assert SIGNED.row(100, 3)[0] == (13,)


@each(
    ("options", "option"),
    [
        *((CodeOptions(encoding), "encoding") for encoding in Encoding if encoding not in ("packed", "fingerprint")),
        (CodeOptions(bits_of=BitsOf.pair), "bits_of"),
        (CodeOptions(marked=True), "on_zero"),
        (CodeOptions(bits=2), "bits"),
        (CodeOptions(Encoding.packed, rows_per_band=8), "rows_per_band"),
        (CodeOptions(FINGERPRINT, 16), "bits"),
        (CodeOptions(FINGERPRINT, rows_per_band=0), "rows_per_band"),
        (CodeOptions(FINGERPRINT, rows_per_band=65), "rows_per_band"),
    ],
)
def test_what_means_nothing_to_signed_codes_is_refused_by_name(options: CodeOptions, option: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        signed_encoder(options, 64)
    assert caught.value.option == option
