"""Candidates built, measured on the client's rows, and ranked."""

import timeit
from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any

import numpy as np

from app.core.arrays import Rows, row_blocks
from app.core.building import Building
from app.core.errors import InvalidInput
from app.core.kernels import Kernel
from app.core.kernels.base import Matrix
from app.core.maps import FeatureMap, made
from app.core.progress import Parts, Pause, Progress, begin_anew
from app.core.recommendations.answer import RankedTrial, Ranking, Skipped
from app.core.recommendations.candidates import Objective, Wanted, candidates, column_counts
from app.core.spec import MapSpec, Sampler
from app.core.threads import for_each

MOST_ROWS = 1000
"""Rows that errors are measured on; of more, a sample is enough."""
_TIMED_CALLS = {Objective.error: 3, Objective.time: 9}
# How many times the columns with which a first sampler reaches the target are tried for others.
_FURTHER = {Objective.error: 1, Objective.time: 4}
_SEEDS = 1 << 64
# Of exact kernels, what one thread computes at a time.
_EXACT_COORDINATES_PER_PART = 1 << 25


def recommended(
    rows: Rows, kernel: Kernel, wanted: Wanted, *, seeds: int = 3, seed: int = 0, building: Building | None = None
) -> Ranking:
    """Try samplers and sizes on the rows and rank them.

    Without a target the smallest mean error is best. With one, sizes grow until a sampler reaches it, and the narrowest
    spec that does is best; where none does, the smallest error, and `target_reached` is false. With objective `time`
    sizes grow on, up to four times, for the samplers that have not reached it, and the fastest spec that does is best.
    All but the seconds, and what is best by them, hang on the arguments alone.

    Samplers that learn are given rows by `building`; these should not be among the rows that errors are measured on.
    Rows are (n, d) in float32, 2 to `MOST_ROWS`. Of each spec as many maps are measured as there are `seeds`; the first
    is of `seed`, and the others follow it. The progress of `building` is told how many candidates are done, and of how
    many at most; its states hold what was measured of each map. InvalidInput for other numbers of rows, or where no
    sampler can be tried.
    """
    check_rows(rows, kernel)
    wanted.check()
    building = building or Building()
    parts, counts = Parts(building.progress), column_counts(wanted)
    exact = _exact(kernel, rows, building.threads, partial(building.progress.checkpoint, parts.restored_state))
    measure = partial(_measured, rows=rows, exact=exact, building=building, calls=_TIMED_CALLS[wanted.objective])
    trials: dict[str, RankedTrial] = {}
    skipped: list[Skipped] = []
    reached: set[str] = set()
    last = inf

    def tell(place: int, of: int, _: int) -> None:
        building.progress.report(place, of)

    every = [(columns, list(candidates(kernel, rows.shape[1], columns, wanted, seed))) for columns in counts]
    place, of = -1, sum(len(of_width) for _, of_width in every)
    for columns, of_width in every:
        for sampler, spec in of_width:
            place += 1
            told = partial(tell, place, of)
            told(0)
            name = spec if isinstance(spec, str) else spec.canonical()
            # A rule that dictates its size comes again, and wider maps of a sampler are slower.
            if name in trials or repr(sampler) in reached:
                continue
            tried = spec if isinstance(spec, str) else _tried(spec, seeds, parts, measure, told)
            if isinstance(tried, str):
                skipped.append(_skipped(sampler, columns, tried, wanted))
            else:
                trials[name] = tried
                if wanted.target_error is not None and tried["error_mean"] <= wanted.target_error:
                    reached.add(repr(sampler))
                    last = min(last, columns * _FURTHER[wanted.objective])
        if columns >= last:
            break
    return _ranked(rows.shape[0], [*trials.values()], skipped, wanted)


def check_rows(rows: Rows, kernel: Kernel) -> None:
    """Refuse rows that are too few or too many to measure errors on, and columns that the kernel cannot do with."""
    n, d = rows.shape
    if not 2 <= n <= MOST_ROWS:
        raise InvalidInput(f"{n} rows came; errors are measured on 2 to {MOST_ROWS}", "/vectors")
    if not d:
        raise InvalidInput("rows have 0 entries; 1 is wanted at least", "/vectors")
    kernel.check(d)


