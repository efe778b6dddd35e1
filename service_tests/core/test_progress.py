"""Long work that is begun anew goes on where it was, and comes to what it would have come to undisturbed."""

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from app.core.building import Building
from app.core.diagnostics import DIAGNOSTICS, Diagnostic, agreement_counts, hermitian_tiles, max_error
from app.core.diagnostics.box_discrepancy import BoxDiscrepancy
from app.core.diagnostics.collisions import Collisions
from app.core.diagnostics.control_variates import Estimator
from app.core.diagnostics.gram import Gram
from app.core.diagnostics.max_error import MaxError
from app.core.diagnostics.variance import Variance
from app.core.discrepancy import box_discrepancy
from app.core.kernels import Kernel
from app.core.maps import FeatureMap
from app.core.maps.fourier import features
from app.core.progress import Abandoned, OutOfTime, Parts, Progress, TimedProgress, between, packed, unpacked
from app.core.recommendations import measuring, trials
from app.core.recommendations.candidates import Wanted
from app.core.recommendations.trials import recommended
from service_tests.core.combinations import rows
from service_tests.core.interrupted import Interrupted, WatchedWork
from service_tests.core.specs import fourier, hashing

X, Y = rows(40, 1, dtype="float32"), rows(40, 2, dtype="float32")
ROWS, PAIRS = {"vectors": X}, {"x": X, "y": Y}
KERNEL: TypeAdapter[Kernel] = TypeAdapter(Kernel)
GAUSSIAN = KERNEL.validate_python({"kind": "gaussian", "length_scale": 1.5})


def ranking(progress: Progress) -> Any:
    """A recommendation, its seconds aside."""
    found = recommended(X, [GAUSSIAN], Wanted(64, None), building=Building(progress=progress))
    return [{**trial, "seconds_per_1000_rows": 0.0} for trial in found["ranked"]], found["skipped"]


EVERY: dict[str, Callable[[Progress], Any]] = {
    "gram": partial(Gram(estimators=tuple(Estimator), seeds=3).run, fourier(s=32), ROWS),
    "gram-complex": partial(Gram(seeds=2).run, fourier(s=32, form="complex"), ROWS),
    "gram-hashes": partial(Gram().run, hashing(s=32), ROWS),
    "max-error": partial(MaxError(diameters=(0.5, 2.0), samples=900).run, fourier(s=4000, form="complex"), {}),
    "variance": partial(Variance(repeats=6).run, fourier(s=32, form="complex"), PAIRS),
    "variance-hashes": partial(Variance(repeats=6, gamma=2.0).run, hashing(s=32), PAIRS),
    "collisions": partial(Collisions(bits=1, gamma=2.0).run, hashing(s=32), ROWS),
    "box-discrepancy": partial(BoxDiscrepancy(box=2.0).run, fourier(s=32), {}),
    "recommendations": ranking,
}


def test_there_is_a_pause_between_every_two_parts() -> None:
    pauses: list[None] = []
    for n in range(4):
        pauses.clear()
        before = [(part, len(pauses)) for part in between(range(n), lambda: pauses.append(None))]
        assert before == [(part, part) for part in range(n)]
        assert len(pauses) == max(0, n - 1)


def test_no_diagnostic_is_left_out() -> None:
    without = {kind for kind in DIAGNOSTICS if not any(name.startswith(kind) for name in EVERY)}
    assert not without, f"give {without} a run in EVERY, and sizes in _small_steps at which it has many steps"


