"""Long work that is begun anew goes on where it was, and comes to what it would have come to undisturbed."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from pydantic import TypeAdapter

from app.core.building import Building
from app.core.diagnostics import DIAGNOSTICS, collisions, error_matrix, max_error
from app.core.diagnostics.box_discrepancy import BoxDiscrepancy
from app.core.diagnostics.collisions import Collisions
from app.core.diagnostics.error_matrix import Estimator
from app.core.diagnostics.gram import Gram
from app.core.diagnostics.max_error import MaxError
from app.core.diagnostics.variance import Variance
from app.core.discrepancy import box_discrepancy
from app.core.indexes import hashed_rows
from app.core.indexes.advice import AdviceOptions, advise
from app.core.kernels import Kernel
from app.core.maps.fourier import features
from app.core.progress import Progress
from app.core.recommendations import measuring, trials
from app.core.recommendations.candidates import Wanted
from app.core.recommendations.trials import recommend
from service_tests.core.combinations import rows
from service_tests.core.interrupted import Interrupted, WatchedWork
from service_tests.core.specs import fourier, hashing

X, Y = rows(40, 1, dtype="float32"), rows(40, 2, dtype="float32")
ROWS, PAIRS = {"vectors": X}, {"x": X, "y": Y}
MANY, HASHES = rows(120, 3, dtype="float32"), hashing(s=16)
KERNEL: TypeAdapter[Kernel] = TypeAdapter(Kernel)
GAUSSIAN = KERNEL.validate_python({"kind": "gaussian", "length_scale": 1.5})


def ranking(progress: Progress) -> Any:
    """A recommendation, its seconds aside."""
    found = recommend(X, [GAUSSIAN], Wanted(64, None), building=Building(progress=progress))
    return [{**trial, "seconds_per_1000_rows": 0.0} for trial in found["ranked"]], found["skipped"]


def advice(progress: Progress) -> Any:
    """Advice on an index, the times aside."""
    found = advise(HASHES, MANY, AdviceOptions(map="m", dataset="d", k=3), progress, 1).answer
    return {name: found[name] for name in ("similarities", "curves")} | {"scan": found["scan"]["narrower"]}


EVERY: dict[str, Callable[[Progress], Any]] = {
    "gram": partial(Gram(estimators=tuple(Estimator), seeds=3).run, fourier(s=32), ROWS, threads=1),
    "gram-complex": partial(Gram(seeds=2).run, fourier(s=32, form="complex"), ROWS, threads=1),
    "gram-hashes": partial(Gram().run, hashing(s=32), ROWS, threads=1),
    "max-error": partial(
        MaxError(diameters=(0.5, 2.0), samples=900).run, fourier(s=4000, form="complex"), {}, threads=1
    ),
    "variance": partial(Variance(repeats=6).run, fourier(s=32, form="complex"), PAIRS, threads=1),
    "variance-hashes": partial(Variance(repeats=6, gamma=2.0).run, hashing(s=32), PAIRS, threads=1),
    "collisions": partial(Collisions(bits=1, gamma=2.0).run, hashing(s=32), ROWS, threads=1),
    "box-discrepancy": partial(BoxDiscrepancy(box=2.0).run, fourier(s=32), {}, threads=1),
    "recommendations": ranking,
    "advice": advice,
}


def test_no_diagnostic_is_left_out() -> None:
    without = {kind for kind in DIAGNOSTICS if not any(name.startswith(kind) for name in EVERY)}
    assert not without, f"give {without} a run in EVERY, and sizes in _small_steps at which it has many steps"


@pytest.fixture
def _small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that work on little data has many steps."""
    for module, name, value in (
        (error_matrix, "TILE_ROWS", 16),
        (box_discrepancy, "_FACTORS_PER_PAUSE", 1000),
        (collisions, "_ENTRIES_PER_BLOCK", 800),
        (collisions, "_CODES_PER_BLOCK", 2000),
        (collisions, "_SAMPLES_PER_BLOCK", 400),
        (collisions, "_LEAST_HASHES", 8),
        (max_error, "_PHASES_PER_BLOCK", 1 << 20),
        (features, "_ROWS_PER_BLOCK", 2),
        (features, "_LEAST_STEPS_PER_PART", 1),
        # States would differ by what a clock says.
        (measuring, "_seconds", lambda *_: 0.5),
        (hashed_rows, "_median", lambda *_: 1000.0),
        (hashed_rows, "_PAIRS_PER_BLOCK", 400),
        (trials, "_MOST_MAPS", 6),
        (trials, "FRESH_MAPS", 2),
    ):
        monkeypatch.setattr(module, name, value)


def without_repeats(states: list[bytes]) -> list[bytes]:
    """The states that differ from the one before: a pause inside of a step offers the state from before the step."""
    return [state for i, state in enumerate(states) if not i or state != states[i - 1]]


@pytest.mark.gate
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