def _ranked(rows: int, trials: list[RankedTrial], skipped: list[Skipped], wanted: Wanted) -> Ranking:
    """Trials within the target by their width or time, then the others by their error; InvalidInput without any."""
    target = wanted.target_error
    if not trials and not skipped:
        raise InvalidInput("what serves this kernel learns from rows: put them as a dataset, and name it", "/vectors")
    if not trials:
        refusals = "; ".join(dict.fromkeys(f"{one['sampler']['kind']}: {one['reason']}" for one in skipped))
        raise InvalidInput(f"no sampler can be tried: {refusals}", "/samplers")

    def place(trial: RankedTrial) -> tuple[bool, float, float]:
        if target is not None and trial["error_mean"] <= target:
            first = trial["seconds_per_1000_rows"] if wanted.objective is Objective.time else trial["n_output"]
            return False, first, trial["error_mean"]
        return True, trial["error_mean"], trial["n_output"]

    ranked = sorted(trials, key=place)
    reached = None if target is None else ranked[0]["error_mean"] <= target
    return Ranking(
        rows=rows,
        learned_rows=wanted.learned_rows or None,
        target_reached=reached,
        ranked=ranked,
        best=ranked[0]["spec"],
        skipped=skipped,
    )


def _skipped(sampler: Sampler, columns: int, reason: str, wanted: Wanted) -> Skipped:
    """A sampler without a trial; where it is to learn from the dataset, with how many rows of it a trial has."""
    if wanted.learned_rows and sampler.learned_from == wanted.dataset:
        reason += f"; in a trial, {wanted.learned_rows} rows of it are there to learn from"
    return Skipped(sampler=sampler.model_dump(mode="json"), columns=columns, reason=reason)


def _exact(kernel: Kernel, rows: Rows, threads: int, pause: Pause) -> Matrix:
    """The exact Gram matrix, some rows at a time."""
    prepared = kernel.prepared(rows, "/vectors")
    n = prepared.shape[0]
    exact = np.empty((n, n))

    def fill(part: slice) -> None:
        exact[part] = kernel.exact(prepared[part], prepared)

    for_each(fill, row_blocks(n, _EXACT_COORDINATES_PER_PART // max(1, int(prepared.size))), threads, pause)
    return exact


def _tried(
    spec: MapSpec,
    seeds: int,
    parts: Parts,
    measure: Callable[[MapSpec, bool, Progress], dict[str, Any] | str],
    tell: Callable[[int], None],
) -> RankedTrial | str:
    """The trial of a spec, or the reason why it cannot be built."""
    every = []
    for k in range(seeds):
        other = spec.model_copy(update={"seed": (spec.seed + k) % _SEEDS})
        found = parts.once(other.canonical(), partial(measure, other, k == 0), tell)
        if isinstance(found, str):
            return found
        every.append(found)
    errors = [found["error"] for found in every]
    return RankedTrial(
        spec=spec.model_dump(mode="json"),
        n_output=every[0]["n_output"],
        error_mean=float(np.mean(errors)),
        error_sd=float(np.std(errors, ddof=1)) if seeds > 1 else 0.0,
        bytes=every[0]["bytes"],
        seconds_per_1000_rows=every[0]["seconds"],
    )


def _measured(
    spec: MapSpec, tells: bool, progress: Progress, *, rows: Rows, exact: Matrix, building: Building, calls: int
) -> dict[str, Any] | str:
    """The error of a map and, if wanted, what else a trial tells; or a refusal."""

    def pause() -> None:
        # A map is built again after an interruption; what its sampler has learned of it until the last one is kept.
        progress.checkpoint(lambda: progress.restored() or begin_anew())

    try:
        its_map = made(spec, building._replace(progress=progress))
        error = float(np.linalg.norm(its_map.gram(rows, rows, pause) - exact) / np.linalg.norm(exact))
    except InvalidInput as refused:
        return refused.detail
    if not tells:
        return {"error": error}
    return {
        "error": error,
        "n_output": its_map.n_output,
        "bytes": sum(its_map.arrays[name].nbytes for name in its_map.arrays.keys() - its_map.computed.keys()),
        "seconds": _seconds(its_map, rows, calls, pause) * 1000 / rows.shape[0],
    }


def _seconds(its_map: FeatureMap, rows: Rows, calls: int, pause: Pause) -> float:
    """The time that the map takes for the rows, the least of some calls."""
    return min(timeit.repeat(lambda: its_map.apply(rows, pause), number=1, repeat=calls))
