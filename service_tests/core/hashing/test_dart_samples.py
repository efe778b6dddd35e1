"""Samples of rows by darts hang on nothing but the row."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from app.core.hashing import darts as module
from app.core.hashing.darts import Darts
from app.core.maps import weighted_minhash
from app.core.progress import Pause
from service_tests.cases import each
from service_tests.core.specs import darts, pairs

D, S = 40, 300


def rows(n: int = 23, d: int = D) -> Any:
    """Signed rows over many decades, half of their entries zero, and one of them all zero."""
    rng = np.random.default_rng(3)
    found = rng.normal(size=(n, d)) * 10 ** rng.uniform(-9, 9, (n, d)) * (rng.random((n, d)) < 0.5)
    found[11] = 0
    return found


@pytest.mark.parametrize("threads", [1, 3])
def test_samples_hang_neither_on_threads_nor_on_blocks_nor_on_neighbours(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = pairs(darts(input_dim=D, s=S), rows())
    assert (whole[11] == -1).all()
    assert (np.delete(whole, 11, axis=0) >= 0).all()
    monkeypatch.setattr(weighted_minhash, "STEPS_PER_THREAD", 1)
    made = darts(threads, input_dim=D, s=S)
    for entries, samples, steps in ((1 << 20, 1 << 19, 1 << 18), (1, 1, 1 << 18), (1 << 20, 5 * S, 1)):
        monkeypatch.setattr(Darts, "entries_per_block", entries)
        monkeypatch.setattr(Darts, "samples_per_block", samples)
        monkeypatch.setattr(module, "_STEPS_PER_PART", steps)
        assert (pairs(made, rows()) == whole).all()
    alone = np.concatenate([pairs(made, row[None]) for row in rows()])
    assert (alone == whole).all()
    assert (pairs(made, sparse.csr_array(rows())) == whole).all()
    assert (pairs(made, np.asfortranarray(rows()[::-1])) == whole[::-1]).all()


def test_some_hashes_are_those_of_all_and_a_pause_comes_between_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GROUP", 64)
    made, x = darts(input_dim=D, s=S), rows()
    whole = made.samples(x, slice(0, S))
    for some in (slice(0, 1), slice(63, 65), slice(64, 128), slice(250, S)):
        assert (made.samples(x, some) == whole[:, some]).all()
    assert Darts(7, S, 1).sampled_with(slice(63, 65)) == 128
    assert Darts(7, S, 1).sampled_with(slice(250, S)) == S - 192
    monkeypatch.setattr(module, "_STEPS_PER_PART", 1)
    paused: list[int] = []
    pause: Pause = lambda: paused.append(1)  # noqa: E731
    assert (made.samples(x, slice(0, 64), pause) == whole[:, :64]).all()
    assert len(paused) >= len(x) - 1


@each("more", [0.3, 3.0, 40.0])
@each("surplus", [-5.7, -3.0, 6.0])
def test_limits_at_which_hashes_have_no_dart_give_the_same_samples_after_others(
    surplus: float, more: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As log(300) = 5.704, one dart is looked at first, or so many that one hash of fifteen has none, or all."""
    whole = pairs(darts(input_dim=D, s=S), rows())
    monkeypatch.setattr(module, "_SURPLUS", surplus)
    monkeypatch.setattr(module, "_MORE", more)
    assert (pairs(darts(input_dim=D, s=S), rows()) == whole).all()
