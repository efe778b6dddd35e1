"""Candidates built, measured on the client's rows, and ranked."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from app.core.arrays import Rows, row_blocks
from app.core.building import Building
from app.core.errors import InvalidInput
from app.core.kernels import Kernel
from app.core.kernels.base import Matrix
from app.core.maps import FeatureMap, made
from app.core.progress import Parts, Pause, Progress, Reported, begin_anew
from app.core.recommendations.candidates import Candidate, Wanted, candidates, column_counts
from app.core.samplers import Sampler
from app.core.spec import MapSpec
from app.core.threads import for_each

MOST_ROWS = 1000
"""Rows that errors are measured on; of more, a sample is enough."""
_TIMED_CALLS = 3
_SEEDS = 1 << 64
# Of exact kernels, what one thread computes at a time.
_EXACT_COORDINATES_PER_PART = 1 << 25


class Trial(NamedTuple):
    """A spec and what was measured."""

    spec: MapSpec
    n_output: int
    error_mean: float
    """Relative Frobenius error of the Gram matrix, mean over the seeds."""
    error_sd: float
    """Standard deviation over the seeds; 0 for one seed."""
    bytes: int
    """Size of the frozen arrays."""
    seconds_per_1000_rows: float
    """Time of a transform, on the machine that measured it."""


class Recommendation(NamedTuple):
    """The trials, the best first, and the candidates that could not be tried."""

    ranked: list[Trial]
    skipped: list[Candidate]
    target_reached: bool | None = None
    """Whether the best is within the target; None without a target."""


def recommended(
    rows: Rows,
    kernel: Kernel,
    wanted: Wanted,
    samplers: Sequence[Sampler] | None = None,
    *,
    seeds: int = 3,
    seed: int = 0,
    building: Building | None = None,
) -> Recommendation:
    """Try samplers and sizes on the rows and rank them.

    Without a target the smallest mean error is best. With one, sizes grow until a sampler reaches it, and the narrowest
    spec that does is best; where none does, the smallest error, and `target_reached` is false. All but the seconds hang
    on the arguments alone.

    Args:
        rows: (n, d) in float32, behind the gate, 2 to `MOST_ROWS`.
        kernel: with its length scale resolved.
        wanted: budget of columns, target error, or both.
        samplers: None for those that are sensible for the kernel.
        seeds: how many maps of each spec are measured.
        seed: of the spec; the others follow it.
        building: the surroundings of every map that is built. Their progress is told how many candidates are done, and
            of how many at most; its states hold what was measured of each map.

    Raises:
        InvalidInput: too few or too many rows, or no sampler can be tried.
    """
    if not 2 <= rows.shape[0] <= MOST_ROWS:
        raise InvalidInput(f"{rows.shape[0]} rows came; errors are measured on 2 to {MOST_ROWS}", "/vectors")
    kernel.check(rows.shape[1])
    building = building or Building()
    progress = building.progress
    parts, counts = Parts(progress), column_counts(wanted)
    exact = _exact(
        kernel, rows, building.threads, lambda: progress.checkpoint(lambda: progress.restored() or parts.state())
    )
    trials: dict[str, Trial] = {}
    skipped: list[Candidate] = []
    for step, columns in enumerate(counts):
        every = list(candidates(kernel, rows.shape[1], columns, samplers, seed))
        for place, candidate in enumerate(every):
            tell = partial(progress.report, step * len(every) + place, len(counts) * len(every))
            tell()
            if candidate.spec is not None and candidate.spec.canonical() in trials:  # a rule that dictates its size
                continue
            measure = partial(_measured, rows=rows, exact=exact, building=building)
            tried = _tried(candidate, seeds, parts, measure, tell)
            if isinstance(tried, Trial):
                trials[tried.spec.canonical()] = tried
            else:
                skipped.append(tried)
        if wanted.target_error is not None and any(t.error_mean <= wanted.target_error for t in trials.values()):
            break
    return _ranked(list(trials.values()), skipped, wanted.target_error)


def _ranked(trials: list[Trial], skipped: list[Candidate], target: float | None) -> Recommendation:
    """Trials within the target by their width, then the others by their error; InvalidInput if there are none."""
    if not trials:
        refusals = "; ".join(dict.fromkeys(f"{one.sampler.kind}: {one.refusal}" for one in skipped))
        raise InvalidInput(f"no sampler can be tried: {refusals}", "/samplers")

    def place(trial: Trial) -> tuple[bool, float, float]:
        if target is not None and trial.error_mean <= target:
            return False, trial.n_output, trial.error_mean
        return True, trial.error_mean, trial.n_output

    ranked = sorted(trials, key=place)
    return Recommendation(ranked, skipped, None if target is None else ranked[0].error_mean <= target)


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
    candidate: Candidate,
    seeds: int,
    parts: Parts,
    measure: Callable[[MapSpec, bool, Progress], dict[str, Any]],
    tell: Callable[[], None],
) -> Trial | Candidate:
    """The trial of a candidate, or the candidate with the reason why it cannot be built."""
    if candidate.spec is None:
        return candidate
    errors = []
    for k in range(seeds):
        spec = candidate.spec.model_copy(update={"seed": (candidate.spec.seed + k) % _SEEDS})
        name = spec.canonical()
        within = Reported(parts.within(name), lambda *_: tell())
        found = parts.once(name, partial(measure, spec, k == 0, within))
        if "refusal" in found:
            return candidate._replace(spec=None, refusal=found["refusal"])
        errors.append(found["error"])
        if k == 0:
            told = found["told"]
    error_sd = float(np.std(errors, ddof=1)) if seeds > 1 else 0.0
    return Trial(candidate.spec, error_mean=float(np.mean(errors)), error_sd=error_sd, **told)


def _measured(
    spec: MapSpec, tells: bool, progress: Progress, *, rows: Rows, exact: Matrix, building: Building
) -> dict[str, Any]:
    """The error of a map and, if wanted, what else a trial tells; or a refusal."""

    def pause() -> None:
        # A map is built again after an interruption; what its sampler has learned of it until the last one is kept.
        progress.checkpoint(lambda: progress.restored() or begin_anew())

    try:
        its_map = made(spec, building._replace(progress=progress))
        error = float(np.linalg.norm(its_map.gram(rows, rows, pause) - exact) / np.linalg.norm(exact))
    except InvalidInput as refused:
        return {"refusal": refused.detail}
    if not tells:
        return {"error": error}
    told = {
        "n_output": its_map.n_output,
        "bytes": sum(array.nbytes for array in its_map.arrays.values()),
        "seconds_per_1000_rows": _seconds(its_map, rows, pause) * 1000 / rows.shape[0],
    }
    return {"error": error, "told": told}


def _seconds(its_map: FeatureMap, rows: Rows, pause: Pause) -> float:
    """The time that the map takes for the rows, the least of some calls."""
    seconds = []
    for _ in range(_TIMED_CALLS):
        begun = time.perf_counter()
        its_map.apply(rows, pause)
        seconds.append(time.perf_counter() - begun)
    return min(seconds)
