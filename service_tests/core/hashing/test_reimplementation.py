"""Codes made again in plain Python from the page of the hash stream, and from nothing else."""

import math
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from app.core.arrays import vectors
from app.core.hashing.encodings import BitsOf, Encoder, Encoding
from service_tests.core.specs import hashing

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "hash-stream.md"
WORD = 1 << 64
SEED, S = 7, 150
ROWS = [[0.5, -1.25, 2.0], [0.0, 3.0, 0.0], [1e-30, 1e30, -1.0], [-0.1, -0.2, 0.3], [7.0, 5e-324, -1.5e-310]]
CENTER = [0.1, -1.0, 2.0]


def philox(key: tuple[int, int], counter: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    (k, m), (a, b, c, d) = key, counter
    for _ in range(10):
        one, two = a * 0xD2E7470EE14C6C93, c * 0xCA5A826395121157
        a, b, c, d = two // WORD ^ b ^ k, two % WORD, one // WORD ^ d ^ m, one % WORD
        k, m = (k + 0x9E3779B97F4A7C15) % WORD, (m + 0xBB67AE8584CAA73B) % WORD
    return a, b, c, d


def log(x: float) -> float:
    (root,) = struct.unpack(">d", bytes.fromhex("3FE6A09E667F3BCD"))
    m, k = math.frexp(x)
    if m < root:
        m, k = 2 * m, k - 1
    f = (m - 1) / (m + 1)
    q, g = f * f, 2 * f
    series = 1 / 23
    for n in range(21, 2, -2):
        series = series * q + 1 / n
    return k * (2977044471 / 2**32) + (g + (g * q * series + k * 1.9082149292705877e-10))


def draws(seed: int, i: int, h: int) -> tuple[float, float, float]:
    words = philox((seed, 1), (i, h, 0, 0))
    u1, u2, u3, u4 = ((word // 2**12 + 0.5) * 2.0**-52 for word in words)
    spare = 0
    for word in words:
        spare = spare * 2**12 + word % 2**12
    return max(-log(u1 * u2), 1e-9), -log(u3 * u4), (spare + 0.5) * 2.0**-48


def sample(entries: dict[int, float], h: int, seed: int, p: float) -> tuple[int, int]:
    """(i*, t*) of what is not zero, by its column."""
    best = (math.inf, -1, -1)
    for j, v in entries.items():
        i = 2 * j if v > 0 else 2 * j + 1
        r, c, beta = draws(seed, i, h)
        k = log(c) - r * (1 - beta)
        t = math.floor(p * log(abs(v)) * (1 / r) + beta)
        best = min(best, (k - r * t, i, t))
    return best[1:]


def mixed(w: int) -> int:
    z = (w + 0x9E3779B97F4A7C15) % WORD
    z = (z ^ z // 2**30) * 0xBF58476D1CE4E5B9 % WORD
    z = (z ^ z // 2**27) * 0x94D049BB133111EB % WORD
    return z ^ z // 2**31


def fingerprint(h: int, i: int, t: int) -> int:
    return mixed((mixed((mixed(h) + i) % WORD) + t) % WORD)


def made(rows: list[list[float]], dtype: str, center: list[float], seed: int, p: float) -> list[list[tuple[int, int]]]:
    """The samples of dense rows."""
    rounded = np.array(rows, dtype).astype(float) - np.array(center, dtype).astype(float)
    entries = [{j: float(v) for j, v in enumerate(row) if v} for row in rounded]
    return [[sample(row, h, seed, p) for h in range(S)] for row in entries]


@pytest.mark.parametrize("center", [None, CENTER], ids=["plain", "centered"])
@pytest.mark.parametrize("p", [1.0, 2.5])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("seed", [SEED, WORD - 1])
def test_the_samples_are_those_that_the_readme_describes(seed: int, dtype: str, p: float, center: Any) -> None:
    posted = ROWS[: 4 if dtype == "float32" else None]
    sampling = hashing(input_dim=3, s=S, seed=seed, dtype=dtype, kernel={"kind": "gmm", "p": p, "center": center})
    codes = sampling.codes(vectors(np.array(posted), 3, np.dtype(dtype)))
    expected = made(posted, dtype, center or [0.0] * 3, seed, p)
    assert codes.tolist() == [[list(pair) for pair in row] for row in expected]
    assert len(np.unique(codes[..., 0])) > 3


def test_far_coordinates_of_sparse_rows_too() -> None:
    far = (1 << 31) - 1
    entries = {0: 1.5, far // 2: -2.0, far: 0.75}
    columns, values = np.array(list(entries)), np.array(list(entries.values()))
    row = sparse.csr_array((values, columns, np.array([0, 3])), shape=(1, far + 1))
    codes = hashing(input_dim=far + 1, s=S).codes(row)
    assert codes.tolist() == [[list(sample(entries, h, SEED, 1.0)) for h in range(S)]]


@pytest.mark.parametrize("bits", [3, 16])
def test_the_bits_are_those_that_the_page_describes(bits: int) -> None:
    sampling, samples = hashing(input_dim=3, s=S), made(ROWS, "float64", [0.0] * 3, SEED, 1.0)

    def codes(encoding: Encoding, bits: int, bits_of: BitsOf = BitsOf.index) -> Any:
        return sampling.codes(np.array(ROWS), Encoder(encoding, bits, bits_of)).tolist()

    numbered = [list(enumerate(row)) for row in samples]
    of_index = [[i % 2**bits for _, (i, _) in row] for row in numbered]
    of_mixed = [[mixed((mixed(h) + i) % WORD) % 2**bits for h, (i, _) in row] for row in numbered]
    prints = [[fingerprint(h, i, t) for h, (i, t) in row] for row in numbered]
    assert codes(Encoding.b_bit, bits, BitsOf.index) == of_index
    assert codes(Encoding.b_bit, bits, BitsOf.mixed_index) == of_mixed
    assert codes(Encoding.b_bit, bits, BitsOf.pair) == [[word % 2**bits for word in row] for row in prints]
    assert codes(Encoding.fingerprint, 64) == prints


def test_the_page_gives_an_example_to_check_with() -> None:
    samples = made(ROWS[:1], "float64", [0.0] * 3, SEED, 1.0)[0][:3]
    told = re.search(
        r"the row \[0\.5, −1\.25, 2\]\. Its first three samples are (.*?),\n.*fingerprints (.*?)\.\n",
        PAGE.read_text(),
    )
    assert told is not None
    assert told[1].replace("−", "-") == ", ".join(str(pair) for pair in samples)
    assert told[2] == ", ".join(str(fingerprint(h, i, t)) for h, (i, t) in enumerate(samples))