@pytest.fixture
def _small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that work on little data has many steps."""
    for module, name, value in (
        (hermitian_tiles, "TILE_ROWS", 16),
        (box_discrepancy, "_FACTORS_PER_PAUSE", 1000),
        (agreement_counts, "_ENTRIES_PER_BLOCK", 800),
        (agreement_counts, "_CODES_PER_BLOCK", 2000),
        (agreement_counts, "_SAMPLES_PER_BLOCK", 400),
        (agreement_counts, "_LEAST_HASHES", 8),
        (max_error, "_PHASES_PER_BLOCK", 1 << 20),
        (features, "_ROWS_PER_BLOCK", 2),
        (features, "_LEAST_STEPS_PER_PART", 1),
        # States would differ by what a clock says.
        (measuring, "_seconds", lambda *_: 0.5),
        (trials, "_MOST_MAPS", 6),
        (trials, "FRESH_MAPS", 2),
    ):
        monkeypatch.setattr(module, name, value)


def without_repeats(states: list[bytes]) -> list[bytes]:
    """The states that differ from the one before: a pause inside of a step offers the state from before the step."""
    return [state for i, state in enumerate(states) if not i or state != states[i - 1]]


@pytest.mark.usefixtures("_small_steps")
@pytest.mark.parametrize("compute", EVERY.values(), ids=EVERY.keys())
def test_resumed_work_comes_to_the_same(compute: Callable[[Progress], Any]) -> None:
    whole = WatchedWork()
    undisturbed = compute(whole)
    assert compute(Progress()) == undisturbed
    assert len(without_repeats(whole.states)) > 4
    for most in sorted({1 + i * (len(whole.states) - 2) // 6 for i in range(7)}):
        ended = WatchedWork(most=most)
        with pytest.raises(Interrupted):
            compute(ended)
        assert ended.states == whole.states[:most]
        again = WatchedWork(ended.states[-1])
        assert compute(again) == undisturbed
        left = without_repeats([ended.states[-1], *again.states])[1:]
        assert without_repeats([*ended.states, *left]) == without_repeats(whole.states), "nothing is done again"


@pytest.mark.usefixtures("_small_steps")
@pytest.mark.parametrize("compute", EVERY.values(), ids=EVERY.keys())
def test_work_tells_how_far_it_has_come(compute: Callable[[Progress], Any]) -> None:
    watched = WatchedWork()
    compute(watched)
    parts = [step / of for step, of, _ in watched.told]
    assert parts == sorted(parts)
    assert 0 <= parts[0] < 0.3
    assert 0.6 < parts[-1] <= 1
    assert len({of for _, of, _ in watched.told}) == 1
    assert len(set(parts)) > 4


class Gaps(Progress):
    """Measures the time of this process between two calls, of all its threads, which other processes do not prolong."""

    def __init__(self) -> None:
        self._last = time.process_time()
        self.longest = 0.0

    def checkpoint(self, _: Callable[[], bytes]) -> None:
        now = time.process_time()
        self._last, self.longest = now, max(self.longest, now - self._last)


@pytest.mark.long
def test_pauses_are_short_where_work_is_long() -> None:
    x = {"vectors": rows(2100, 3, 300, dtype="float32")}
    hashes, features = hashing(input_dim=300, s=512), fourier(input_dim=300, s=4096)
    cv2 = Gram(estimators=(Estimator.cv2,), seeds=0)
    runs: list[tuple[Diagnostic, FeatureMap]] = [(Gram(), hashes), (Collisions(), hashes), (cv2, features)]
    runs.append((MaxError(diameters=(1.0,), samples=5000), features))
    for diagnostic, made in runs:
        gaps = Gaps()
        diagnostic.run(made, x, gaps)
        assert gaps.longest < 0.6, diagnostic.kind


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


@pytest.mark.parametrize("compute", EVERY.values(), ids=EVERY.keys())
def test_work_out_of_time_goes_on_to_the_same(compute: Callable[[Progress], Any]) -> None:
    with pytest.raises(OutOfTime) as over:
        compute(TimedProgress(time.monotonic()))
    assert compute(WatchedWork(over.value.state)) == compute(Progress())


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


@pytest.mark.long
def test_a_part_tells_how_far_it_has_come_at_each_pause_too() -> None:
    told: list[int] = []

    def work(inside: Progress) -> None:
        inside.checkpoint(bytes)
        inside.report(2, 5)
        inside.checkpoint(bytes)
        inside.before_long_call(bytes)

    Parts(Progress()).once("a", work, told.append)
    assert told == [0, 2, 2, 2]
