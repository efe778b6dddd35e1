"""Samples by darts, made again in plain Python from the page of the hash streams, and from nothing else."""

import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

from app.core.arrays import vectors
from app.core.hashing import dart_samples
from service_tests.core.hashing.test_reimplementation import PAGE, log, philox
from service_tests.core.specs import darts, pairs

SEED, S = 7, 150
ROWS = [[0.5, -1.25, 2.0], [0.0, 3.0, 0.0], [1e-30, 1e30, -1.0], [-0.1, -0.2, 0.3], [1.0, 4.0, -16.0]]
CENTER = [0.1, -1.0, 2.0]
FIRST, LAST, UNITS, OCTAVES = (0.25, 1 / 64, 0.0), (math.inf, 0.25, 1 / 64), (1.0, 0.25, 1 / 64), (1, 4, 64)


class Dart(NamedTuple):
    """In the order in which samples prefer them."""

    rank: float
    i: int
    t: int
    octave: int
    h: int


def binary(log_of_entry: float) -> tuple[int, float]:
    """Octave and part of an entry."""
    power = log_of_entry * 1.4426950408889634
    octave, series = math.floor(power), 0.0
    for k in range(19, 0, -1):
        series = (series + math.log(2) ** k / math.factorial(k)) * (power - octave)
    return octave, min(series, 1.0)


def of_cell(
    seed: int, i: int, group: int, hashes: range, kind: int, first: int, layer: int, most: float
) -> Iterator[Dart]:
    """The darts of a cell whose ranks are below `most` in the unit of the first octave."""
    rank = 16.0 * layer if layer else FIRST[kind]
    end = min(16.0 * (layer + 1), LAST[kind]) if kind == 0 else LAST[kind]
    for c in range(1 << 32):
        w1, w2, w3, w4 = philox((seed, 0x6461727400000001), (i, 4 * group + kind, first % 2**64, (layer << 32) + c))
        rank += UNITS[kind] * -log((w1 // 2**12 + 0.5) * 2.0**-52)
        if rank >= min(end, most):
            return
        octave = first + w3 % OCTAVES[kind]
        yield Dart(math.ldexp(rank, -octave), i, w2 // 2**12, octave, hashes[w4 // 2**32 * len(hashes) // 2**32])


def of_entry(seed: int, i: int, octave: int, group: int, hashes: range, limit: float) -> Iterator[Dart]:
    """The darts in octaves up to one whose rank is below the limit."""
    for kind in range(3):
        first = octave // OCTAVES[kind] * OCTAVES[kind]
        for _ in range(60):
            most = math.ldexp(limit, first + OCTAVES[kind] - 1)
            layer = 0
            while (kind == 0 and 16 * layer < most) or layer == 0:
                yield from of_cell(seed, i, group, hashes, kind, first, layer, most)
                layer += 1
            first -= OCTAVES[kind]


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
                    inside = dart.octave < octave or (dart.octave == octave and (dart.t + 0.5) * 2.0**-52 < part)
                    if inside and dart.rank < limit and (dart.h not in best or dart < best[dart.h]):
                        best[dart.h] = dart
        found += [(best[h].i, best[h].t) for h in sorted(best)]
    return found


def made(rows: list[list[float]], dtype: str, center: list[float], seed: int, p: float) -> list[list[tuple[int, int]]]:
    """The samples of dense rows."""
    rounded = np.array(rows, dtype).astype(float) - np.array(center, dtype).astype(float)
    return [samples({j: float(v) for j, v in enumerate(row) if v}, S, seed, p) for row in rounded]


@pytest.mark.parametrize(("center", "p"), [(None, 1.0), (CENTER, 1.0), (CENTER, 2.5)], ids=str)
@pytest.mark.parametrize(("seed", "dtype"), [(SEED, "float64"), (2**64 - 1, "float32")])
def test_the_samples_are_those_that_the_page_describes(seed: int, dtype: str, p: float, center: Any) -> None:
    of = darts(input_dim=3, s=S, seed=seed, dtype=dtype, kernel={"kind": "gmm", "p": p, "center": center})
    codes = of.codes(vectors(np.array(ROWS), 3, np.dtype(dtype)))
    expected = made(ROWS, dtype, center or [0.0] * 3, seed, p)
    assert codes.tolist() == [[list(pair) for pair in row] for row in expected]
    assert len(np.unique(codes[..., 0])) > 3


def test_hashes_past_the_first_group_have_darts_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    assert dart_samples.GROUP == 4096
    monkeypatch.setattr(dart_samples, "GROUP", 64)
    codes = pairs(darts(input_dim=3, s=S), np.array(ROWS[:1]))[0]
    expected = samples({0: 0.5, 1: -1.25, 2: 2.0}, S, SEED, of_group=64)
    assert codes.tolist() == [list(pair) for pair in expected]


def test_the_page_gives_an_example_to_check_with() -> None:
    found = samples({0: 0.5, 1: -1.25, 2: 2.0}, 3, SEED)
    told = re.search(r"the first three samples by darts are (.*?)\.\n", PAGE.read_text())
    assert told is not None
    assert told[1] == ", ".join(str(pair) for pair in found)
