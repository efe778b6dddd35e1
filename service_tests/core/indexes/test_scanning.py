"""The nearest rows of packed codes against counting in NumPy."""

from typing import Any

import numpy as np
import pytest

from app.core.indexes import search as module
from app.core.indexes.search import BITS, nearest
from service_tests.cases import each

RNG = np.random.default_rng(17)


def packed(whole: Any, bits: int) -> Any:
    """Codes (n, s) as the encoding `packed` writes them."""
    stored = np.unpackbits(whole.astype("<u2").view(np.uint8).reshape(*whole.shape, 2), axis=2, bitorder="little")
    return np.packbits(stored[..., :bits].reshape(len(whole), -1), axis=1, bitorder="little")


def some_codes(n: int, s: int, bits: int, few: int = 3) -> Any:
    """Codes of few values, so that many agree, the highest and the lowest bit among those that tell."""
    values = np.unique([0, 1, (1 << bits) - 1, 1 << (bits - 1)])[:few]
    return RNG.choice(values, (n, s))


def brute(queries: Any, codes: Any, k: int, slots: Any = None, least: int = 0) -> Any:
    among = np.arange(len(codes)) if slots is None else np.sort(slots)
    found, counts = np.full((2, len(queries), min(k, len(codes) if slots is None else len(slots))), -1)
    for i, query in enumerate(queries):
        agree = (codes[among] == query).sum(axis=1)
        best = [j for j in np.argsort(-agree, kind="stable")[:k] if agree[j] >= least]
        found[i, : len(best)], counts[i, : len(best)] = among[best], agree[best]
    return found, counts


def check(bits: int, s: int, n: int, q: int, k: int, **options: Any) -> None:
    whole, asked = some_codes(n, s, bits), some_codes(q, s, bits)
    told = brute(asked, whole, k, **options)
    for threads in (1, 2, 3):
        found = nearest(packed(asked, bits), packed(whole, bits), s, bits, k, threads=threads, **options)
        np.testing.assert_array_equal(found.slots, told[0])
        np.testing.assert_array_equal(found.counts, told[1])


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many parts of the work, of a few rows each."""
    monkeypatch.setattr(module, "_LEAST_BYTES_PER_PART", 1)
    monkeypatch.setattr(module, "_MOST_BYTES_PER_PART", 5000)


@each("bits", BITS)
@each("s", [1, 3, 7, 8, 61, 64, 129, 515])
def test_they_agree_in_as_many_hashes_as_numpy_counts(bits: int, s: int) -> None:
    check(bits, s, n=300, q=3, k=20)


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.usefixtures("small_parts")
def test_over_many_parts_and_queries_equal_rows_come_in_the_order_of_their_slots(bits: int) -> None:
    for s in (2, 75):
        check(bits, s, n=2000, q=40, k=30)


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.usefixtures("small_parts")
def test_only_rows_of_the_wanted_slots_are_found(bits: int) -> None:
    check(bits, 37, n=900, q=18, k=250, slots=RNG.permutation(900)[:400])


@pytest.mark.usefixtures("small_parts")
def test_rows_that_agree_in_too_few_hashes_are_not_found() -> None:
    for least in (0, 14, 17, 40, 41):
        check(8, 40, n=900, q=3, k=700, least=least)


def test_of_nothing_nothing_is_found() -> None:
    some = packed(some_codes(5, 9, 4), 4)
    assert nearest(some, some[:0], 9, 4, 3).slots.shape == (5, 0)
    assert nearest(some[:0], some, 9, 4, 3).counts.shape == (0, 3)
    assert nearest(some, some, 9, 4, 3, slots=np.zeros(0, np.int64)).slots.shape == (5, 0)
