"""Parts of work that are computed once, work whose time is limited, and how both tell how far they have come."""

import math
import time

import numpy as np
import pytest

from app.core.progress import Abandoned, OutOfTime, Parts, Progress, TimedProgress, between, packed, unpacked
from service_tests.core.interrupted import WatchedWork


def test_there_is_a_pause_between_every_two_parts() -> None:
    pauses: list[None] = []
    for n in range(4):
        pauses.clear()
        before = [(part, len(pauses)) for part in between(range(n), lambda: pauses.append(None))]
        assert before == [(part, part) for part in range(n)]
        assert len(pauses) == max(0, n - 1)


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


def test_arrays_are_packed_whole() -> None:
    arrays = {"a": np.array([[0.1, -0.0]]), "b": np.array(3), "c": np.array([True, False])}
    found = unpacked(packed(**arrays))
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)
    assert unpacked(None) == {}


def test_timed_work_hands_over_its_state_once_its_time_is_over() -> None:
    early = TimedProgress(time.monotonic() + 60)
    early.checkpoint(lambda: pytest.fail("there is time left"))
    assert early.restored() is None
    late = TimedProgress(time.monotonic())
    late.report(3, 7, 0.5)
    with pytest.raises(OutOfTime) as over:
        late.checkpoint(lambda: b"so far")
    assert (over.value.state, over.value.step, over.value.of, over.value.objective) == (b"so far", 3, 7, 0.5)


def test_timed_work_that_is_hurried_ends_at_its_next_state() -> None:
    hurried: list[str] = []
    progress = TimedProgress(time.monotonic() + 60, lambda: bool(hurried))
    progress.checkpoint(lambda: pytest.fail("there is time left"))
    hurried.append("by a shutdown")
    with pytest.raises(OutOfTime):
        progress.checkpoint(bytes)


def test_timed_work_begins_no_long_call_and_other_work_does() -> None:
    with pytest.raises(OutOfTime) as over:
        TimedProgress(time.monotonic() + 60).before_long_call(lambda: b"so far")
    assert over.value.state == b"so far"
    Progress().before_long_call(lambda: pytest.fail("nobody keeps states of plain use"))
    watched = WatchedWork()
    watched.before_long_call(lambda: b"so far")
    assert watched.states == [b"so far"], "a job keeps the state"


def test_work_that_nobody_waits_for_ends() -> None:
    progress = TimedProgress(time.monotonic() + 60)
    progress.abandoned = True
    with pytest.raises(Abandoned):
        progress.checkpoint(lambda: pytest.fail("nobody wants it"))


def test_a_part_that_was_begun_goes_on_from_its_own_state() -> None:
    def count(progress: Progress) -> list[int]:
        found = list(progress.restored() or b"")
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
    restored = Parts(WatchedWork(long.states[0])).once("a", lambda inside: inside.restored())
    assert restored is None, "an empty state begins the part anew"


@pytest.mark.nightly
def test_a_part_tells_how_far_it_has_come_at_each_pause_too() -> None:
    told: list[int] = []

    def work(inside: Progress) -> None:
        inside.checkpoint(bytes)
        inside.report(2, 5)
        inside.checkpoint(bytes)
        inside.before_long_call(bytes)

    Parts(Progress()).once("a", work, told.append)
    assert told == [0, 2, 2, 2]
