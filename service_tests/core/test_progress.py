"""Parts of work that are computed once, work whose time is limited, and how both tell how far they have come."""

import math
import time

import numpy as np
import pytest

from app.core.progress import Abandoned, OutOfTime, Parts, Progress, TimedProgress
from service_tests.core.interrupted import WatchedWork


def test_a_part_is_computed_once_and_its_numbers_keep_every_bit() -> None:
    rng = np.random.default_rng(0)
    numbers = (rng.normal(size=1000) * 10.0 ** rng.integers(-300, 300, size=1000)).tolist()
    first = WatchedWork()
    parts = Parts(first)
    assert parts.once("numbers", lambda _: numbers) == numbers
    assert parts.once("array", lambda _: np.array(numbers)) == numbers
    resumed = Parts(WatchedWork(first.states[-1]))
    for name in ("numbers", "array"):
        assert resumed.once(name, lambda _: pytest.fail("it is known")) == numbers
    assert resumed.once("pi", lambda _: {"π": [math.pi, None]}) == {"π": [math.pi, None]}


def test_timed_work_hands_over_its_state_once_its_time_is_over() -> None:
    early = TimedProgress(time.monotonic() + 60)
    early.checkpoint(lambda: pytest.fail("there is time left"))
    assert early.restore() is None
    late = TimedProgress(time.monotonic())
    late.report(3, 7, 0.5)
    with pytest.raises(OutOfTime) as over:
        late.checkpoint(lambda: b"so far")
    assert (over.value.state, over.value.step, over.value.of, over.value.objective) == (b"so far", 3, 7, 0.5)


def test_work_that_nobody_waits_for_ends() -> None:
    progress = TimedProgress(time.monotonic() + 60)
    progress.abandoned = True
    with pytest.raises(Abandoned):
        progress.checkpoint(lambda: pytest.fail("nobody wants it"))


def test_a_part_that_was_begun_goes_on_from_its_own_state() -> None:
    def count(progress: Progress) -> list[int]:
        found = list(progress.restore() or b"")
        while len(found) < 3:
            found.append(len(found))
            progress.checkpoint(lambda: bytes(found))
        return found

    def both(progress: Progress) -> list[list[int]]:
        parts = Parts(progress)
        return [parts.once(name, count) for name in ("a", "b")]

    whole = WatchedWork()
    assert both(whole) == [[0, 1, 2]] * 2
    assert len(whole.states) == 8, "three of each part, and one of each when it is finished"
    for done, state in enumerate(whole.states, 1):
        again = WatchedWork(state)
        assert both(again) == [[0, 1, 2]] * 2
        assert len(again.states) == len(whole.states) - done, "what was done is not done again"
    long = WatchedWork()
    Parts(long).once("a", lambda inside: inside.before_long_call(bytes))
    restored = Parts(WatchedWork(long.states[0])).once("a", lambda inside: inside.restore())
    assert restored is None, "an empty state begins the part anew"
