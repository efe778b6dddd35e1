"""Images of an index are of one moment, whatever changes behind them."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

from app.core.indexes import banding
from app.core.indexes.banding import Banding, ChangedBlock, HeldCodes, Image, InUse, Layout, segment
from service_tests.cases import each

RNG = np.random.default_rng(6)
PER_BLOCK = 8


@pytest.fixture(autouse=True)
def _small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(banding, "SEGMENT", 32)


def changes(codes: Any, blocks: Sequence[int]) -> dict[int, ChangedBlock]:
    """Blocks of an index of these codes, as the store gives them."""
    found = {}
    for number in blocks:
        some = codes[number * PER_BLOCK : (number + 1) * PER_BLOCK]
        full = np.zeros((PER_BLOCK, codes.shape[1]), np.uint8)
        full[: len(some)] = some
        ids = b"".join(b"\2\0s%c" % (65 + number) for _ in some)
        found[number] = ChangedBlock(full[:, 0].astype(np.uint64), full, ids)
    return found


def check(found: Image, codes: Any, at: Banding | None) -> None:
    np.testing.assert_array_equal(found.codes, codes)
    np.testing.assert_array_equal(found.marks, codes[:, 0])
    assert len(found.ids) == -(-len(codes) // PER_BLOCK)
    assert len(found.segments) == (0 if at is None else -(-len(codes) // 32))
    for number, one in enumerate(found.segments):
        wanted = segment(codes[32 * number : 32 * number + 32], codes.shape[1], 8, at or Banding(1, 1))
        np.testing.assert_array_equal(one.words, wanted.words)


@pytest.mark.parametrize("at", [None, Banding(3, 2)])
def test_images_stay_while_the_index_changes(at: Banding | None) -> None:
    held = HeldCodes(Layout(6, 8, at, PER_BLOCK), 1 << 30)
    codes = np.zeros((0, 6), np.uint8)
    with ExitStack() as looking:
        seen = []
        for _ in range(40):
            size = int(RNG.integers(0, 150))
            now = codes[:size].copy()
            more = RNG.integers(0, 9, (size - len(now), 6)).astype(np.uint8)
            now = np.concatenate([now, more])
            other = RNG.integers(0, max(1, size), 3 if size else 0)
            now[other] = RNG.integers(0, 9, (len(other), 6))
            n = -(-size // PER_BLOCK)
            first = len(codes) // PER_BLOCK
            changed = {*range(min(first, n), n), *(int(one) // PER_BLOCK for one in other)}
            if size and size < len(codes):
                changed.add(n - 1)
            for some in (sorted(changed)[::2], sorted(changed)[1::2]):
                held.change(changes(now, some), size)
            codes = now
            seen.append((looking.enter_context(held.looked_at()), codes))
            for found, then in seen:
                check(found, then, at)
            if len(seen) == 6:  # nobody looks for a while
                looking.pop_all().close()
                seen.clear()


@each("size", range(9, 25))
def test_the_room_that_was_taken_may_end_within_a_block(size: int) -> None:
    held = HeldCodes(Layout(6, 8, None, PER_BLOCK), 1 << 30)
    codes = RNG.integers(0, 9, (size, 6)).astype(np.uint8)
    held.change(changes(codes[:PER_BLOCK], [0]), PER_BLOCK)
    held.change(changes(codes, [*range(1, -(-size // PER_BLOCK))]), size)
    with held.looked_at() as found:
        check(found, codes, None)
        of_ids = sum(64 + len(one) for one in found.ids)
    assert held.nbytes <= of_ids + size * held.layout.most_bytes_per_vector  # which upserts count


@pytest.mark.parametrize("is_asked", [True, False])
def test_sets_of_tags_that_no_vector_has_are_dropped(is_asked: bool) -> None:
    """When that is asked for, or when they take twice the memory of those in use."""
    held = HeldCodes(Layout(2, 8, None, PER_BLOCK), 1 << 30)
    text = b"x" * (1000 if is_asked else 100_000)
    for step in range(1, 21):
        codes = np.full((PER_BLOCK, 2), step, np.uint8)
        held.change(changes(codes, [0]), PER_BLOCK, {step: text})
    if is_asked:
        assert held.nbytes > 20_000
        held.forget_tags()
    with held.looked_at() as image:
        assert 20 in image.tags
        assert len(image.tags) == 1 if is_asked else len(image.tags) <= 11
    assert held.nbytes < (5000 if is_asked else 1_200_000)


def test_earlier_states_in_use_take_no_more_memory_than_they_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(banding, "_PATIENCE_SECONDS", 0.01)
    states = [RNG.integers(0, 9, (PER_BLOCK, 6)).astype(np.uint8) for _ in range(4)]
    held = HeldCodes(Layout(6, 8, None, PER_BLOCK), 0)
    held.change(changes(states[0], [0]), PER_BLOCK)
    held = HeldCodes(Layout(6, 8, None, PER_BLOCK), held.nbytes)
    held.change(changes(states[0], [0]), PER_BLOCK)
    with ExitStack() as first, ExitStack() as second:
        seen = [first.enter_context(held.looked_at())]
        held.change(changes(states[1], [0]), PER_BLOCK)
        held.change(changes(states[1], [0]), PER_BLOCK)  # of a state that nobody looks at, no copy is left
        seen.append(second.enter_context(held.looked_at()))
        with pytest.raises(InUse):
            held.change(changes(states[2], [0]), PER_BLOCK)
        for found, then in zip(seen, states, strict=False):
            check(found, then, None)
        first.close()
        held.change(changes(states[3], [0]), PER_BLOCK)
        check(seen[1], states[1], None)
    with held.looked_at() as found:
        check(found, states[3], None)
