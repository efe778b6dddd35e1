"""The parameters of signed codes, against numpy's Philox, and values that must never change."""

import hashlib

import numpy as np
import pytest

from app.core.hashing.signed_codes import arcs

# Of seed and frequency: offset and half width of version 1. Should one of them change, give the stream a new version
# instead: every signed code kept by a client hangs on them.
GOLDEN: dict[tuple[int, int], tuple[str, str]] = {
    (7, 0): ("0x1.dac92ba8edad3p-1", "0x1.57e20aaf89148p-2"),
    (7, 5000): ("0x1.e55f991a445bfp-1", "0x1.417e1596c2ac2p-3"),
    (0, 0): ("0x1.c5ede9fd37529p-1", "0x1.cf2986930c7b4p-3"),
    (18446744073709551615, 65535): ("0x1.cfd6d7b5eed69p-1", "0x1.e8b734ba1e8a1p-3"),
}
DIGEST = "8dfbfb867d4d992c5d928a4ba851f446fb977ab2e2ce1aabc92a2aed9b9c37b2"


@pytest.mark.parametrize(("seed", "frequency"), GOLDEN)
def test_arcs_of_version_1_stay_what_they_are(seed: int, frequency: int) -> None:
    found = arcs(seed, frequency + 1)
    assert (found.offsets[frequency].hex(), found.half_widths[frequency].hex()) == GOLDEN[seed, frequency]


def test_ten_thousand_arcs_stay_what_they_are() -> None:
    found = arcs(7, 10_000)
    words = np.stack(found).astype("<f8").tobytes()
    assert hashlib.sha256(words).hexdigest() == DIGEST


@pytest.mark.parametrize(("seed", "frequency"), GOLDEN)
def test_the_words_are_those_of_numpys_philox_under_a_key_of_their_own(seed: int, frequency: int) -> None:
    key = seed + ((int.from_bytes(b"sign", "big") << 32 | 1) << 64)
    words = np.random.Philox(key=key, counter=(frequency - 1) % (1 << 256)).random_raw(2)
    offset, uniform = (((int(word) >> 12) + 0.5) * 2.0**-52 for word in words)
    found = arcs(seed, frequency + 1)
    assert found.offsets[frequency] == offset
    assert found.half_widths[frequency] == pytest.approx(np.arccos(1 - 2 * uniform) / (2 * np.pi), rel=1e-15)
