"""Candidates built, measured on the client's rows, and ranked."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Rows
from app.core.building import Building, RowsOf, no_rows
from app.core.errors import InvalidInput
from app.core.kernels import Kernel
from app.core.maps import family, opened
from app.core.progress import Parts, Progress
from app.core.recommendations.candidates import Candidate, Wanted, candidates, column_counts
from app.core.samplers import Sampler
from app.core.spec import MapSpec

MOST_ROWS = 1000
"""Rows that errors are measured on; of more, a sample is enough."""
_TIMED_CALLS = 3
_SEEDS = 1 << 64


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
    progress: Progress | None = None,
    rows_of: RowsOf = no_rows,
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
        progress: told how many candidates are done, and of how many at most; given what was measured of each map.
        rows_of: datasets that samplers learn from.

    Raises:
        InvalidInput: too few or too many rows, or no sampler can be tried.
    """
    if not 2 <= rows.shape[0] <= MOST_ROWS:
        raise InvalidInput(f"{rows.shape[0]} rows came; errors are measured on 2 to {MOST_ROWS}", "/vectors")
    kernel.check(rows.shape[1])
    prepared = kernel.prepared(rows, "/vectors")
    measure = partial(_measured, rows=rows, exact=kernel.exact(prepared, prepared), rows_of=rows_of)
    progress = progress or Progress()
    parts, counts = Parts(progress), column_counts(wanted)
    trials: dict[str, Trial] = {}
    skipped: list[Candidate] = []
    for step, columns in enumerate(counts):
        every = list(candidates(kernel, rows.shape[1], columns, samplers, seed))
        for place, candidate in enumerate(every, 1):
            if candidate.spec is not None and candidate.spec.canonical() in trials:  # a rule that dictates its size
                continue
            tried = _tried(candidate, seeds, parts, measure)
            if isinstance(tried, Trial):
                trials[tried.spec.canonical()] = tried
            else:
                skipped.append(tried)
            progress.report(step * len(every) + place, len(counts) * len(every))
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


def _tried(
    candidate: Candidate, seeds: int, parts: Parts, measure: Callable[[MapSpec, bool], dict[str, Any]]
) -> Trial | Candidate:
    """The trial of a candidate, or the candidate with the reason why it cannot be built."""
    if candidate.spec is None:
        return candidate
    errors = []
    for k in range(seeds):
        spec = candidate.spec.model_copy(update={"seed": (candidate.spec.seed + k) % _SEEDS})
        found = parts.once(spec.canonical(), partial(measure, spec, k == 0))
        if "refusal" in found:
            return candidate._replace(spec=None, refusal=found["refusal"])
        errors.append(found["error"])
        if k == 0:
            told = found["told"]
    error_sd = float(np.std(errors, ddof=1)) if seeds > 1 else 0.0
    return Trial(candidate.spec, error_mean=float(np.mean(errors)), error_sd=error_sd, **told)


def _measured(spec: MapSpec, tells: bool, *, rows: Rows, exact: NDArray[np.float64], rows_of: RowsOf) -> dict[str, Any]:
    """The error of a map and, if wanted, what else a trial tells; or a refusal."""
    try:
        made = opened(spec, family(spec).build(spec, Building(rows=rows_of)).arrays, 1)
        error = float(np.linalg.norm(made.gram(rows, rows) - exact) / np.linalg.norm(exact))
    except InvalidInput as refused:
        return {"refusal": refused.detail}
    if not tells:
        return {"error": error}
    seconds = min(_seconds(made.apply, rows) for _ in range(_TIMED_CALLS))
    told = {
        "n_output": made.n_output,
        "bytes": sum(array.nbytes for array in made.arrays.values()),
        "seconds_per_1000_rows": seconds * 1000 / rows.shape[0],
    }
    return {"error": error, "told": told}


def _seconds(apply: Callable[[Rows], object], rows: Rows) -> float:
    begun = time.perf_counter()
    apply(rows)
    return time.perf_counter() - begun
