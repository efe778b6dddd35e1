"""Clusters against the connected parts of the graph of all pairs."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

from app.core.indexes import duplicates as module
from app.core.indexes.duplicates import duplicates
from app.core.indexes.search import BITS
from service_tests.core.indexes.test_scanning import packed
from service_tests.core.interrupted import Interrupted, WatchedWork


def like(n: int, s: int, bits: int, groups: int, noise: float, rng: np.random.Generator) -> Any:
    """Codes of n rows of so many groups, of which each row has other codes in a share up to twice `noise`."""
    whole = rng.integers(0, 1 << bits, (groups, s))[rng.integers(0, groups, n)]
    others = rng.random((n, s)) < 2 * noise * rng.random((n, 1))
    return np.where(others, rng.integers(0, 1 << bits, (n, s)), whole)


def roots_of_all_pairs(whole: Any, least: int) -> Any:
    """The first row of the cluster of each."""
    agree = (whole[:, None] == whole[None]).sum(axis=2) >= least
    labels = connected_components(agree)[1]
    return np.unique(labels, return_index=True)[1][labels]


@pytest.mark.parametrize("bits", BITS)
def test_clusters_are_those_of_all_pairs(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(bits)
    told = 0
    for _ in range(12):
        n, s = int(rng.integers(1, 150)), int(rng.integers(1, 40))
        whole = like(n, s, bits, int(rng.integers(1, n + 1)), rng.random() / 2, rng)
        monkeypatch.setattr(module, "_LARGE", int(rng.choice([1, 40, 4096])))
        monkeypatch.setattr(module, "_PAIRS_AT_A_TIME", int(rng.choice([1, 200, 1 << 22])))
        for least in {1, s, *rng.integers(1, s + 1, 3).tolist()}:
            found = duplicates(packed(whole, bits), s, bits, least, int(rng.integers(1, 3)))
            wanted = roots_of_all_pairs(whole, least)
            np.testing.assert_array_equal(found.roots, wanted)
            assert found.compared <= n * n
            told += 1 < len(np.unique(wanted)) < n
    assert told > 6


def test_large_clusters_come_first_and_single_rows_not_at_all() -> None:
    whole = np.array([[1] * 4, [2] * 4, [3] * 4, [2] * 4, [1] * 4, [4] * 4, [2, 2, 2, 9], [5] * 4, [5] * 4])
    found = duplicates(packed(whole, 8), 4, 8, 3)
    assert [one.tolist() for one in found.clusters()] == [[1, 3, 6], [0, 4], [7, 8]]
    for none in (np.zeros((0, 4), np.uint8), np.zeros((1, 4), np.uint8)):
        assert not list(duplicates(none, 4, 8, 1).clusters())


@pytest.mark.parametrize("least", [28, 16, 10])
def test_work_that_is_ended_goes_on_to_the_same_clusters(least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LARGE", 60)
    monkeypatch.setattr(module, "_PAIRS_AT_A_TIME", 100)
    whole = like(400, 32, 4, 200, 0.3, np.random.default_rng(least))
    whole[:, :2] = 1  # so that many bands of few hashes are left for all pairs
    codes = packed(whole, 4)
    undisturbed = WatchedWork()
    wanted = duplicates(codes, 32, 4, least, progress=undisturbed)
    np.testing.assert_array_equal(wanted.roots, roots_of_all_pairs(whole, least))
    steps = [step for step, _, _ in undisturbed.told]
    assert steps == sorted(steps)
    state: bytes | None = None
    ends = 0
    while True:
        progress = WatchedWork(state, 2)
        try:
            found = duplicates(codes, 32, 4, least, progress=progress)
            break
        except Interrupted:
            assert progress.states[-1] != state
            state, ends = progress.states[-1], ends + 1
    assert ends > 1
    # What was found of other codes, or by another number, is no use.
    for many, others in ((least + 2, whole), (least, whole[::-1])):
        again = duplicates(packed(others, 4), 32, 4, many, progress=WatchedWork(state))
        np.testing.assert_array_equal(again.roots, roots_of_all_pairs(others, many))
    np.testing.assert_array_equal(found.roots, wanted.roots)
    assert found.compared == wanted.compared
