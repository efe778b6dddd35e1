"""Samples by darts, made again in plain Python from the page of the hash streams, and from nothing else."""

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np
import pytest

from app.core.arrays import vectors
from app.core.hashing import darts as module
from service_tests.core.hashing.test_reimplementation import log, philox
from service_tests.core.specs import darts, pairs

SEED, S = 7, 60
ROWS = [[0.5, -1.25, 2.0], [0.0, 3.0, 0.0], [1e-30, 1e30, -1.0], [-0.1, -0.2, 0.3], [1.0, 4.0, -16.0]]
CENTER = [0.1, -1.0, 2.0]
FIRST, HEIGHTS, OCTAVES = (9 / 32, 1 / 32, 0.0), (2.0, 1 / 4, 1 / 32), (1, 8, 64)


class Dart(NamedTuple):
    """In the order in which samples prefer them."""

    rank: float
    i: int
    t: int
    octave: int
    h: int
    place: float


def binary(log_of_entry: float) -> tuple[int, float]:
    """Octave and part of an entry."""
    power = log_of_entry * 1.4426950408889634
    octave, series = math.floor(power), 0.0
    for k in range(19, 0, -1):
        series = (series + math.log(2) ** k / math.factorial(k)) * (power - octave)
    return octave, min(series, 1.0)


def counted(spare: int) -> int:
    """How many darts 48 bits stand for: as many as there are numbers below which the law of Poisson puts fewer."""
    # e^−2 to far more than 48 bits
    chance = below = sum((Fraction((-2) ** k, math.factorial(k)) for k in range(60)), Fraction(0))
    count = 0
    while spare >= round(below * 2**48):
        count += 1
        chance *= Fraction(2, count)
        below += chance
    return count


def of_cell(seed: int, i: int, group: int, hashes: range, kind: int, block: int, layer: int) -> Iterator[Dart]:
    """The darts of a cell."""
    name = ((4 * block + kind) * 2**24 + layer) % 2**64
    blocks = (philox((seed, 0x6461727400000001), (i, group, name, c)) for c in range(1 << 32))
    first = next(blocks)
    spare = sum(word % 2**12 * 2**place for word, place in zip(first, (36, 24, 12, 0), strict=True))
    words = chain.from_iterable(((w1, w2), (w3, w4)) for w1, w2, w3, w4 in chain([first], blocks))
    for w, v in islice(words, counted(spare)):
        t, product = w // 2**12, v // 2**12 * len(hashes)
        rank = FIRST[kind] + HEIGHTS[kind] * (layer + (product % 2**52 + 0.5) * 2.0**-52)
        octave = OCTAVES[kind] * block + t * OCTAVES[kind] // 2**52
        place = (t * OCTAVES[kind] % 2**52 + 0.5) * 2.0**-52
        yield Dart(math.ldexp(rank, -octave), i, t, octave, hashes[product // 2**52], place)


def of_entry(seed: int, i: int, octave: int, group: int, hashes: range, limit: float) -> Iterator[Dart]:
    """The darts in octaves up to one whose rank is below the limit."""
    for kind in range(3):
        block = octave // OCTAVES[kind]
        # Below that rank, less than 2^−59 darts are left.
        while (most := math.ldexp(limit, OCTAVES[kind] * (block + 1) - 1)) > max(FIRST[kind], 2.0**-60):
            layer = 0
            while layer == 0 or (kind == 0 and FIRST[0] + 2 * layer < most):
                yield from of_cell(seed, i, group, hashes, kind, block, layer)
                layer += 1
            block -= 1


def samples(
    entries: dict[int, float], s: int, seed: int, p: float = 1.0, of_group: int = 4096
) -> list[tuple[int, int]]:
    """(i*, t*) of what is not zero, by its column."""
    logs = {2 * j + (v < 0): p * log(abs(v)) for j, v in entries.items()}
    weights = {i: binary(one) for i, one in sorted(logs.items())}
    total = sum(math.ldexp(1 + part, octave) for octave, part in weights.values())
    found = []
    for group in range(-(-s // of_group)):
        hashes = range(of_group * group, min(s, of_group * (group + 1)))
        best: dict[int, Dart] = {}
        limit = len(hashes) / total
        while len(best) < len(hashes):
            limit *= 2
            for i, (octave, part) in weights.items():
                for dart in of_entry(seed, i, octave, group, hashes, limit):
                    inside = dart.octave < octave or (dart.octave == octave and dart.place < part)
                    if inside and dart.rank < limit and (dart.h not in best or dart < best[dart.h]):
                        best[dart.h] = dart
        found += [(best[h].i, best[h].t) for h in sorted(best)]
    return found


def made(rows: list[list[float]], dtype: str, center: list[float], seed: int, p: float) -> list[list[tuple[int, int]]]:
    """The samples of dense rows."""
    rounded = np.array(rows, dtype).astype(float) - np.array(center, dtype).astype(float)
    return [samples({j: float(v) for j, v in enumerate(row) if v}, S, seed, p) for row in rounded]


@pytest.mark.parametrize(
    ("seed", "dtype", "p", "center"),
    [(SEED, "float64", 1.0, CENTER), (2**64 - 1, "float32", 1.0, None), (2**64 - 1, "float64", 2.5, CENTER)],
)
def test_the_samples_are_those_that_the_page_describes(seed: int, dtype: str, p: float, center: Any) -> None:
    of = darts(input_dim=3, s=S, seed=seed, dtype=dtype, kernel={"kind": "gmm", "p": p, "center": center})
    codes = of.codes(vectors(np.array(ROWS), 3, np.dtype(dtype)))
    expected = made(ROWS, dtype, center or [0.0] * 3, seed, p)
    assert codes.tolist() == [[list(pair) for pair in row] for row in expected]
    assert len(np.unique(codes[..., 0])) > 3


def test_hashes_past_the_first_group_have_darts_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    assert module.GROUP == 4096
    monkeypatch.setattr(module, "GROUP", 64)
    codes = pairs(darts(input_dim=3, s=S), np.array(ROWS[:1]))[0]
    expected = samples({0: 0.5, 1: -1.25, 2: 2.0}, S, SEED, of_group=64)
    assert codes.tolist() == [list(pair) for pair in expected]
