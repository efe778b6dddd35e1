"""The parameter stream against numpy's Philox, and values that must never change."""

import hashlib
import math
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.hashing.parameter_stream import STREAM_VERSION, philox, sampling_parameters
from service_tests.cases import each

Tables = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]

MOST = (1 << 64) - 1
WORDS = [0, 1, 2, MOST, 0x0123456789ABCDEF]
# r, log c and β of version 1 by (seed, coordinate, first hash). Should one of these change, give the stream a new
# version instead: every code kept by a client hangs on them.
GOLDEN: dict[tuple[int, int, int], list[tuple[str, str, str]]] = {
    (7, 3, 0): [
        ("0x1.2feb200a52c6ep+0", "0x1.0afa034824f2dp-2", "0x1.1229d6b8cf070p-1"),
        ("0x1.227b06b1079e0p+0", "0x1.2de5e73cbe0acp+0", "0x1.90f245ec98890p-1"),
        ("0x1.ea0493b7ace70p-2", "0x1.c3f8d16b04942p-2", "0x1.9f80b6b1a7bd0p-1"),
    ],
    (0, 0, 0): [
        ("0x1.431cf46a6caa7p-1", "0x1.169ff70e0d018p+0", "0x1.11a4e1f8f7680p-4"),
        ("0x1.936653d1fd50bp+0", "0x1.019f870b6ea94p-1", "0x1.bba2795a35420p-2"),
        ("0x1.1ddb21470ce56p+1", "0x1.4a6578faf7b1cp-1", "0x1.229e50ab0efe0p-2"),
    ],
    (18446744073709551615, 4294967295, 4294967295): [
        ("0x1.d73044c97030bp+1", "0x1.e3c21f1f3c44ep-1", "0x1.c1d1918393340p-3"),
        ("0x1.3883e9c8dbae3p-1", "-0x1.4a0d23f83d8aep-1", "0x1.345e9bad89e00p-6"),
        ("0x1.ea45a0e9575dbp+0", "0x1.e6e495a9be0f8p-4", "0x1.619867f7a1f40p-3"),
    ],
}

DIGEST = "77306c6ddfc7673e167abc1687c1a7dcab4a719866613675147b7df4e247e28f"


def row(seed: int, coordinate: int, first_hash: int, hashes: int) -> Tables:
    r, _, log_c, beta = draws(seed, [coordinate], first_hash, hashes)[:, 0]
    return r, log_c, beta


def draws(seed: int, coordinates: list[int], first_hash: int, hashes: int) -> NDArray[np.float64]:
    drawn = np.full((4, len(coordinates), hashes), np.nan)
    sampling_parameters(np.uint64(seed), np.array(coordinates, np.int64), first_hash, drawn)
    return drawn


def words(key: tuple[int, int], counters: Sequence[tuple[int, ...]]) -> list[list[int]]:
    made = np.ascontiguousarray(np.array(counters, np.uint64).T)
    philox((np.uint64(key[0]), np.uint64(key[1])), 0, made)
    return [[int(word) for word in four] for four in made.T]


def numpy_words(key: tuple[int, ...], counter: tuple[int, ...]) -> list[int]:
    """Numpy adds one to the 256-bit counter before each use."""
    number = sum(word << (64 * place) for place, word in enumerate(counter))
    before = (number - 1) % (1 << 256)
    return [int(word) for word in np.random.Philox(key=key[0] + (key[1] << 64), counter=before).random_raw(4)]


@pytest.mark.parametrize("key", [(0, 0), (7, 1), (1, 7), (MOST, MOST), (0xDEADBEEF, 1 << 63)])
def test_the_words_are_those_of_numpys_philox(key: tuple[int, int]) -> None:
    counters = [(a, b, 0, 0) for a in WORDS for b in WORDS] + [(5, 4, 3, 2), (0, 0, 0, MOST), (MOST,) * 4]
    expected = [numpy_words(key, counter) for counter in counters]
    assert words(key, counters) == expected
    assert [words(key, [counter])[0] for counter in counters] == expected


FAR = (1 << 32) - 1


@pytest.mark.parametrize(
    ("seed", "coordinate", "first_hash"), [(7, 3, 0), (MOST, FAR, 0), (0, 0, FAR), (1, FAR, 10**6)]
)
def test_a_draw_takes_the_uniforms_of_its_own_counter_as_documented(
    seed: int, coordinate: int, first_hash: int
) -> None:
    r, log_c, beta = row(seed, coordinate, first_hash, 50)
    for h in range(50):
        drawn = numpy_words((seed, STREAM_VERSION), (coordinate, first_hash + h, 0, 0))
        u1, u2, u3, u4 = ((word // 2**12 + 0.5) / 2**52 for word in drawn)
        spare = 0
        for word in drawn:
            spare = spare * 2**12 + word % 2**12
        # Two roundings of a product and two units of each logarithm.
        assert r[h] == pytest.approx(-math.log(u1) - math.log(u2), rel=2e-15, abs=2e-16)
        assert math.exp(log_c[h]) == pytest.approx(-math.log(u3) - math.log(u4), rel=4e-15, abs=2e-16)
        assert beta[h] == (spare + 0.5) / 2**48
        assert 0 < beta[h] < 1


def test_version_one_of_the_stream_never_changes() -> None:
    assert STREAM_VERSION == 1
    for (seed, coordinate, first_hash), golden in GOLDEN.items():
        drawn = row(seed, coordinate, first_hash, len(golden))
        assert [tuple(map(float.hex, map(float, values))) for values in zip(*drawn, strict=True)] == golden


def test_nor_do_a_hundred_thousand_draws() -> None:
    digest = hashlib.sha256()
    for first in range(0, 100, 10):
        drawn = draws(20261122, [first * 42_949_672 + i for i in range(10)], first * 10**6, 1000)
        digest.update(drawn[[0, 2, 3]].astype("<f8").tobytes())
    assert digest.hexdigest() == DIGEST


@each("hashes", [1, 2, 7, 8, 9, 31, 130])
@each("coordinates", [[0], [5, 3, FAR], [*range(17)]])
def test_coordinates_drawn_together_have_the_draws_of_each_alone(coordinates: list[int], hashes: int) -> None:
    drawn = draws(7, coordinates, 11, hashes)
    assert (drawn[1] == 1 / drawn[0]).all()
    for i, coordinate in enumerate(coordinates):
        for h in range(hashes):
            assert drawn[:, i, h].tolist() == draws(7, [coordinate], 11 + h, 1).ravel().tolist()
